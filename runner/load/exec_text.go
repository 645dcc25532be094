package load

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// lines looks things up in a report of lines such as "Failed requests:  3".
type lines []string

func linesOf(out []byte) lines {
	return strings.Split(strings.ReplaceAll(string(out), "\r", ""), "\n")
}

// after is the text after a label that starts a line, without blanks around
// it. The last such line counts.
func (ls lines) after(label string) (string, bool) {
	for i := len(ls) - 1; i >= 0; i-- {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(ls[i]), label); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// number is the number after a label, with its unit turned into the base
// unit; the text may go on after it.
func (ls lines) number(label string) (float64, bool) {
	text, ok := ls.after(label)
	if !ok {
		return 0, false
	}
	return firstQuantity(text)
}

// firstQuantity reads the first word of a text as a number with its unit.
func firstQuantity(text string) (float64, bool) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	v, unit, err := splitQuantity(word)
	if err != nil {
		return 0, false
	}
	scale, ok := units[unit]
	return v * scale, ok
}

// words are the first n words of the text after a label, as quantities.
func (ls lines) words(label string, n int) ([]float64, bool) {
	text, ok := ls.after(label)
	if !ok {
		return nil, false
	}
	fields := strings.Fields(text)
	if len(fields) < n {
		return nil, false
	}
	v := make([]float64, n)
	for i := range v {
		if v[i], ok = firstQuantity(fields[i]); !ok {
			return nil, false
		}
	}
	return v, true
}

var (
	wrkTotal     = regexp.MustCompile(`(?m)^\s*(\d+) requests in `)
	wrkSocket    = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkQuantile  = regexp.MustCompile(`(?m)^\s*([0-9.]+)%\s+([0-9.]+[a-z]+)\s*$`)
	errNoSummary = errors.New("there is no summary")
)

// readWrk reads wrk's summary. wrk exits with 0 whatever the responses were;
// its request count includes those with a bad status, and so does its rate.
func readWrk(out *toolOutput, r *reading) error { return readWrkAs("latency", out, r) }

// readWrk2 reads wrk2's, whose times count from the intended start.
func readWrk2(out *toolOutput, r *reading) error { return readWrkAs("response_time", out, r) }

func readWrkAs(family string, out *toolOutput, r *reading) error {
	ls := linesOf(out.stdout)
	rate, ok := ls.number("Requests/sec:")
	m := wrkTotal.FindSubmatch(out.stdout)
	if !ok || m == nil {
		return errNoSummary
	}
	total := parseCount(m[1])
	bad := int64(0)
	if v, ok := ls.number("Non-2xx or 3xx responses:"); ok {
		bad = int64(v)
	}
	r.ok = total - bad
	r.fail(Status, bad, "%d of %d responses had a status below 200 or above 399", bad, total)
	if m := wrkSocket.FindSubmatch(out.stdout); m != nil {
		for i, kind := range []struct {
			class Class
			name  string
		}{{Other, "connect"}, {ReadReset, "read"}, {ReadReset, "write"}, {Timeout, "timeout"}} {
			n := parseCount(m[i+1])
			r.fail(kind.class, n, "%d %s errors", n, kind.name)
		}
	}
	if rate > 0 {
		// The time is printed with two decimals only.
		r.elapsed = time.Duration(float64(total) / rate * float64(time.Second))
	}
	r.rates()
	if r.noneValid() {
		return nil
	}
	if v, ok := ls.words("Latency  ", 3); ok {
		r.time(family+".mean", v[0])
		r.time(family+".stdev", v[1])
		r.time(family+".max", v[2])
	}
	for _, m := range wrkQuantile.FindAllSubmatch(out.stdout, -1) {
		r.percentile(family, string(m[1]), string(m[2]))
	}
	return nil
}

// percentile sets a percentile from the text of its percentage and value.
func (r *reading) percentile(family, percent, value string) {
	p, err := strconv.ParseFloat(percent, 64)
	if err != nil {
		return
	}
	if v, ok := firstQuantity(value); ok && percentileName(p) != "" {
		r.time(family+"."+percentileName(p), v)
	}
}

// noneValid notes, where the tool names no failure either, that no response
// was valid: some tools say nothing at all of what went wrong.
func (r *reading) noneValid() bool {
	if r.ok == 0 && r.failed == 0 {
		r.fail(Other, 1, "the tool got not one valid response")
	}
	return r.ok == 0
}

