package load

import (
	"bytes"
	"fmt"
	"regexp"
	"time"
)

// reading is what was found in the output of a tool.
type reading struct {
	metrics  map[string]float64 // base units
	ok       int64              // valid responses, where the tool says so
	failed   int64
	inFlight int64
	outside  int64         // valid responses outside of the measuring time
	elapsed  time.Duration // the tool's own measuring time; 0: it does not say
	tally    tally
	invalid  string // why nothing of it counts
}

// fail counts n failed requests.
func (r *reading) fail(c Class, n int64, format string, args ...any) {
	if n > 0 {
		r.failed += n
		r.tally.add(c, n, fmt.Errorf(format, args...))
	}
}

// broke notes that the tool itself went wrong, or that its output cannot be
// understood: no share of errors that the scenario allows excuses that.
func (r *reading) broke(c Class, format string, args ...any) {
	r.fail(c, 1, format, args...)
	if r.invalid == "" {
		r.invalid = fmt.Sprintf(format, args...)
	}
}

// rates sets requests and rps from the valid responses: what a tool calls its
// rate often includes those that failed. It does nothing for a tool that
// measured no time, or that got no valid response.
func (r *reading) rates() {
	if r.ok > 0 && r.elapsed > 0 {
		r.metrics["requests"] = float64(r.ok)
		r.metrics["rps"] = float64(r.ok) / r.elapsed.Seconds()
	}
}

// time sets a metric of time, in seconds. Zero means that it was below what
// the tool resolves: then there is no metric.
func (r *reading) time(name string, seconds float64) {
	if seconds > 0 {
		r.metrics[name] = seconds
	}
}

func (r *reading) sample(out *toolOutput) Sample {
	s := Sample{
		Started: r.ok + r.failed + r.inFlight + r.outside, OK: r.ok, Failed: r.failed, InFlight: r.inFlight, Discarded: r.outside,
		Elapsed: r.elapsed, TotalElapsed: out.wall, Turns: 1, Cycles: 1, Reported: true,
		Metrics: r.metrics, Errors: r.tally.counts, Invalid: r.invalid,
		Generator: GeneratorUse{Wall: out.wall, CPU: out.cpu, Involuntary: out.involuntary},
	}
	if s.Elapsed == 0 {
		s.Elapsed = out.wall
	}
	return s
}

// matchingLine is the first whole line that holds a match; empty: none.
func matchingLine(re *regexp.Regexp, out []byte) string {
	at := re.FindIndex(out)
	if at == nil {
		return ""
	}
	start := at[0]
	for start > 0 && out[start-1] != '\n' {
		start--
	}
	end := max(at[1], start)
	if i := bytes.IndexByte(out[end:], '\n'); i >= 0 {
		end += i
	} else {
		end = len(out)
	}
	return string(out[start:min(end, start+200)])
}
