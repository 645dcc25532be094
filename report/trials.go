package report

import (
	"cmp"
	"errors"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/runner/journal"
)

// errNoTrials is returned by formats that show trials where there are none.
var errNoTrials = errors.New("a result.json holds no trials: report from the journal instead")

// trialsOf are the trials of a scenario in the blocks that count for every
// arm, by arm in plan order, then block and copy.
func (a *Analysis) trialsOf(scenario string) []*journal.Trial {
	if a.run == nil {
		return nil
	}
	drop := map[int]bool{}
	var out []*journal.Trial
	for i := range a.run.Trials {
		t := &a.run.Trials[i]
		if t.Scenario != scenario {
			continue
		}
		if t.Invalid != "" {
			drop[t.Block] = true
		}
		out = append(out, t)
	}
	out = slices.DeleteFunc(out, func(t *journal.Trial) bool { return drop[t.Block] })
	slices.SortStableFunc(out, func(x, y *journal.Trial) int {
		return cmp.Or(cmp.Compare(a.armIndex(x.Arm), a.armIndex(y.Arm)), cmp.Compare(x.Block, y.Block), cmp.Compare(x.Copy, y.Copy))
	})
	return out
}

func (a *Analysis) armIndex(name string) int {
	return slices.IndexFunc(a.Arms, func(arm journal.Arm) bool { return arm.Name == name })
}

// scenarios lists the scenarios of the table, each once, in its order.
func (a *Analysis) scenarios() []string {
	var out []string
	for _, r := range a.Rows {
		if !slices.Contains(out, r.Scenario) {
			out = append(out, r.Scenario)
		}
	}
	return out
}

// mergeLatency adds up the histograms of trials: percentiles are those of all
// requests, never averages of percentiles. It is nil where a trial has none.
func mergeLatency(trials []*journal.Trial) *hdrhistogram.Histogram {
	var sum *hdrhistogram.Histogram
	for _, t := range trials {
		if len(t.Latency) == 0 {
			return nil
		}
		h, err := hdrhistogram.Decode(t.Latency)
		if err != nil {
			return nil
		}
		if sum == nil {
			sum = h
			continue
		}
		if h.HighestTrackableValue() > sum.HighestTrackableValue() {
			h, sum = sum, h
		}
		sum.Merge(h)
	}
	return sum
}
