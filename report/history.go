package report

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"
)

// Trend is a row of runs over time, which sees what single comparisons
// cannot: a drift of which each step is below the noise.
type Trend struct {
	Name string
	Runs []TrendRun // by time
	Rows []TrendRow // in the order of the newest run that has them
}

// TrendRun is one run of a trend.
type TrendRun struct {
	ID       string
	Started  time.Time
	Revision string // of the last arm
	Machine  string
	Outcome  Outcome
}

// TrendRow is one scenario, metric and candidate over the runs.
type TrendRow struct {
	Scenario string
	Metric   string
	Unit     string
	Better   string
	Arm      string
	Points   []TrendPoint
	// Ratio and Value are the changes of level of the ratio to the baseline
	// and of the candidate's own value. The value depends on the machine of
	// each run; the ratio depends on its baseline.
	Ratio []ChangePoint
	Value []ChangePoint
}

// TrendPoint is one run's figures of a row.
type TrendPoint struct {
	Run     int // index into Trend.Runs
	Ratio   float64
	CI      [2]float64
	Value   float64
	Verdict Verdict
}

// ChangePoint is a change of level, found by optimal partitioning of the
// logarithms (see changePoints).
type ChangePoint struct {
	At            int // index into Points of the first point of the new level
	Before, After float64
	Worse         float64 // After / Before - 1, signed so that a worsening is positive
}

// History puts runs in the order of their times and finds where the level of
// each row changed. Rows without a verdict of the test leave a gap.
func History(runs []*Analysis) (*Trend, error) {
	if len(runs) == 0 {
		return nil, errors.New("no runs: a history needs at least one result")
	}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b *Analysis) int { return a.Header.Started.Compare(b.Header.Started) })
	t := &Trend{Name: runs[len(runs)-1].Spec.Name}
	at := map[rowKey]int{}
	for i := len(runs) - 1; i >= 0; i-- { // the newest run gives the order
		for _, r := range runs[i].Rows {
			k := rowKey{r.Scenario, r.Head.Arm, r.Metric}
			if _, ok := at[k]; !ok && r.Judged {
				at[k] = len(t.Rows)
				t.Rows = append(t.Rows, TrendRow{Scenario: r.Scenario, Metric: r.Metric, Unit: r.Unit, Better: r.Better, Arm: r.Head.Arm})
			}
		}
	}
	for i, a := range runs {
		h := a.Header
		t.Runs = append(t.Runs, TrendRun{h.ID, h.Started, a.Arms[len(a.Arms)-1].Revision, h.Host.CPU, a.Outcome})
		for _, r := range a.Rows {
			if k, ok := at[rowKey{r.Scenario, r.Head.Arm, r.Metric}]; ok && r.Verdict.measured() && r.Ratio > 0 && r.Head.Value > 0 {
				t.Rows[k].Points = append(t.Rows[k].Points, TrendPoint{i, r.Ratio, r.CI, r.Head.Value, r.Verdict})
			}
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		r.Ratio = r.changes(func(p TrendPoint) float64 { return p.Ratio })
		r.Value = r.changes(func(p TrendPoint) float64 { return p.Value })
	}
	return t, nil
}

// changes finds the changes of one figure of the row.
func (r *TrendRow) changes(of func(TrendPoint) float64) []ChangePoint {
	xs := make([]float64, len(r.Points))
	for i, p := range r.Points {
		xs[i] = math.Log(of(p))
	}
	cuts := changePoints(xs)
	var out []ChangePoint
	for i, at := range cuts {
		from, to := 0, len(xs)
		if i > 0 {
			from = cuts[i-1]
		}
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		c := ChangePoint{At: at, Before: math.Exp(mean(xs[from:at])), After: math.Exp(mean(xs[at:to]))}
		c.Worse = c.After/c.Before - 1
		if r.Better == "higher" {
			c.Worse = -c.Worse
		}
		out = append(out, c)
	}
	return out
}

// changed lists the changes of all rows, the worst first.
func (t *Trend) changed() []trendChange {
	var out []trendChange
	for i := range t.Rows {
		r := &t.Rows[i]
		for _, c := range r.Ratio {
			out = append(out, trendChange{r, c, "ratio"})
		}
		for _, c := range r.Value {
			out = append(out, trendChange{r, c, "value"})
		}
	}
	slices.SortStableFunc(out, func(a, b trendChange) int { return cmp.Compare(b.Worse, a.Worse) })
	return out
}

type trendChange struct {
	row *TrendRow
	ChangePoint
	what string
}
