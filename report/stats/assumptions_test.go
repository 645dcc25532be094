package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// alternating starts two copies of two arms as ABBA or BAAB.
func alternating() func(r *rand.Rand, block int, slots [][]float64) {
	return func(r *rand.Rand, _ int, slots [][]float64) {
		placed, first := slices.Clone(slots), r.IntN(2)
		for i, s := range placed {
			arm := (i + i/2 + first) % 2
			slots[arm*2+i/2] = s
		}
	}
}

// rounds gives each of four copies each place once in four blocks, after each
// other copy once: a Williams design, shuffled in every round.
func rounds() func(r *rand.Rand, block int, slots [][]float64) {
	design := [4][4]int{{0, 1, 3, 2}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 0, 2, 1}}
	var labels, lines []int
	return func(r *rand.Rand, block int, slots [][]float64) {
		if block%4 == 0 {
			labels, lines = r.Perm(4), r.Perm(4)
		}
		placed := slices.Clone(slots)
		for place, k := range design[lines[block%4]] {
			slots[labels[k]] = placed[place]
		}
	}
}

// TestCalibrationOrders shows why the order of starts has to be shuffled in
// every block by itself. Orders that are balanced over blocks are safe where a
// place is always slow, and no more than that: the labels that relabelling
// tries are then not those that could have been.
func TestCalibrationOrders(t *testing.T) {
	for i, w := range []world{
		{name: "a slow place", machine: slotted(0, 0, 0, -0.05)},
		{name: "a drift within the block", machine: slotted(0, 0.01, 0.02, 0.03)},
		{name: "a place slow and fast by turns", machine: flipping},
	} {
		for _, o := range []struct {
			name  string
			order order
			exact bool
		}{{"shuffled", nil, true}, {"alternating", alternating, false}, {"balanced over four blocks", rounds, false}} {
			w.rows, w.blocks, w.order = 1, 12, o.order
			n := *tables
			alarms := simulate(n, uint64(300+i), func(r *rand.Rand) tally {
				return w.run(t, r, Options{Alpha: *alpha, Seed: r.Uint64(), Relabellings: *relabellings})
			}).alarms
			t.Logf("| %s | %s | %.2f%% |", w.name, o.name, 100*float64(alarms)/float64(n))
			if limit := mostAlarms(n, *alpha); o.exact && alarms > limit {
				t.Errorf("%d of %d same-code tables have a mark, expected at most %d", alarms, n, limit)
			}
		}
	}
}

// TestCalibrationKept shows what an effect does that a copy keeps through all
// blocks: its folder's place on the disk, say, where a tree is too large to be
// copied afresh for every block. Blocks do not average it out, and relabelling
// cannot see it.
func TestCalibrationKept(t *testing.T) {
	for i, share := range []float64{0, 0.05, 0.1, 0.2, 0.5} {
		for _, blocks := range []int{4, 12, 20} {
			w := world{machine: quiet, rows: 1, blocks: blocks, kept: 0.02 * share}
			n := *tables
			alarms := simulate(n, uint64(400+i), func(r *rand.Rand) tally {
				return w.run(t, r, Options{Alpha: *alpha, Seed: r.Uint64(), Relabellings: *relabellings})
			}).alarms
			t.Logf("| %.0f%% | %d | %.2f%% |", 100*share, blocks, 100*float64(alarms)/float64(n))
			if limit := mostAlarms(n, *alpha); share == 0 && alarms > limit {
				t.Errorf("%d of %d same-code tables have a mark, expected at most %d", alarms, n, limit)
			}
		}
	}
}

// TestCalibrationUnlike shows what is left of the promise where the arms have
// the same mean and are not the same: the candidate's copies vary three times
// as much, evenly or to one side.
func TestCalibrationUnlike(t *testing.T) {
	for i, m := range []struct {
		name string
		make func(*rand.Rand, int) machine
		most float64 // alarms, as a multiple of alpha
	}{
		{"evenly", quiet, 2.5},
		{"30% of starts slow by 8%, or by 24%", bimodalStarts, 4},
		{"exponentially to one side", copiesBy(0.02, skewed), 3},
	} {
		for _, blocks := range []int{4, 6, 12, 20} {
			w := world{machine: m.make, rows: 3, blocks: blocks, jitter: 3}
			n := *tables
			alarms := simulate(n, uint64(500+i), func(r *rand.Rand) tally {
				return w.run(t, r, Options{Alpha: *alpha, Seed: r.Uint64(), Relabellings: *relabellings})
			}).alarms
			t.Logf("| %s | %d | %.2f%% |", m.name, blocks, 100*float64(alarms)/float64(n))
			if limit := mostAlarms(n, m.most**alpha); alarms > limit {
				t.Errorf("%d of %d tables have a mark, expected at most %d", alarms, n, limit)
			}
		}
	}
}
