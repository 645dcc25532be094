package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// report is the JSON document of a tool.
type report struct{ doc any }

// reportOf takes the last JSON document of the tool's output.
func reportOf(out *toolOutput) (report, error) {
	doc, err := lastJSON(out.stdout)
	if err != nil {
		// Some tools are told to write it to standard error.
		if doc, err2 := lastJSON(out.stderr); err2 == nil {
			return report{doc}, nil
		}
		return report{}, err
	}
	return report{doc}, nil
}

// number is the number at a dotted path.
func (p report) number(path string) (float64, bool) {
	v, ok := lookup(p.doc, strings.Split(path, "."))
	if !ok {
		return 0, false
	}
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// count is a number that is zero where it is missing.
func (p report) count(path string) int64 {
	v, _ := p.number(path)
	return int64(v)
}

// inner is the object at a dotted path; empty where there is none.
func (p report) inner(path string) map[string]any {
	v, _ := lookup(p.doc, strings.Split(path, "."))
	m, _ := v.(map[string]any)
	return m
}

// times sets metrics of time from numbers of the document, in a unit.
func (p report) times(r *reading, unit float64, names map[string]string) {
	for name, path := range names {
		if v, ok := p.number(path); ok {
			r.time(name, v*unit)
		}
	}
}

// percentiles sets those of an object whose keys are percentages, with
// something around them.
func (p report) percentiles(r *reading, unit float64, path, prefix, suffix string) {
	m := p.inner(path)
	for _, key := range sortedKeys(m) {
		text := strings.TrimSuffix(strings.TrimPrefix(key, prefix), suffix)
		percent, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", "."), 64)
		if err != nil || key == text && prefix+suffix != "" || percentileName(percent) == "" {
			continue
		}
		if n, ok := m[key].(json.Number); ok {
			if v, err := n.Float64(); err == nil {
				r.time("latency."+percentileName(percent), v*unit)
			}
		}
	}
}

// readAutocannon reads autocannon's JSON. It exits with 0 always, and a
// request whose connection was closed unanswered shows nowhere but in the
// number sent. Its percentiles are whole milliseconds.
func readAutocannon(out *toolOutput, r *reading) error {
	p, err := reportOf(out)
	if err != nil {
		return err
	}
	elapsed, ok := p.number("duration")
	if _, ok2 := p.number("requests.total"); !ok || !ok2 {
		return errNoSummary
	}
	r.elapsed = time.Duration(elapsed * float64(time.Second))
	r.ok = p.count("2xx")
	bad, failed, timeouts := p.count("non2xx"), p.count("errors"), p.count("timeouts")
	r.fail(Status, bad, "%d responses had a status other than 2xx", bad)
	r.fail(Timeout, timeouts, "%d requests timed out", timeouts)
	r.fail(Other, failed-timeouts, "%d requests ended with an error of the connection", failed-timeouts)
	// A mismatch has been counted by its status already.
	mismatches := p.count("mismatches")
	r.ok = max(0, r.ok-mismatches)
	r.fail(Body, mismatches, "%d bodies were not the expected one", mismatches)
	open := p.count("requests.sent") - r.ok - r.failed
	most := p.count("connections") * max(1, p.count("pipelining"))
	r.inFlight = max(0, min(open, most))
	r.fail(EOF, open-most, "%d requests were sent and never answered", open-most)
	r.rates()
	if r.noneValid() {
		return nil
	}
	p.times(r, 1e-3, map[string]string{
		"latency.mean": "latency.mean", "latency.stdev": "latency.stddev", "latency.max": "latency.max",
	})
	p.percentiles(r, 1e-3, "latency", "p", "")
	return nil
}

// readBombardier reads bombardier's JSON; its times are microseconds.
func readBombardier(out *toolOutput, r *reading) error {
	p, err := reportOf(out)
	if err != nil {
		return err
	}
	elapsed, ok := p.number("result.timeTakenSeconds")
	if !ok {
		return errNoSummary
	}
	r.elapsed = time.Duration(elapsed * float64(time.Second))
	for i, class := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
		n := p.count("result.req" + class)
		if i == 1 || i == 2 {
			r.ok += n
			continue
		}
		r.fail(Status, n, "%d responses had a status of %s", n, class)
	}
	others := p.count("result.others")
	list, _ := lookup(p.doc, []string{"result", "errors"})
	errs, _ := list.([]any)
	for i := range errs {
		e := report{errs[i]}
		text, _ := lookup(e.doc, []string{"description"})
		n := min(others, e.count("count"))
		others -= n
		r.fail(classOfText(fmt.Sprint(text)), n, "%v", text)
	}
	r.fail(Other, others, "%d requests ended with another error", others)
	r.rates()
	if r.noneValid() {
		return nil
	}
	p.times(r, 1e-6, map[string]string{
		"latency.mean": "result.latency.mean", "latency.stdev": "result.latency.stddev", "latency.max": "result.latency.max",
	})
	p.percentiles(r, 1e-6, "result.latency.percentiles", "", "")
	return nil
}

