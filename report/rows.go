package report

import (
	"math"
	"slices"
	"sync"

	"github.com/tandem-bench/tandem/runner/journal"
)

// fillRows makes the rows of the plan and returns the samples behind them.
// The rows of one scenario and candidate are made together, since they share
// most of their figures, and different ones on different CPUs: a long run has
// hundreds of thousands of trials.
func (a *Analysis) fillRows(plan []planned, ix *index, j *journal.Run) []sample {
	samples := make([]sample, len(plan))
	a.Rows = make([]Row, len(plan))
	var wg sync.WaitGroup
	for from := 0; from < len(plan); {
		first, to := from, from+1
		for to < len(plan) && plan[to].scenario.ID() == plan[from].scenario.ID() && plan[to].group == plan[from].group {
			to++
		}
		wg.Go(func() {
			sides, evidence := sideMemo{}, evidenceMemo{}
			for i := first; i < to; i++ {
				p := plan[i]
				samples[i] = ix.collect(p.scenario.ID(), p.base.Name, p.head.Name, p.metric)
				a.Rows[i] = newRow(p, samples[i], j, a, sides, &evidence)
			}
		})
		from = to
	}
	wg.Wait()
	return samples
}

// sideMemo keeps, for each arm, the side that was made last: the rows of a
// scenario are mostly of the same trials.
type sideMemo map[string]struct {
	trials []*journal.Trial
	side   Side
}

// of is newSide, from memory where the trials are the same.
func (m sideMemo) of(arm, metric string, trials []*journal.Trial) Side {
	last, ok := m[arm]
	if !ok || !slices.Equal(last.trials, trials) {
		last.trials, last.side = trials, newSide(arm, metric, trials)
		m[arm] = last
	}
	side := last.side
	side.Value = math.NaN()
	if v, ok := side.Metrics[metric]; ok {
		side.Value = v
	}
	return side
}
