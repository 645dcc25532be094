package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// The worlds of this file are those in which other tools gave a wrong
// verdict in public. Each says what the right outcome is.

func warned(r *Row, text string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// The generator is the limit for both arms, and the candidate is really 17%
// faster: a ratio of 1.00 is no proof of sameness.
func TestCaseGeneratorIsTheLimit(t *testing.T) {
	w := newWorld("http/hello")
	w.noise = 0.001
	w.edit = func(tr *journal.Trial) bool {
		tr.Audit.GeneratorBusy = 0.99
		setMetric(tr, "busy", 0.72)
		if tr.Arm == "head" {
			setMetric(tr, "busy", 0.60)
			setMetric(tr, "cpu_per_request", tr.Metrics.Value("cpu_per_request")/1.17)
		}
		return true
	}
	a := analyze(t, w)
	r := row(t, a, "http/hello", "rps")
	if r.Verdict != Unsure || !warned(r, "the load generator was the limit") {
		t.Errorf("rps: %s %q, warnings %q", r.Verdict, r.Reason, r.Warnings)
	}
	if c := row(t, a, "http/hello", "cpu_per_request"); c.Verdict != Improved || warned(c, "generator") {
		t.Errorf("cpu_per_request does not depend on the generator: %s, warnings %q", c.Verdict, c.Warnings)
	}
}

// A busy server and a busy generator are a good match, not a limit.
func TestCaseBothBusy(t *testing.T) {
	w := newWorld("http/hello")
	w.noise = 0.001
	w.edit = func(tr *journal.Trial) bool { tr.Audit.GeneratorBusy = 0.97; return true }
	if r := row(t, analyze(t, w), "http/hello", "rps"); r.Verdict != Same || len(r.Warnings) != 0 {
		t.Errorf("%s, warnings %q", r.Verdict, r.Warnings)
	}
}

// The candidate answers 404 quickly: no verdict, and a failure.
func TestCaseQuickErrors(t *testing.T) {
	for name, outcome := range map[string]string{"differs": journal.CheckIncomparable, "fails": journal.CheckFailed} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("http/hello", "http/other")
			w.edit = func(tr *journal.Trial) bool { return tr.Scenario != "http/hello" }
			w.finish = func(j *journal.Run) {
				for i, c := range j.Checks {
					if c.Scenario == "http/hello" {
						j.Checks[i] = journal.Check{Block: c.Block, Scenario: c.Scenario, Outcome: outcome, Arm: "head", Reason: "status 404, expected 200"}
					}
				}
			}
			a := analyze(t, w)
			for _, metric := range []string{"rps", "cpu_per_request"} {
				r := row(t, a, "http/hello", metric)
				if r.Verdict.measured() || !math.IsNaN(r.Ratio) || !strings.Contains(r.Reason, "404") {
					t.Errorf("%s: %s %v %q", metric, r.Verdict, r.Ratio, r.Reason)
				}
			}
			if a.Outcome != NotMeasured {
				t.Errorf("outcome %s", a.Outcome)
			}
		})
	}
}

// The candidate's response is 15% shorter: the improvement is shown with the
// sizes that explain it.
func TestCaseShorterResponse(t *testing.T) {
	w := newWorld("http/hello")
	w.speed = slower("head", "http/hello", -0.06)
	w.edit = func(tr *journal.Trial) bool {
		if tr.Arm == "head" {
			setMetric(tr, "bytes_per_request", tr.Metrics.Value("bytes_per_request")*0.85)
		}
		return true
	}
	r := row(t, analyze(t, w), "http/hello", "rps")
	if r.Verdict != Improved || !warned(r, "differ in size") || !warned(r, "165") || !warned(r, "-15.0%") {
		t.Errorf("%s, warnings %q", r.Verdict, r.Warnings)
	}
}

// No sample in one arm: a failure, whatever the threshold says.
func TestCaseNoSamples(t *testing.T) {
	w := newWorld("http/hello")
	w.gates = []spec.Threshold{{Metric: "rps", Scenario: "*", Fail: gate("worse > noise"), Line: 9}}
	w.edit = func(tr *journal.Trial) bool {
		if tr.Arm == "head" {
			dropMetric(tr, "rps")
		}
		return true
	}
	a := analyze(t, w)
	r := row(t, a, "http/hello", "rps")
	if r.Verdict != Failed || !strings.Contains(r.Reason, "no sample of rps") || a.Outcome != NotMeasured {
		t.Errorf("%s %q, outcome %s", r.Verdict, r.Reason, a.Outcome)
	}
	w.edit = func(tr *journal.Trial) bool { return tr.Arm == "base" }
	a = analyze(t, w)
	if r := row(t, a, "http/hello", "rps"); r.Verdict != Failed || a.Outcome != NotMeasured {
		t.Errorf("%s %q, outcome %s", r.Verdict, r.Reason, a.Outcome)
	}
}