// readVegeta reads vegeta's JSON report; its times are nanoseconds. Its rate
// is over the time between first and last request, its throughput to the
// last response.
func readVegeta(out *toolOutput, r *reading) error {
	p, err := reportOf(out)
	if err != nil {
		return err
	}
	elapsed, ok := p.number("duration")
	wait, ok2 := p.number("wait")
	if !ok || !ok2 {
		return errNoSummary
	}
	r.elapsed = time.Duration(elapsed + wait)
	var texts []string
	list, _ := lookup(p.doc, []string{"errors"})
	errs, _ := list.([]any)
	for _, e := range errs {
		texts = append(texts, fmt.Sprint(e))
	}
	codes := p.inner("status_codes")
	for _, key := range sortedKeys(codes) {
		code, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("status code %q", key)
		}
		n := p.count("status_codes." + key)
		if code != 0 {
			r.status(code, n)
			continue
		}
		text := strings.Join(texts[:min(3, len(texts))], "; ")
		r.fail(classOfText(text), n, "%s", text)
	}
	r.rates()
	if r.noneValid() {
		return nil
	}
	p.times(r, 1e-9, map[string]string{
		"latency.mean": "latencies.mean", "latency.max": "latencies.max", "latency.min": "latencies.min",
	})
	p.percentiles(r, 1e-9, "latencies", "", "th")
	return nil
}

// ohaUnfinished are the words of oha for requests in flight at its end.
const ohaUnfinished = "aborted due to deadline"

// readOha reads oha's JSON; its times are seconds. It counts as success any
// response, whatever its status.
func readOha(out *toolOutput, r *reading) error {
	p, err := reportOf(out)
	if err != nil {
		return err
	}
	elapsed, ok := p.number("summary.total")
	if !ok {
		return errNoSummary
	}
	r.elapsed = time.Duration(elapsed * float64(time.Second))
	codes := p.inner("statusCodeDistribution")
	for _, key := range sortedKeys(codes) {
		code, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("status code %q", key)
		}
		r.status(code, p.count("statusCodeDistribution."+key))
	}
	mishaps := p.inner("errorDistribution")
	for _, key := range sortedKeys(mishaps) {
		n, _ := mishaps[key].(json.Number)
		count, _ := n.Int64()
		if key == ohaUnfinished {
			r.inFlight += count
			continue
		}
		r.fail(classOfText(key), count, "%s", key)
	}
	r.rates()
	if r.noneValid() {
		return nil
	}
	p.times(r, 1, map[string]string{
		"latency.mean": "summary.average", "latency.max": "summary.slowest", "latency.min": "summary.fastest",
	})
	p.percentiles(r, 1, "latencyPercentiles", "p", "")
	return nil
}

// readK6 reads the summary of k6 as --summary-export writes it, or as
// handleSummary gets it, where the numbers of a metric stand under values.
// Its times are milliseconds. k6 exits with 0 unless a threshold is crossed;
// failed checks are failures here.
func readK6(out *toolOutput, r *reading) error {
	p, err := reportOf(out)
	if err != nil {
		return err
	}
	in := func(metric, name string) (float64, bool) {
		if v, ok := p.number("metrics." + metric + ".values." + name); ok {
			return v, true
		}
		return p.number("metrics." + metric + "." + name)
	}
	total, ok := in("http_reqs", "count")
	if !ok {
		return errors.New("there is no metric http_reqs")
	}
	// http_req_failed counts true as "passes": the rate of what it measures.
	bad, _ := in("http_req_failed", "passes")
	wrong, _ := in("checks", "fails")
	r.ok = max(0, int64(total)-int64(bad))
	r.fail(Status, int64(bad), "%v of %v requests failed", bad, total)
	if wrong > bad { // a check may have failed for each request that did
		r.ok = max(0, r.ok-int64(wrong-bad))
		r.fail(Body, int64(wrong-bad), "%v checks failed, but %v requests", wrong, bad)
	}
	if rate, ok := in("http_reqs", "rate"); ok && rate > 0 {
		r.elapsed = time.Duration(total / rate * float64(time.Second))
	}
	r.rates()
	if r.noneValid() {
		return nil
	}
	for name, key := range map[string]string{
		"min": "min", "mean": "avg", "max": "max", "p50": "med", "p90": "p(90)", "p95": "p(95)", "p99": "p(99)", "p99_9": "p(99.9)",
	} {
		if v, ok := in("http_req_duration", key); ok {
			r.time("latency."+name, v*1e-3)
		}
		if v, ok := in("http_req_waiting", key); ok {
			r.time("ttfb."+name, v*1e-3)
		}
	}
	return nil
}
