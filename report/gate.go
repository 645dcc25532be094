package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// applyGates evaluates every threshold on every row that it selects, applies
// the policies to the rows without a passing verdict, and draws the outcome.
//
// What cannot be evaluated never passes: an expression that meets a missing
// sample or a number that is not finite makes the row failed.
func (a *Analysis) applyGates() {
	a.Gates = nil
	for i := range a.Spec.Thresholds {
		t := &a.Spec.Thresholds[i]
		for k := range a.Rows {
			r := &a.Rows[k]
			if !r.Judged || !r.Verdict.measured() || !t.Selects(r.Metric, r.Scenario, r.Name) {
				continue
			}
			a.applyThreshold(t, i, r)
		}
	}
	a.applyMarks()
	for k := range a.Rows {
		a.applyPolicy(&a.Rows[k])
	}
	a.applyChanged()
	a.Outcome = a.outcome()
	failed := slices.ContainsFunc(a.Gates, func(g GateResult) bool { return g.Level == spec.Fail })
	if a.Outcome == NotMeasured && !failed && a.Partial == "" && !slices.Contains(a.Warnings, nothingCompared) {
		a.Warnings = append(a.Warnings, nothingCompared)
	}
}

// nothingCompared explains an outcome that no gate does.
const nothingCompared = "nothing could be compared: no judged row has figures of both arms, and such a table passes under no policy"

// policyChanged names the policy about a change to the benchmark itself. Its
// gate belongs to no row.
const policyChanged = "spec_changed"

// applyChanged gates a change to the spec, or to files that it names, by the
// policy. A label of the pull request makes a failure a warning.
func (a *Analysis) applyChanged() {
	o := a.Header.Origin
	level := orPass(a.Spec.Policy.SpecChanged)
	if o == nil || len(o.Changed) == 0 || level == spec.Pass {
		return
	}
	reason := "the change under test changes " + changedList(o)
	if label := a.Spec.Policy.SpecChangedLabel; level == spec.Fail && label != "" {
		if o.Approved == label {
			level, reason = spec.Warn, reason+", which its label "+label+" allows"
		} else {
			reason += ", which needs the label " + label
		}
	}
	a.Gates = append(a.Gates, GateResult{Threshold: -1, Level: level, Policy: policyChanged, Reason: reason})
}

// measured reports whether the verdict rests on samples of both arms.
func (v Verdict) measured() bool {
	return v == Regressed || v == Improved || v == Same || v == Unsure
}

func (a *Analysis) applyThreshold(t *spec.Threshold, index int, r *Row) {
	g := GateResult{
		Threshold: index, Metric: r.Metric, Scenario: r.Scenario, Arm: r.Head.Arm,
		Level: spec.Pass, Message: t.Message, Line: t.Line,
	}
	for _, e := range []struct {
		gate  *spec.Gate
		level spec.Action
	}{{t.Fail, spec.Fail}, {t.Warn, spec.Warn}} {
		if e.gate == nil {
			continue
		}
		if g.Source == "" || g.Level == spec.Pass {
			g.Source = e.gate.Source
		}
		hit, err := r.eval(e.gate)
		switch {
		case err != nil:
			g.Level, g.Source, g.Undecided = spec.Fail, e.gate.Source, true
			g.Reason = "cannot be decided: " + err.Error()
			r.Verdict, r.Reason = Failed, fmt.Sprintf("the gate `%s` cannot be decided: %v", e.gate.Source, err)
			r.Marked, r.undecided = false, true
			a.Gates = append(a.Gates, g)
			return
		case hit:
			g.Level, g.Source, g.Reason = e.level, e.gate.Source, r.figures()
			a.Gates = append(a.Gates, g)
			return
		}
	}
	if t.Fail == nil && t.Warn == nil {
		return
	}
	g.Reason = r.figures()
	if math.IsInf(r.Noise, 1) {
		// The expression compared with a noise that no number of blocks so
		// far could exceed: that is not knowing, and the policy says what
		// not knowing means.
		g.Level, g.Policy = orPass(a.Spec.Policy.Unsure), "unsure"
		g.Reason = "the noise is not known yet: no change could be marked after so few blocks"
	}
	a.Gates = append(a.Gates, g)
}

// huge stands for an infinity that is known rather than missing: the noise of
// a row that cannot be marked yet, the interval of too few blocks. With it,
// `worse > noise` is false, and `worse > 0.05` is decided by its own figures.
// It leaves room for arithmetic.
const huge = 1e100