var abQuantile = regexp.MustCompile(`(?m)^\s*(\d+)%\s+(\d+)`)

// shortestResponse is the length of a status line without a reason.
const shortestResponse = len("HTTP/1.1 200\r\n\r\n")

// readAB reads ApacheBench's report. ab exits with 0 after any responses, and
// counts a connection that was closed without one as complete; only that no
// bytes came betrays it.
func readAB(out *toolOutput, r *reading) error {
	ls := linesOf(out.stdout)
	total, ok := ls.number("Complete requests:")
	elapsed, ok2 := ls.number("Time taken for tests:")
	if !ok || !ok2 {
		return errNoSummary
	}
	r.elapsed = time.Duration(elapsed * float64(time.Second))
	r.ok = int64(total)
	lose := func(c Class, n float64, format string, args ...any) {
		r.ok -= int64(n)
		r.fail(c, int64(n), format, args...)
	}
	if v, ok := ls.number("Failed requests:"); ok && v > 0 {
		lose(Body, v, "%v of %v requests failed %s", v, total, abReasons(out.stdout))
	}
	if v, ok := ls.number("Non-2xx responses:"); ok && v > 0 {
		lose(Status, v, "%v of %v responses had a status other than 2xx", v, total)
	}
	if v, ok := ls.number("Write errors:"); ok && v > 0 {
		r.fail(ReadReset, int64(v), "%v write errors", v)
	}
	if v, ok := ls.number("Total transferred:"); ok && v < total*float64(shortestResponse) {
		lose(EOF, float64(r.ok), "%v bytes for %v responses are less than their status lines: connections were closed unanswered", v, total)
	}
	r.ok = max(0, r.ok)
	r.rates()
	if r.noneValid() {
		return nil
	}
	if v, ok := ls.number("Time per request:"); ok {
		// The last such line is the mean across all connections; one
		// connection sees that many times as much.
		if c, ok := ls.number("Concurrency Level:"); ok {
			r.time("latency.mean", v*c/1e3)
		}
	}
	if v, ok := ls.words("Total: ", 5); ok {
		r.time("latency.min", v[0]/1e3)
		r.time("latency.stdev", v[2]/1e3)
		r.time("latency.max", v[4]/1e3)
	}
	for _, m := range abQuantile.FindAllSubmatch(out.stdout, -1) {
		r.percentile("latency", string(m[1]), string(m[2])+"ms")
	}
	return nil
}

