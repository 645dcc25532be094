package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// Regate judges a result again by another spec, which is trusted where the
// result is not: [ReadResult] or [ReadUntrusted] first, then Regate, then any
// format. Only the figures count. Verdicts, marks, gates and the outcome that
// the result came with are dropped and drawn again, from its ratios, intervals
// and noise, by the margin, thresholds and policies of s; what it says of
// itself can only make it weaker. A row that the spec asks for and the result
// lacks is added, as removed or failed, so that leaving it out cannot pass.
//
// The noise is that of the run: it takes trials to compute it anew, which is
// what [Analyze] does with a journal. So a result that was judged at a smaller
// alpha than s asks for is refused, as it marks less, and so is one of other
// arms than those of s. Nothing is changed then.
func (a *Analysis) Regate(s *spec.Spec) error {
	if err := sameArms(a.Header.Arms, s); err != nil {
		return err
	}
	if a.Spec.Alpha < s.Alpha {
		return fmt.Errorf("its rows were judged at alpha %g, and the spec asks for %g, at which more is marked: measure again with this spec", a.Spec.Alpha, s.Alpha)
	}
	known := byID(s)
	for i := range a.Rows {
		if r := &a.Rows[i]; r.Judged {
			// Which way is worse is the trusted spec's to say, where it knows
			// the metric.
			if m := metricOf(r.Metric, known[r.Scenario]); m.Doc != "" {
				r.Better, r.Unit = m.Better, m.Unit
			}
			r.redraw(s.Margin)
		} else if r.Marked = false; r.Verdict.measured() {
			r.Verdict = "" // shown rows get none
		}
	}
	was := a.Spec
	judgedBy := *s
	judgedBy.Name, judgedBy.Plan = was.Name, was.Plan
	a.Spec, a.SpecSide = &judgedBy, "given"
	a.Warnings = slices.Clone(a.Warnings)
	if was.Digest != s.Digest && !slices.Contains(a.Warnings, anotherSpec) {
		a.Warnings = append(a.Warnings, anotherSpec)
	}
	if was.Alpha > s.Alpha {
		a.Warnings = append(a.Warnings, fmt.Sprintf("the rows were judged at alpha %g, and the spec asks for %g: they are marked more readily than it allows", was.Alpha, s.Alpha))
	}
	for _, w := range changedSpec(a.Header, a) {
		if !slices.Contains(a.Warnings, w) {
			a.Warnings = append(a.Warnings, w)
		}
	}
	a.addMissing(was, s)
	a.Warnings = append(a.Warnings, idleThresholds(a)...)
	a.applyGates()
	return nil
}

// sameArms refuses arms that are not those of the spec, the baseline first.
// Where two changed places, a regression would become an improvement.
func sameArms(arms []journal.Arm, s *spec.Spec) error {
	names := make([]string, len(arms))
	for i, a := range arms {
		names[i] = a.Name
	}
	want := []string{s.Baseline}
	for _, a := range s.Arms {
		if a.Name != s.Baseline {
			want = append(want, a.Name)
		}
	}
	if len(names) == 0 || names[0] != want[0] || !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(want))) {
		return fmt.Errorf("its arms are %.100q, and those of the spec are %q, the baseline first: measure again with this spec", names, want)
	}
	return nil
}

// redraw draws the verdict of a judged row from its figures.
func (r *Row) redraw(margin float64) {
	claim, reason := r.Verdict, r.Reason
	r.Marked, r.Reason, r.undecided = false, "", false
	if !r.hasFigures() {
		r.Verdict, r.Reason = r.withoutFigures(claim, reason)
		return
	}
	r.setEffect(math.Log(r.Ratio))
	r.Marked = math.Abs(r.Change) > r.Noise
	switch {
	case r.Marked && r.Worse > 0:
		r.Verdict = Regressed
	case r.Marked:
		r.Verdict = Improved
	case math.Log(r.CI[0]) >= -math.Log1p(margin) && math.Log(r.CI[1]) <= math.Log1p(margin) && claim != Unsure:
		r.Verdict = Same
	default:
		r.Verdict = Unsure
	}
	if r.Verdict == claim {
		r.Reason = reason
	}
	if r.Verdict != Unsure {
		r.MoreBlocks = 0
	}
}

// hasFigures reports whether the row can be judged from what it holds.
func (r *Row) hasFigures() bool {
	return r.Blocks > 0 && r.Ratio > 0 && !math.IsInf(r.Ratio, 0) && r.Noise >= 0
}

// withoutFigures keeps the verdict of a row that has no figures where the
// trials that it counts agree with it.
func (r *Row) withoutFigures(claim Verdict, reason string) (Verdict, string) {
	switch {
	case claim == New && r.Base.Trials == 0,
		claim == Removed && r.Head.Trials == 0,
		claim == Incomparable, claim == Failed:
		return claim, reason
	case claim == "":
		return Failed, "the result has no verdict and no figures for it"
	}
	return Failed, fmt.Sprintf("the result says %s, and its figures do not", claim)
}

// addMissing adds a row for each that the spec plans and the result lacks.
func (a *Analysis) addMissing(was, s *spec.Spec) {
	held := map[rowKey]bool{}
	for _, r := range a.Rows {
		if r.Judged {
			held[rowKey{r.Scenario, r.Head.Arm, r.Metric}] = true
		}
	}
	// Nothing is known of what trials held: what was not judged is missing.
	nothing := func(string) map[string]bool { return nil }
	for _, p := range planRows(a.Header, was, s, nothing) {
		if held[rowKey{p.scenario.ID(), p.head.Name, p.metric}] {
			continue
		}
		m := metricOf(p.metric, p.scenario)
		nan := math.NaN()
		r := Row{
			Scenario: p.scenario.ID(), Name: p.scenario.Name, Matrix: p.scenario.Matrix, Metric: p.metric, Unit: m.Unit, Better: m.Better,
			Judged: true, Base: Side{Arm: p.base.Name, Value: nan}, Head: Side{Arm: p.head.Name, Value: nan},
			Ratio: nan, Change: nan, Worse: nan, Noise: nan, P: nan, CI: [2]float64{nan, nan}, Range: [2]float64{nan, nan},
			Verdict: p.absent, Reason: p.reason,
		}
		if r.Verdict == "" {
			r.Verdict, r.Reason = Failed, "the spec judges this row, and the result does not hold it"
		}
		a.Rows = append(a.Rows, r)
	}
}
