package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// changed is a run whose change touches its own benchmark.
func changed(p spec.Policy, o journal.Origin) *world {
	w := newWorld("a")
	p.Unsure = spec.Pass
	w.policy = p
	w.finish = func(j *journal.Run) { j.Header.Origin = &o }
	return w
}

func TestChangedSpecIsShownAndGated(t *testing.T) {
	files := []string{"bench.yaml", "order.lua"}
	base := journal.Origin{Side: "base", Base: "b1", Head: "h1", MergeBase: "m1", Changed: files}
	approved := base
	approved.Approved = "bench-ok"
	for _, c := range []struct {
		name    string
		policy  spec.Policy
		origin  journal.Origin
		level   spec.Action // of the gate; "": none
		outcome Outcome
		reason  string
	}{
		{"no policy", spec.Policy{}, base, "", Passed, ""},
		{"pass", spec.Policy{SpecChanged: spec.Pass}, base, "", Passed, ""},
		{"warn", spec.Policy{SpecChanged: spec.Warn}, base, spec.Warn, Passed, "changes bench.yaml, order.lua"},
		{"fail", spec.Policy{SpecChanged: spec.Fail}, base, spec.Fail, GateFailed, "changes bench.yaml, order.lua"},
		{"no label", spec.Policy{SpecChanged: spec.Fail, SpecChangedLabel: "bench-ok"}, base, spec.Fail, GateFailed, "needs the label bench-ok"},
		{"label", spec.Policy{SpecChanged: spec.Fail, SpecChangedLabel: "bench-ok"}, approved, spec.Warn, Passed, "its label bench-ok allows"},
		{"another label", spec.Policy{SpecChanged: spec.Fail, SpecChangedLabel: "other"}, approved, spec.Fail, GateFailed, "needs the label other"},
		{"a label without a policy that asks", spec.Policy{SpecChanged: spec.Fail}, approved, spec.Fail, GateFailed, "changes"},
		{"nothing changed", spec.Policy{SpecChanged: spec.Fail}, journal.Origin{Side: "base"}, "", Passed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := analyze(t, changed(c.policy, c.origin))
			if a.Outcome != c.outcome || a.SpecSide != "base" {
				t.Errorf("outcome %s, side %s", a.Outcome, a.SpecSide)
			}
			var level spec.Action
			reason := ""
			for _, g := range a.Gates {
				level, reason = g.Level, g.Reason
			}
			if level != c.level || !strings.Contains(reason, c.reason) {
				t.Errorf("gate %q: %q, want %q: %q", level, reason, c.level, c.reason)
			}
			shown := len(c.origin.Changed) > 0
			if got := strings.Contains(strings.Join(a.Warnings, "\n"), "measured by the spec of the base"); got != shown {
				t.Errorf("shown %v, want %v: %q", got, shown, a.Warnings)
			}
		})
	}
}

// The gate of the whole run appears in every format, and comes back from
// result.json with what it rests on.
func TestChangedSpecInEveryFormat(t *testing.T) {
	many := []string{"bench.yaml", "b", "c", "d", "e", "f", "g"}
	a := analyze(t, changed(spec.Policy{SpecChanged: spec.Fail}, journal.Origin{Side: "head", Base: "b1", Head: "h1", MergeBase: "m1", Changed: many}))
	for _, format := range []string{"text", "markdown", "html", "junit", "github"} {
		var b bytes.Buffer
		if err := Write(&b, format, a, RenderOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"the benchmark: ", "bench.yaml, b, c, d, e and 2 more"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not hold %q:\n%s", format, want, b.String())
			}
		}
	}
	var b bytes.Buffer
	check(t, Write(&b, "json", a, RenderOptions{}))
	again, err := ReadResult(&b)
	check(t, err)
	s := *a.Spec
	s.Policy = spec.Policy{SpecChanged: spec.Fail}
	check(t, again.Regate(&s))
	if o := again.Header.Origin; o == nil || len(o.Changed) != len(many) || o.MergeBase != "m1" || again.Outcome != GateFailed {
		t.Errorf("read back: %+v, outcome %s", again.Header.Origin, again.Outcome)
	}
}

// A table of which no row compares anything passes under no policy.
func TestNothingComparableNeverPasses(t *testing.T) {
	easy := spec.Policy{Unsure: spec.Pass, New: spec.Pass, Removed: spec.Pass, Failed: spec.Pass, Incomparable: spec.Pass}
	for _, outcome := range []string{journal.CheckNew, journal.CheckRemoved, journal.CheckFailed, journal.CheckIncomparable} {
		w := newWorld("a", "b")
		w.policy = easy
		w.edit = func(*journal.Trial) bool { return false }
		w.finish = func(j *journal.Run) {
			for i := range j.Checks {
				j.Checks[i].Outcome = outcome
			}
		}
		if a := analyze(t, w); a.Outcome != NotMeasured {
			t.Errorf("every row %s: outcome %s", outcome, a.Outcome)
		}
	}
	w := newWorld() // no row at all
	if a := analyze(t, w); a.Outcome != NotMeasured {
		t.Errorf("no row: outcome %s", a.Outcome)
	}
}

// A spec from elsewhere asks for its scenarios, also where the run was told
// to leave some out.
func TestGivenSpecAsksForFilteredScenarios(t *testing.T) {
	w := newWorld("a")
	w.finish = func(j *journal.Run) { j.Header.Filter = []string{"a"} }
	given := newWorld("a", "b").spec()
	a, err := Analyze(w.run(), given)
	check(t, err)
	if r := row(t, a, "b", "rps"); r.Verdict != Removed || a.Outcome != GateFailed {
		t.Errorf("%s, outcome %s", r.Verdict, a.Outcome)
	}
}