// abReasons is the line in brackets that follows the failed requests.
func abReasons(out []byte) string {
	_, rest, _ := bytes.Cut(out, []byte("Failed requests:"))
	_, rest, _ = bytes.Cut(rest, []byte("\n"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("(")) {
		return string(line)
	}
	return ""
}

var (
	h2Finished = regexp.MustCompile(`(?m)^finished in ([0-9.]+[a-z]+),`)
	h2Requests = regexp.MustCompile(`requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout`)
)

// readH2load reads h2load's summary. It exits with 0 always, and where no
// connection came about, or all were closed, it names no failure.
func readH2load(out *toolOutput, r *reading) error {
	m := h2Requests.FindSubmatch(out.stdout)
	f := h2Finished.FindSubmatch(out.stdout)
	if m == nil || f == nil {
		return errNoSummary
	}
	elapsed, _ := firstQuantity(string(f[1]))
	r.elapsed = time.Duration(elapsed * float64(time.Second))
	started, done := parseCount(m[2]), parseCount(m[3])
	failed, errored := parseCount(m[5]), parseCount(m[6])
	r.ok = parseCount(m[4])
	r.inFlight = max(0, started-done)
	r.fail(Status, failed-errored, "%d of %d responses had a status other than 2xx and 3xx", failed-errored, done)
	r.fail(ReadReset, errored, "%d requests ended with an error of the connection", errored)
	r.rates()
	if r.noneValid() {
		return nil
	}
	ls := linesOf(out.stdout)
	if v, ok := ls.words("time for request:", 4); ok {
		r.time("latency.min", v[0])
		r.time("latency.max", v[1])
		r.time("latency.mean", v[2])
		r.time("latency.stdev", v[3])
	}
	if v, ok := ls.words("time to 1st byte:", 4); ok {
		r.time("ttfb.mean", v[2])
	}
	return nil
}

var (
	heyQuantile = regexp.MustCompile(`(?m)^\s*([0-9.]+)%+ in ([0-9.]+) secs`)
	heyStatus   = regexp.MustCompile(`(?m)^\s*\[(\d{3})\]\s+(\d+) responses`)
	heyError    = regexp.MustCompile(`(?m)^\s*\[(\d+)\]\s+(.*\S)`)
)

// readHey reads hey's summary. It exits with 0 always; its rate includes
// requests that failed.
func readHey(out *toolOutput, r *reading) error {
	report, mishaps, _ := bytes.Cut(out.stdout, []byte("Error distribution:"))
	ls := linesOf(report)
	elapsed, ok := ls.number("Total:")
	if _, ok2 := ls.number("Requests/sec:"); !ok || !ok2 {
		return errNoSummary
	}
	r.elapsed = time.Duration(elapsed * float64(time.Second))
	for _, m := range heyStatus.FindAllSubmatch(report, -1) {
		n := parseCount(m[2])
		r.status(int(parseCount(m[1])), n)
	}
	for _, m := range heyError.FindAllSubmatch(mishaps, -1) {
		r.fail(classOfText(string(m[2])), parseCount(m[1]), "%s", m[2])
	}
	r.rates()
	if r.noneValid() {
		return nil
	}
	for label, name := range map[string]string{"Fastest:": "min", "Slowest:": "max", "Average:": "mean"} {
		if v, ok := ls.number(label); ok {
			r.time("latency."+name, v)
		}
	}
	for _, m := range heyQuantile.FindAllSubmatch(report, -1) {
		r.percentile("latency", string(m[1]), string(m[2])+"s")
	}
	return nil
}

// status counts n responses of one status.
func (r *reading) status(code int, n int64) {
	if success(code) {
		r.ok += n
		return
	}
	r.fail(Status, n, "%d responses had status %d", n, code)
}

var rateLine = regexp.MustCompile(`^(?:Req|Msg)/sec: ([0-9.]+)`)

// hasRate reports whether a line carries the rate of uSockets' http_load_test
// or uWebSockets' load_test.
func hasRate(line []byte) bool { return rateLine.Match(line) }

// readPeriodic reads the lines of a tool that prints its rate every few
// seconds. What those tools say of failures, they say with exit status 0.
func readPeriodic(label, metric string) func(*toolOutput, *reading) error {
	return func(out *toolOutput, r *reading) error {
		for _, trouble := range []string{"Cannot connect", "ERROR:", "Closed!", "Usage:"} {
			for _, stream := range [][]byte{out.stdout, out.stderr} {
				if i := bytes.Index(stream, []byte(trouble)); i >= 0 {
					line, _, _ := bytes.Cut(stream[i:], []byte("\n"))
					r.fail(Other, 1, "%s", line)
				}
			}
		}
		sum, n := 0.0, 0
		for _, l := range out.lines {
			if m := rateLine.FindSubmatch(l.text); m != nil && bytes.HasPrefix(l.text, []byte(label)) {
				v, err := strconv.ParseFloat(string(m[1]), 64)
				if err != nil {
					return fmt.Errorf("line %q: %w", l.text, err)
				}
				sum += v
				n++
			}
		}
		if n == 0 {
			return fmt.Errorf("no second line with %s", label)
		}
		rate := sum / float64(n)
		r.elapsed = out.lines[len(out.lines)-1].at - out.lines[0].at
		r.ok = int64(rate*r.elapsed.Seconds() + 0.5)
		// What was answered before the first line and after the last one used
		// the server's CPU, too. It can only be estimated.
		r.outside = int64(rate*max(0, out.wall-r.elapsed).Seconds() + 0.5)
		if r.noneValid() {
			return nil
		}
		r.metrics[metric] = rate
		if metric != "rps" {
			r.metrics["rps"] = rate
		}
		return nil
	}
}

// parseCount reads digits that a regular expression has found.
func parseCount(digits []byte) int64 {
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// classOfText guesses the class of a failure from a tool's words.
func classOfText(text string) Class {
	low := strings.ToLower(text)
	for _, k := range []struct {
		words string
		class Class
	}{
		{"connection refused", ConnectRefused},
		{"too many open files", FDLimit},
		{"cannot assign requested address", AddrUnavailable},
		{"x509", TLSError}, {"tls", TLSError},
		{"timeout", Timeout}, {"timed out", Timeout}, {"deadline", Timeout},
		{"reset", ReadReset}, {"broken pipe", ReadReset},
		{"eof", EOF}, {"closed", EOF},
	} {
		if strings.Contains(low, k.words) {
			return k.class
		}
	}
	return Other
}
