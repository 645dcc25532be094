package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-bench/tandem/runner/journal"
)

// sumAudit sums up the outside evidence on all trials.
func sumAudit(trials []journal.Trial, rows []Row) AuditSummary {
	s := AuditSummary{Trials: len(trials)}
	var solo []float64
	type run struct {
		block    int
		scenario string
	}
	seen := map[run]bool{}
	for _, t := range trials {
		if t.Invalid != "" {
			s.Invalid++
		}
		s.StealMax = math.Max(s.StealMax, t.Audit.Steal)
		s.StealMean += t.Audit.Steal / float64(len(trials))
		if rps := t.Metrics.Value("rps"); rps > 0 && t.Audit.SoloRPS > 0 {
			solo = append(solo, t.Audit.SoloRPS/rps)
		}
		// The cycles are those of the run that all copies took part in.
		if k := (run{t.Block, t.Scenario}); !seen[k] {
			seen[k] = true
			s.Cycles += t.Audit.Cycles
			s.Discarded += t.Audit.Discarded
		}
	}
	s.SoloRatio = median(solo)
	s.BlocksDropped = blocksDropped(rows)
	return s
}

// blocksDropped counts a block once for each scenario that it is left out of:
// every metric and candidate of the scenario lacks the same block, and the
// reader would take two rows of one scenario for two blocks.
func blocksDropped(rows []Row) int {
	most := map[string]int{}
	for _, r := range rows {
		if r.Judged && r.Verdict.measured() {
			most[r.Scenario] = max(most[r.Scenario], r.Dropped)
		}
	}
	n := 0
	for _, dropped := range most {
		n += dropped
	}
	return n
}

func audits(trials []*journal.Trial, of func(journal.Audit) float64) []float64 {
	out := make([]float64, len(trials))
	for i, t := range trials {
		out[i] = of(t.Audit)
	}
	return out
}

func medianMetric(trials []*journal.Trial, name string) (float64, bool) {
	var vs []float64
	for _, t := range trials {
		if v, ok := t.Metrics.Get(name); ok {
			vs = append(vs, v)
		}
	}
	return median(vs), len(vs) > 0
}

// median is 0 for no values.
func median(vs []float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(vs))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// mean is 0 for no values.
func mean(vs []float64) float64 {
	var sum float64
	for _, v := range vs {
		sum += v
	}
	if len(vs) == 0 {
		return 0
	}
	return sum / float64(len(vs))
}

func percent(x float64) string {
	if x < 0.1 {
		return fmt.Sprintf("%.1f%%", 100*x)
	}
	return fmt.Sprintf("%.0f%%", 100*x)
}
