package report

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/tandem-bench/tandem/runner/journal"
)

// Comparison holds two runs of different times against each other.
//
// Two runs see two machine moments, so their values cannot be compared. Their
// ratios can be where both hold the same baseline: its copies stand for the
// machine in each, and the ratio of the ratios is free of it. Elsewhere rows
// are shown without a verdict.
type Comparison struct {
	Old, New *Analysis
	SameBase bool   // both runs measured the same baseline
	Why      string // how that is known, or why not
	Alpha    float64
	Rows     []ComparedRow
	Warnings []string
}

// ComparedRow is one scenario and metric of both runs' candidates.
type ComparedRow struct {
	Scenario string
	Metric   string
	Unit     string
	Better   string
	Arm      string

	Old, New *Row // nil where the run has no such row

	Ratio   float64 // new ratio / old ratio; NaN where there is none
	Change  float64
	Worse   float64
	CI      [2]float64
	Noise   float64 // |change| at which the row would be marked
	P       float64 // adjusted for the table
	Verdict Verdict // "" where there is none
	Reason  string
}

// Compare compares the candidates of two runs by the ratios to their common
// baseline.
//
// The block effects of the two runs are independent samples, so a row is
// tested by Welch's t test on their logarithms, at the new run's alpha shared
// by Bonferroni over the rows. Unlike the verdicts within a run, this takes
// block effects to be roughly normal.
func Compare(old, new *Analysis) *Comparison {
	c := &Comparison{Old: old, New: new, Alpha: new.Spec.Alpha}
	c.SameBase, c.Why = sameBaseline(old.Baseline, new.Baseline)
	c.pair()
	c.judge()
	c.warn()
	return c
}

// sameBaseline reports whether two runs measured the same baseline: the same
// built tree, or else the same clean commit.
func sameBaseline(a, b journal.Arm) (bool, string) {
	switch {
	case a.Digest != "" && b.Digest != "":
		if a.Digest == b.Digest {
			return true, "the baselines' built trees are identical"
		}
		return false, "the baselines' built trees differ"
	case a.Revision == "" || b.Revision == "":
		return false, "it is not recorded what the baselines were built from"
	case a.Dirty || b.Dirty:
		return false, "a baseline had uncommitted changes"
	case a.Revision == b.Revision:
		return true, "both baselines are commit " + shortRevision(plain(a.Revision))
	}
	return false, fmt.Sprintf("the baselines are different commits, %s and %s", shortRevision(plain(a.Revision)), shortRevision(plain(b.Revision)))
}

// pair finds the rows of both runs that belong together, by scenario, metric
// and candidate; with one candidate in each run its name does not matter.
func (c *Comparison) pair() {
	byName := len(c.Old.Arms) > 2 || len(c.New.Arms) > 2
	key := func(r *Row) rowKey {
		if byName {
			return rowKey{r.Scenario, r.Head.Arm, r.Metric}
		}
		return rowKey{r.Scenario, "", r.Metric}
	}
	at := map[rowKey]int{}
	for i := range c.New.Rows {
		r := &c.New.Rows[i]
		if r.Judged {
			at[key(r)] = len(c.Rows)
			c.Rows = append(c.Rows, ComparedRow{Scenario: r.Scenario, Metric: r.Metric, Unit: r.Unit, Better: r.Better, Arm: r.Head.Arm, New: r})
		}
	}
	for i := range c.Old.Rows {
		r := &c.Old.Rows[i]
		if !r.Judged {
			continue
		}
		if k, ok := at[key(r)]; ok {
			c.Rows[k].Old = r
			continue
		}
		c.Rows = append(c.Rows, ComparedRow{Scenario: r.Scenario, Metric: r.Metric, Unit: r.Unit, Better: r.Better, Arm: r.Head.Arm, Old: r})
	}
}