// A scenario renamed in the candidate: both names are in the table.
func TestCaseRenamed(t *testing.T) {
	w := newWorld("http/old", "http/new", "http/other")
	w.scenarios[0].Arms, w.scenarios[1].Arms = []string{"base"}, []string{"head"}
	w.edit = func(tr *journal.Trial) bool {
		return (tr.Scenario != "http/old" || tr.Arm == "base") && (tr.Scenario != "http/new" || tr.Arm == "head")
	}
	a := analyze(t, w)
	if r := row(t, a, "http/old", "rps"); r.Verdict != Removed || math.IsNaN(r.Base.Value) {
		t.Errorf("old: %s, value %v", r.Verdict, r.Base.Value)
	}
	if r := row(t, a, "http/new", "rps"); r.Verdict != New || math.IsNaN(r.Head.Value) {
		t.Errorf("new: %s, value %v", r.Verdict, r.Head.Value)
	}
	if a.Outcome != GateFailed {
		t.Errorf("outcome %s: the policy fails a removed row", a.Outcome)
	}
}

// A spec from elsewhere names a scenario that the run's own spec left out.
func TestCaseLeftOutByTheRunsOwnSpec(t *testing.T) {
	w := newWorld("http/hello")
	full := newWorld("http/hello", "http/slow").spec()
	full.Digest = "d2"
	a, err := Analyze(roundTrip(t, w.run()), full)
	check(t, err)
	if r := row(t, a, "http/slow", "rps"); r.Verdict != Removed || a.Outcome != GateFailed {
		t.Errorf("%s %q, outcome %s", r.Verdict, r.Reason, a.Outcome)
	}
}

// The server restarted itself within a window: the window is invalid, its
// block is left out for every copy, and the report says so.
func TestCaseRestartedServer(t *testing.T) {
	w := newWorld("http/hello")
	w.edit = func(tr *journal.Trial) bool {
		if tr.Block == 3 && tr.Arm == "head" && tr.Copy == 0 {
			setMetric(tr, "rps", tr.Metrics.Value("rps")*0.4)
			tr.Invalid = "the server process 4711 was replaced by 4733 in mid-window"
		}
		return true
	}
	r := row(t, analyze(t, w), "http/hello", "rps")
	if r.Blocks != 11 || r.Dropped != 1 || slices.Contains(r.BlockIDs, 3) || r.Marked {
		t.Errorf("%d blocks %v, %d dropped, marked %v", r.Blocks, r.BlockIDs, r.Dropped, r.Marked)
	}
	if !warned(r, "was replaced by 4733") {
		t.Errorf("warnings %q", r.Warnings)
	}
	if r.Base.Trials != 22 || r.Head.Trials != 22 {
		t.Errorf("trials %d and %d: the block is left out for both arms alike", r.Base.Trials, r.Head.Trials)
	}
}

// The build of the second arm left the first one's products in place.
func TestCaseSameBinaryTwice(t *testing.T) {
	const text = "the same program was measured twice"
	w := newWorld("http/hello")
	w.arms[1].Digest = w.arms[0].Digest
	has := func(a *Analysis) bool {
		return slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, text) })
	}
	if a := analyze(t, w); !has(a) {
		t.Errorf("warnings %q", a.Warnings)
	}
	w.finish = func(j *journal.Run) { j.Header.Same = true }
	if a := analyze(t, w); has(a) {
		t.Errorf("a same-code run is meant to measure the same program: %q", a.Warnings)
	}
	// One tree, started in two ways: a flag is what is compared.
	w.finish = nil
	s := w.spec()
	s.Arms[1].Server = &spec.Server{Command: spec.Command{Shell: "node server.js --slow"}}
	a, err := Analyze(withSpec(t, w.run(), s), nil)
	check(t, err)
	if has(a) {
		t.Errorf("the arms are started in different ways: %q", a.Warnings)
	}
}

// Eleven one-second samples in 11.01 s against ten in 10.02 s: rates are per
// actual duration, and totals are never compared.
func TestCaseDifferentDurations(t *testing.T) {
	w := newWorld("http/hello")
	w.judge = []string{"rps"}
	w.noise = 0.0005
	w.edit = func(tr *journal.Trial) bool {
		tr.Elapsed = 11.01
		if tr.Arm == "head" {
			tr.Elapsed = 10.02
		}
		setMetric(tr, "requests", math.Round(tr.Metrics.Value("rps")*tr.Elapsed))
		return true
	}
	r := row(t, analyze(t, w), "http/hello", "rps")
	if r.Verdict != Same || len(r.Warnings) != 0 {
		t.Errorf("%s, ratio %v, warnings %q", r.Verdict, r.Ratio, r.Warnings)
	}
	// The same journal with rates over a nominal second is caught.
	w.edit = func(tr *journal.Trial) bool { tr.Elapsed = 1.1; return true }
	if r := row(t, analyze(t, w), "http/hello", "rps"); !warned(r, "rps differs from requests per measured second") {
		t.Errorf("warnings %q", r.Warnings)
	}
}
