package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// gated analyses a world with one threshold.
func gated(t *testing.T, w *world, th spec.Threshold) *Analysis {
	t.Helper()
	if th.Metric == "" {
		th.Metric = "rps"
	}
	if th.Scenario == "" {
		th.Scenario = "*"
	}
	w.gates = append(w.gates, th)
	return analyze(t, w)
}

func TestThresholdLevels(t *testing.T) {
	for _, c := range []struct {
		name    string
		th      spec.Threshold
		level   spec.Action
		source  string
		outcome Outcome
	}{
		{"fails", spec.Threshold{Fail: gate("worse > 0.03")}, spec.Fail, "worse > 0.03", GateFailed},
		{"passes", spec.Threshold{Fail: gate("worse > 0.5")}, spec.Pass, "worse > 0.5", Passed},
		{"warns", spec.Threshold{Warn: gate("worse > noise")}, spec.Warn, "worse > noise", Passed},
		{"fail before warn", spec.Threshold{Fail: gate("worse > 0.03"), Warn: gate("worse > 0.01")}, spec.Fail, "worse > 0.03", GateFailed},
		{"warn below fail", spec.Threshold{Fail: gate("worse > 0.5"), Warn: gate("worse > 0.01")}, spec.Warn, "worse > 0.01", Passed},
		{"by a metric", spec.Threshold{Fail: gate("head.latency.p99 > 0.001")}, spec.Fail, "head.latency.p99 > 0.001", GateFailed},
		{"by the verdict", spec.Threshold{Fail: gate(`verdict == "regressed"`)}, spec.Fail, `verdict == "regressed"`, GateFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld("a")
			w.speed = slower("head", "a", 0.1)
			a := gated(t, w, c.th)
			if len(a.Gates) != 1 {
				t.Fatalf("%d gates: %+v", len(a.Gates), a.Gates)
			}
			if g := a.Gates[0]; g.Level != c.level || g.Source != c.source || a.Outcome != c.outcome {
				t.Errorf("%s by %q, outcome %s; want %s by %q, %s", g.Level, g.Source, a.Outcome, c.level, c.source, c.outcome)
			}
		})
	}
}

// What cannot be evaluated never passes.
func TestUndecidedGateNeverPasses(t *testing.T) {
	for _, source := range []string{"head.rtt.p99 > 1", "worse / (ratio - ratio) > 1", "base.wall < 2"} {
		t.Run(source, func(t *testing.T) {
			w := newWorld("a")
			w.policy.Failed = spec.Pass
			a := gated(t, w, spec.Threshold{Fail: gate(source)})
			r := row(t, a, "a", "rps")
			if r.Verdict != Failed || a.Gates[0].Level != spec.Fail || !a.Gates[0].Undecided || a.Outcome != NotMeasured {
				t.Errorf("%s, %+v, outcome %s", r.Verdict, a.Gates[0], a.Outcome)
			}
			if !strings.Contains(r.Reason, source) {
				t.Errorf("reason %q", r.Reason)
			}
		})
	}
	t.Run("a warning that cannot be decided", func(t *testing.T) {
		a := gated(t, newWorld("a"), spec.Threshold{Warn: gate("head.rtt.p99 > 1")})
		if a.Outcome != NotMeasured {
			t.Errorf("outcome %s", a.Outcome)
		}
	})
}

// Noise that is not known yet decides nothing: the policy for unsure rows does.
func TestGateBeforeTheNoiseIsKnown(t *testing.T) {
	for _, c := range []struct {
		source  string
		unsure  spec.Action
		level   spec.Action
		outcome Outcome
	}{
		{"worse > noise", spec.Pass, spec.Pass, Passed},
		{"worse > noise", spec.Warn, spec.Warn, Passed},
		{"worse > noise", spec.Fail, spec.Fail, Undecided},
		{"worse > 2 * noise", spec.Pass, spec.Pass, Passed},
		{"worse > 0.05", spec.Pass, spec.Fail, GateFailed},
	} {
		w := newWorld("a")
		w.blocks, w.judge, w.policy.Unsure = 2, []string{"rps"}, c.unsure
		w.speed = slower("head", "a", 0.3)
		a := gated(t, w, spec.Threshold{Fail: gate(c.source)})
		if g := a.Gates[0]; g.Level != c.level || a.Outcome != c.outcome {
			t.Errorf("%s with unsure: %s: %s, outcome %s; want %s, %s", c.source, c.unsure, g.Level, a.Outcome, c.level, c.outcome)
		}
	}
}