func (c *Comparison) judge() {
	tested := 0
	for i := range c.Rows {
		r := &c.Rows[i]
		nan := math.NaN()
		r.Ratio, r.Change, r.Worse, r.Noise, r.P, r.CI = nan, nan, nan, nan, nan, [2]float64{nan, nan}
		switch {
		case r.Old == nil:
			r.Verdict, r.Reason = New, "the old run does not have this row"
		case r.New == nil:
			r.Verdict, r.Reason = Removed, "the new run does not have this row"
		case !r.Old.Verdict.measured():
			r.Verdict, r.Reason = Incomparable, "in the old run: "+join(string(r.Old.Verdict), r.Old.Reason)
		case !r.New.Verdict.measured():
			r.Verdict, r.Reason = Incomparable, "in the new run: "+join(string(r.New.Verdict), r.New.Reason)
		default:
			r.setRatio(math.Log(r.New.Ratio) - math.Log(r.Old.Ratio))
			if !c.SameBase {
				r.Reason = c.Why
			} else if len(r.Old.PerBlock) > 1 && len(r.New.PerBlock) > 1 {
				tested++
			}
		}
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if c.SameBase && !math.IsNaN(r.Ratio) {
			r.test(c.Alpha, tested, c.New.Spec.Margin)
		}
	}
}

func (r *ComparedRow) setRatio(log float64) {
	r.Ratio, r.Change = math.Exp(log), math.Expm1(log)
	r.Worse = r.Change
	if r.Better == "higher" {
		r.Worse = -r.Change
	}
}

// test is Welch's t test on the block effects of both runs.
func (r *ComparedRow) test(alpha float64, rows int, margin float64) {
	a, b := logsOf(r.Old.PerBlock), logsOf(r.New.PerBlock)
	if len(a) < 2 || len(b) < 2 {
		r.Verdict, r.Reason = Unsure, "a run has fewer than two blocks"
		return
	}
	ma, va := stat.MeanVariance(a, nil)
	mb, vb := stat.MeanVariance(b, nil)
	ea, eb := va/float64(len(a)), vb/float64(len(b))
	se := math.Sqrt(ea + eb)
	if se == 0 {
		r.Verdict, r.Reason = Unsure, "no block differs from another"
		return
	}
	freedom := (ea + eb) * (ea + eb) / (ea*ea/float64(len(a)-1) + eb*eb/float64(len(b)-1))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}
	effect := mb - ma
	r.setRatio(effect)
	r.P = math.Min(1, float64(rows)*2*t.Survival(math.Abs(effect)/se))
	half := t.Quantile(1-alpha/2) * se
	r.CI = [2]float64{math.Exp(effect - half), math.Exp(effect + half)}
	critical := t.Quantile(1-alpha/float64(2*rows)) * se
	r.Noise = math.Expm1(critical)
	if effect < 0 {
		r.Noise = -math.Expm1(-critical)
	}
	switch {
	case math.Abs(effect) > critical && r.Worse > 0:
		r.Verdict = Regressed
	case math.Abs(effect) > critical:
		r.Verdict = Improved
	case math.Abs(effect)+half < math.Log1p(margin):
		r.Verdict = Same
	default:
		r.Verdict = Unsure
	}
}

func logsOf(vs []float64) []float64 {
	out := make([]float64, len(vs))
	for i, v := range vs {
		out[i] = math.Log(v)
	}
	return out
}

// warn says what sets the two runs apart beside their times.
func (c *Comparison) warn() {
	add := func(format string, args ...any) { c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...)) }
	a, b := c.Old.Header, c.New.Header
	if a.Host.CPU != b.Host.CPU || a.Host.Kernel != b.Host.Kernel || a.Host.Cores != b.Host.Cores {
		add("the machines differ: %s with %d CPUs and kernel %s, then %s with %d CPUs and kernel %s: a ratio can depend on the machine",
			plain(a.Host.CPU), a.Host.Cores, plain(a.Host.Kernel), plain(b.Host.CPU), b.Host.Cores, plain(b.Host.Kernel))
	}
	if c.Old.Spec.Digest != c.New.Spec.Digest {
		add("the specs differ, so a scenario of one name may not be the same load")
	}
	for _, v := range []struct {
		name string
		a    *Analysis
	}{{"old", c.Old}, {"new", c.New}} {
		if v.a.Partial != "" {
			add("the %s run is partial: %s", v.name, v.a.Partial)
		}
	}
	if a.ID != "" && a.ID == b.ID {
		add("both are the same run")
	}
}
