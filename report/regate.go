package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-bench/tandem/spec"
)

// Regate draws the gates again by the thresholds and policies of another
// spec, which is trusted where the result is not. The verdicts stay, since
// they belong to the run. A row that the spec asks for and the result lacks is
// added, as removed or failed, so that leaving it out cannot pass.
func (a *Analysis) Regate(s *spec.Spec) {
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.undecided {
			r.Verdict, r.Reason, r.undecided = r.tested, "", false
		}
		r.Marked = r.Verdict == Regressed || r.Verdict == Improved
	}
	was := a.Spec
	judgedBy := *s
	judgedBy.Name, judgedBy.Plan = was.Name, was.Plan
	a.Spec, a.SpecSide = &judgedBy, "given"
	a.Warnings = slices.Clone(a.Warnings)
	if was.Alpha > s.Alpha {
		a.Warnings = append(a.Warnings, fmt.Sprintf("the rows were judged at alpha %g, and the spec asks for %g: they are marked more readily than it allows", was.Alpha, s.Alpha))
	}
	a.addMissing(was, s)
	a.Warnings = append(a.Warnings, idleThresholds(a)...)
	a.applyGates()
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