// eval evaluates a gate on a row.
func (r *Row) eval(g *spec.Gate) (bool, error) {
	env := spec.RowEnv{
		Metric: r.Metric, Scenario: r.Scenario, Matrix: map[string]string{},
		Ratio: r.Ratio, Change: r.Change, Worse: r.Worse, Noise: finite(r.Noise),
		CILow: finite(r.CI[0]), CIHigh: finite(r.CI[1]), P: r.P,
		Verdict: string(r.Verdict), Blocks: r.Blocks,
		Base: r.Base.Metrics, Head: r.Head.Metrics,
	}
	for _, x := range r.Matrix {
		env.Matrix[x.Name] = x.Value
	}
	return g.Eval(env)
}

// finite replaces an infinity, and leaves NaN, which is a missing value.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	return math.Max(-huge, math.Min(huge, x))
}

// figures are the numbers that decide most gates.
func (r *Row) figures() string {
	noise := "unknown"
	if !math.IsInf(r.Noise, 1) {
		noise = fmt.Sprintf("±%.1f%%", 100*r.Noise)
	}
	return fmt.Sprintf("%+.1f%%, noise %s", 100*r.Change, noise)
}

// applyMarks lets the thresholds' mark expressions decide what is
// highlighted; the verdict stays that of the test.
func (a *Analysis) applyMarks() {
	for k := range a.Rows {
		r := &a.Rows[k]
		if !r.Verdict.measured() {
			continue
		}
		any, hit := false, false
		for i := range a.Spec.Thresholds {
			t := &a.Spec.Thresholds[i]
			if t.Mark == nil || !r.Judged || !t.Selects(r.Metric, r.Scenario, r.Name) {
				continue
			}
			ok, err := r.eval(t.Mark)
			if err != nil {
				r.Warnings = append(r.Warnings, fmt.Sprintf("the mark `%s` cannot be decided: %v", t.Mark.Source, err))
				continue
			}
			any, hit = true, hit || ok
		}
		if any {
			r.Marked = hit
		}
	}
}

// applyPolicy gates a judged row by what its verdict means where no
// expression can say.
func (a *Analysis) applyPolicy(r *Row) {
	if !r.Judged {
		return
	}
	p := a.Spec.Policy
	var level spec.Action
	switch r.Verdict {
	case Unsure:
		level = p.Unsure
	case New:
		level = p.New
	case Removed:
		level = p.Removed
	case Failed:
		level = p.Failed
	case Incomparable:
		level = p.Incomparable
	default:
		return
	}
	level = orPass(level)
	if r.Verdict == Unsure && level == spec.Pass {
		return // nearly every row of a short run; the table says it
	}
	if r.undecided {
		return // its gate has failed already
	}
	a.Gates = append(a.Gates, GateResult{
		Threshold: -1, Metric: r.Metric, Scenario: r.Scenario, Arm: r.Head.Arm,
		Level: level, Policy: string(r.Verdict), Reason: r.Reason,
	})
}

func orPass(x spec.Action) spec.Action {
	if x == "" {
		return spec.Pass
	}
	return x
}

// outcome draws the one word that cmd maps to the exit code. A regression
// found outranks a row that could not be measured, which outranks a row that
// is unsure: each says more about the code than the next.
func (a *Analysis) outcome() Outcome {
	if a.endReason == "" || a.endReason == journal.EndInterrupted {
		return Interrupted
	}
	var failed, unmeasured, unsure bool
	for _, g := range a.Gates {
		if g.Level != spec.Fail {
			continue
		}
		switch {
		case g.Undecided || g.Policy == string(Failed) || g.Policy == string(Incomparable):
			unmeasured = true
		case g.Policy == string(Unsure):
			unsure = true
		default:
			failed = true
		}
	}
	switch {
	case failed:
		return GateFailed
	case unmeasured || a.Partial != "" || a.nothingMeasured():
		return NotMeasured
	case unsure:
		return Undecided
	}
	return Passed
}

// nothingMeasured reports whether no judged row compares anything, which is no
// success whatever the policies say: a table of new rows has not shown that
// nothing became slower. Of a spec from elsewhere, the scenarios that it names
// are what has to be compared.
func (a *Analysis) nothingMeasured() bool {
	asked := byID(a.Spec)
	for _, r := range a.Rows {
		_, ok := asked[r.Scenario]
		if r.Judged && r.Verdict.measured() && (ok || a.SpecSide != "given") {
			return false
		}
	}
	return true
}
