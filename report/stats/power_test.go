package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var sites = []site{
	{name: "steady machine", start: 0.019, window: 0.005, drift: 0},
	{name: "shared machine", start: 0.019, window: 0.014, drift: 0.05},
}

// TestCalibrationPower compares rules at the same measuring time: how often a
// table of same code has any mark, and how often a changed row is found.
func TestCalibrationPower(t *testing.T) {
	n := max(50, *tables/4)
	for _, s := range sites {
		for _, blocks := range []int{4, 6, 12, 20} {
			t.Run(fmt.Sprintf("%s/%d", s.name, blocks), func(t *testing.T) {
				rates := map[string][]float64{}
				for i, rule := range rules {
					line := fmt.Sprintf("| %s | %d s |", rule.name, 4*blocks)
					for _, change := range []float64{0, 0.01, 0.02, 0.03, 0.05} {
						rate := rule.rate(n, uint64(i), s, blocks, change)
						rates[rule.name] = append(rates[rule.name], rate)
						line += fmt.Sprintf(" %.1f%% |", 100*rate)
					}
					t.Log(line)
				}
				checkPower(t, n, rates)
			})
		}
	}
}

// rate is the share of n runs in which the rule marks the changed row, or,
// without a change, any row.
func (u rule) rate(n int, seed uint64, s site, blocks int, change float64) float64 {
	hits := simulate(n, seed, func(r *rand.Rand) tally {
		marks := u.run(r, s, blocks, change)
		hit := marks[0]
		for _, m := range marks[1:] {
			hit = hit || change == 0 && m
		}
		if hit {
			return tally{alarms: 1}
		}
		return tally{}
	}).alarms
	return float64(hits) / float64(n)
}

// checkPower holds relabelling to its error rate, and to finding no less than
// a t test on the same blocks, which knows less of each block.
func checkPower(t *testing.T, n int, rates map[string][]float64) {
	ours, theirs := rates["relabelling"], rates["t test on blocks, p < 1% / rows"]
	if limit := mostAlarms(n, 0.01); ours[0]*float64(n) > float64(limit) {
		t.Errorf("relabelling marks %.1f%% of same-code tables, expected at most %d of %d", 100*ours[0], limit, n)
	}
	for i := range ours {
		if slack := 4 * math.Sqrt(0.5/float64(n)); i > 0 && ours[i] < theirs[i]-slack {
			t.Errorf("relabelling finds %.1f%%, a t test on blocks %.1f%%", 100*ours[i], 100*theirs[i])
		}
	}
}

// TestCalibrationStopping measures what early stopping saves: a plan of 4 to
// 20 blocks that ends when every row is marked or the same within 2%, against
// the same plan without looks; and what size the marked rows report.
func TestCalibrationStopping(t *testing.T) {
	n, drawn := max(50, *tables/4), *relabellings
	if drawn > 0 {
		drawn = max(drawn, 5000) // fewer cannot mark at the first look
	}
	for _, change := range []float64{0, 0.01, 0.02, 0.03, 0.05, 0.1} {
		for _, looks := range [][]int{nil, stopping} {
			w := world{machine: quiet, rows: 3, blocks: 20, looks: looks, effect: func(_, _ int) float64 { return change }}
			sum := simulate(n, 9, func(r *rand.Rand) tally {
				return w.run(t, r, Options{Alpha: 0.01, Seed: r.Uint64(), Relabellings: drawn})
			})
			rows := float64(3 * n)
			t.Logf("| %.0f%% | %s | %.1f%% | %.1f%% | %.1f | %.1f%% |", 100*change, w.plan(), 100*float64(sum.marked)/rows,
				100*float64(sum.same)/rows, float64(sum.blocks)/float64(n), 100*sum.told/max(1, float64(sum.marked)))
			if limit := mostAlarms(3*n, 0.01); change >= 0.02 && sum.same > limit {
				t.Errorf("%d of %d rows that moved by %v are called the same within 2%%, expected at most %d", sum.same, 3*n, change, limit)
			}
			if missed := 3*n - sum.marked; change >= 0.05 && missed > 3*n/50 {
				t.Errorf("%d of %d rows that moved by %v are not marked", missed, 3*n, change)
			}
		}
	}
}