// The mark expression decides the highlight, and never the verdict.
func TestMarkExpression(t *testing.T) {
	for _, c := range []struct {
		source string
		by     float64
		marked bool
		want   Verdict
	}{
		{"worse > 0.5", 0.1, false, Regressed},     // narrower than the test
		{"worse > noise", 0.1, true, Regressed},    // as the test
		{"worse > noise", -0.1, false, Improved},   // only worsenings
		{"change > -2.0", 0, true, Same},           // wider than the test
		{"head.rtt.p99 > 1", 0.1, true, Regressed}, // undecided: the test's own mark stays
	} {
		w := newWorld("a")
		w.noise, w.judge = 0.001, []string{"rps"}
		w.speed = slower("head", "a", c.by)
		a := gated(t, w, spec.Threshold{Mark: gate(c.source)})
		if r := row(t, a, "a", "rps"); r.Marked != c.marked || r.Verdict != c.want {
			t.Errorf("mark: %s at %v: marked %v, %s", c.source, c.by, r.Marked, r.Verdict)
		}
		if len(a.Gates) != 0 || a.Outcome != Passed {
			t.Errorf("mark: %s is no gate: %+v, outcome %s", c.source, a.Gates, a.Outcome)
		}
	}
}

func TestPolicies(t *testing.T) {
	world := func() *world {
		w := newWorld("ok", "bad", "differs", "only-new", "gone")
		w.judge, w.noise = []string{"rps"}, 0.0001
		w.scenarios[3].Arms, w.scenarios[4].Arms = []string{"head"}, []string{"base"}
		w.edit = func(tr *journal.Trial) bool {
			if tr.Scenario == "bad" {
				tr.Invalid = "errors"
			}
			return tr.Scenario != "differs"
		}
		w.finish = func(j *journal.Run) {
			for i := range j.Checks {
				if j.Checks[i].Scenario == "differs" {
					j.Checks[i].Outcome = journal.CheckIncomparable
				}
			}
		}
		w.policy = spec.Policy{Unsure: spec.Pass, New: spec.Pass, Removed: spec.Pass, Failed: spec.Pass, Incomparable: spec.Pass}
		return w
	}
	for _, c := range []struct {
		set     func(*spec.Policy)
		outcome Outcome
	}{
		{func(*spec.Policy) {}, Passed},
		{func(p *spec.Policy) { p.New = spec.Fail }, GateFailed},
		{func(p *spec.Policy) { p.Removed = spec.Fail }, GateFailed},
		{func(p *spec.Policy) { p.Failed = spec.Fail }, NotMeasured},
		{func(p *spec.Policy) { p.Incomparable = spec.Fail }, NotMeasured},
		{func(p *spec.Policy) { p.Failed, p.Removed = spec.Fail, spec.Fail }, GateFailed},
		{func(p *spec.Policy) { p.Failed, p.New = spec.Warn, spec.Warn }, Passed},
	} {
		w := world()
		c.set(&w.policy)
		a := analyze(t, w)
		if a.Outcome != c.outcome {
			t.Errorf("%+v: outcome %s, want %s", w.policy, a.Outcome, c.outcome)
		}
		if len(a.Gates) != 4 {
			t.Errorf("%+v: %d gates, want one for each row without a verdict", w.policy, len(a.Gates))
		}
	}
}

func TestUnsurePolicy(t *testing.T) {
	for level, outcome := range map[spec.Action]Outcome{spec.Pass: Passed, spec.Warn: Passed, spec.Fail: Undecided} {
		w := newWorld("a")
		w.noise, w.policy.Unsure = 0.1, level
		if a := analyze(t, w); a.Outcome != outcome {
			t.Errorf("unsure: %s gives %s, want %s", level, a.Outcome, outcome)
		}
	}
}

// How a run ended decides before any gate, or after all of them.
func TestOutcomeOfRunsCutShort(t *testing.T) {
	for _, c := range []struct {
		end  *journal.End
		slow float64
		want Outcome
	}{
		{&journal.End{Reason: journal.EndBlocks}, 0, Passed},
		{&journal.End{Reason: journal.EndBudget}, 0, Passed},
		{&journal.End{Reason: journal.EndBudget}, 0.2, GateFailed},
		{&journal.End{Reason: journal.EndSettled}, 0, Passed},
		{&journal.End{Reason: journal.EndInterrupted}, 0.2, Interrupted},
		{&journal.End{Reason: journal.EndFailed, Detail: "the server of head died"}, 0, NotMeasured},
		{&journal.End{Reason: journal.EndFailed, Detail: "the server of head died"}, 0.2, GateFailed},
		{nil, 0.2, Interrupted},
	} {
		w := newWorld("a")
		w.speed = slower("head", "a", c.slow)
		w.finish = func(j *journal.Run) { j.End = c.end }
		if a := gated(t, w, spec.Threshold{Fail: gate("worse > noise")}); a.Outcome != c.want {
			t.Errorf("%+v at %v: %s, want %s", c.end, c.slow, a.Outcome, c.want)
		}
	}
}

func TestNothingMeasuredIsNoSuccess(t *testing.T) {
	w := newWorld("a")
	w.policy.Failed = spec.Pass
	w.edit = func(*journal.Trial) bool { return false }
	if a := analyze(t, w); a.Outcome != NotMeasured {
		t.Errorf("outcome %s", a.Outcome)
	}
}

// Globs: `*` is every judged row, a name or a narrower glob also brings in
// metrics that would not be judged otherwise.
func TestThresholdSelectors(t *testing.T) {
	for _, c := range []struct {
		metric, scenario string
		want             []string
	}{
		{"*", "*", []string{"a/1 rps", "a/2 rps", "b rps"}},
		{"rps", "a/*", []string{"a/1 rps", "a/2 rps"}},
		{"latency.p99", "b", []string{"b latency.p99"}},
		{"latency.p*", "b", []string{"b latency.p50", "b latency.p99"}},
		{"rps", "none", nil},
	} {
		w := newWorld("a/1", "a/2", "b")
		w.judge, w.blocks = []string{"rps"}, 4
		a := gated(t, w, spec.Threshold{Metric: c.metric, Scenario: c.scenario, Fail: gate("worse > 10"), Line: 7})
		var got []string
		for _, g := range a.Gates {
			got = append(got, g.Scenario+" "+g.Metric)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s of %s selects %v, want %v", c.metric, c.scenario, got, c.want)
		}
		idle := strings.Contains(fmt.Sprint(a.Warnings), "the threshold in line 7")
		if idle != (c.want == nil) {
			t.Errorf("%s of %s: warnings %q", c.metric, c.scenario, a.Warnings)
		}
	}
}

// A result from elsewhere, gated by a spec that is trusted: what the result
// left out does not pass.
func TestRegateAddsWhatIsMissing(t *testing.T) {
	w := newWorld("a")
	w.judge = []string{"rps"}
	a := analyze(t, w)
	full := newWorld("a", "b")
	full.judge = []string{"rps", "latency.p99"}
	check(t, a.Regate(full.spec()))
	if r := row(t, a, "b", "rps"); r.Verdict != Removed {
		t.Errorf("a scenario that the result lacks: %s", r.Verdict)
	}
	found := false
	for _, r := range a.Rows {
		if r.Scenario == "a" && r.Metric == "latency.p99" && r.Judged {
			found = true
			if r.Verdict != Failed || !math.IsNaN(r.Ratio) {
				t.Errorf("a metric that the result did not judge: %s", r.Verdict)
			}
		}
	}
	if !found || a.Outcome != GateFailed {
		t.Errorf("latency.p99 is there: %v, outcome %s", found, a.Outcome)
	}
}
