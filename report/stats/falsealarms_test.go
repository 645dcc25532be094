package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// alarm is a false alarm seen in public, made again: identical code in a
// world that once fooled a tool.
type alarm struct {
	shape string
	world world
	// trap measures and judges as the tool did, and says whether it marks;
	// often is how often it must, for the world to be the one that was seen.
	trap  func(r *rand.Rand) bool
	often float64
}

var alarms = []alarm{
	{"the second arm always second, the machine slowing", world{machine: slowing(0.002), rows: 3, blocks: 12},
		orderTrap(slowing(0.002), 24, func(slot int) bool { return slot >= 12 }), 0.9},
	{"a fixed order within each pair", world{machine: slotted(0, -0.2), rows: 3, blocks: 12},
		pairTrap(slotted(0, -0.2), 2, func(slot int) bool { return slot == 1 }), 0.9},
	{"the arms on different runners", world{machine: runners, rows: 3, blocks: 12},
		orderTrap(twoRunners, 24, func(slot int) bool { return slot >= 12 }), 0.7},
	{"one arm after the other on a loaded machine", world{machine: drifting, rows: 3, blocks: 12},
		thresholdTrap(drifting, 12, 0.05), 0.5},
	{"caches warm up between the arms", world{machine: slotted(-0.06, 0, 0, 0), rows: 3, blocks: 12},
		pairTrap(slotted(-0.06, 0), 2, func(slot int) bool { return slot == 1 }), 0.9},
	{"380 rows, each alone at 5%", world{machine: quiet, rows: 380, blocks: 12}, eachAlone(380), 0.9},
	{"53 rows a night", world{machine: quiet, rows: 53, blocks: 12}, eachAlone(53), 0.6},
	{"one slot of four slower, orders not balanced", world{machine: slotted(0, 0, 0, -0.05), rows: 3, blocks: 12},
		pairTrap(slotted(0, 0, 0, -0.05), 4, func(slot int) bool { return slot >= 2 }), 0.9},
	{"the start decides the speed", world{machine: copiesBy(0.05, normal), rows: 3, blocks: 4}, twoStarts(0.05, normal), 0.9},
	{"sampling until significant", world{machine: quiet, rows: 1, blocks: 20, looks: stopping}, untilSignificant, 0.15},
	{"one block in ten loses 30%", world{machine: stolen(false), rows: 3, blocks: 12}, movedTrap(stolen(false), 12, 0.03), 0.1},
	{"70% of starts fast, 30% slow by 8%", world{machine: bimodalStarts, rows: 3, blocks: 12}, twoStarts(0.02, bimodal), 0.3},
	{"eleven samples against ten, totals compared", world{machine: seconds, rows: 3, blocks: 6}, totals, 0.4},
}

// TestCalibrationFalseAlarms runs each world as a tool did that marked it, and
// as Tandem does.
func TestCalibrationFalseAlarms(t *testing.T) {
	for i, a := range alarms {
		t.Run(a.shape, func(t *testing.T) {
			n := min(*tables, max(60, 6000/a.world.rows))
			traps := simulate(n, uint64(100+i), func(r *rand.Rand) tally {
				if a.trap(r) {
					return tally{alarms: 1}
				}
				return tally{}
			}).alarms
			marks := simulate(n, uint64(200+i), func(r *rand.Rand) tally {
				return a.world.run(t, r, Options{Alpha: *alpha, Seed: r.Uint64(), Relabellings: *relabellings})
			}).alarms
			t.Logf("| %s | %.1f%% | %.1f%% |", a.shape, 100*float64(traps)/float64(n), 100*float64(marks)/float64(n))
			if float64(traps) < a.often*float64(n) {
				t.Errorf("the tool marks %d of %d tables, expected at least %.0f%%: the world is not the one that was seen", traps, n, 100*a.often)
			}
			if limit := mostAlarms(n, *alpha); marks > limit {
				t.Errorf("%d of %d same-code tables are marked, expected at most %d at alpha %v", marks, n, limit, *alpha)
			}
		})
	}
}

// slowing is a machine that loses speed with every copy that is measured.
func slowing(by float64) func(*rand.Rand, int) machine {
	return func(_ *rand.Rand, rows int) machine {
		at := 0
		return func(r *rand.Rand, _, n int) [][]float64 {
			slots := fill(r, n, rows, 0.005, normal)
			shift(slots, func(i, _ int) float64 { return -by * float64(at+i) })
			at += n
			return slots
		}
	}
}

// runners are another machine in every block.
func runners(_ *rand.Rand, rows int) machine {
	return func(r *rand.Rand, _, n int) [][]float64 {
		slots, speed := fill(r, n, rows, 0.01, normal), 0.15*r.NormFloat64()
		shift(slots, func(_, _ int) float64 { return speed })
		return slots
	}
}

// twoRunners measures the second half of the copies elsewhere.
func twoRunners(_ *rand.Rand, rows int) machine {
	return func(r *rand.Rand, _, n int) [][]float64 {
		slots, other := fill(r, n, rows, 0.01, normal), 0.15*r.NormFloat64()
		shift(slots, func(i, _ int) float64 {
			if i >= n/2 {
				return other
			}
			return 0
		})
		return slots
	}
}

// seconds counts requests in windows of ten or eleven seconds and divides by
// the time that they took.
func seconds(_ *rand.Rand, rows int) machine {
	return func(r *rand.Rand, _, n int) [][]float64 {
		slots := fill(r, n, rows, 0.002, normal)
		for i := range slots {
			duration := float64(10 + r.IntN(2))
			for k, x := range slots[i] {
				count := duration * math.Exp(x)
				slots[i][k] = math.Log(count / duration)
			}
		}
		return slots
	}
}

// totals compares the counts of two such windows, at a threshold of 5%.
func totals(r *rand.Rand) bool {
	count := func() float64 { return float64(10+r.IntN(2)) * math.Exp(0.002*r.NormFloat64()) }
	return math.Abs(count()/count()-1) > 0.05
}

// split measures n slots in a fixed order and tells the arms apart by it.
func split(slots [][]float64, second func(slot int) bool) (base, head []float64) {
	for i, s := range slots {
		if second(i) {
			head = append(head, s[0])
		} else {
			base = append(base, s[0])
		}
	}
	return base, head
}

// orderTrap is a Welch test on the slots of one long run in a fixed order.
func orderTrap(make func(*rand.Rand, int) machine, n int, second func(int) bool) func(*rand.Rand) bool {
	return func(r *rand.Rand) bool {
		base, head := split(make(r, 1)(r, 0, n), second)
		return welch(base, head) < 0.01
	}
}

// pairTrap is a paired t test on twelve blocks of n slots in a fixed order.
func pairTrap(make func(*rand.Rand, int) machine, n int, second func(int) bool) func(*rand.Rand) bool {
	return func(r *rand.Rand) bool {
		m, d := make(r, 1), []float64{}
		for b := range 12 {
			base, head := split(m(r, b, n), second)
			d = append(d, mean(head)-mean(base))
		}
		return pairedT(d) < 0.01
	}
}

func pairedT(d []float64) float64 {
	m, sd := stat.MeanStdDev(d, nil)
	return twoSided(m/sd*math.Sqrt(float64(len(d))), float64(len(d)-1))
}

// thresholdTrap measures one arm for so many blocks, then the other.
func thresholdTrap(make func(*rand.Rand, int) machine, blocks int, threshold float64) func(*rand.Rand) bool {
	return func(r *rand.Rand) bool {
		m := make(r, 1)
		var arms [2]float64
		for b := range 2 * blocks {
			arms[b/blocks] += m(r, b, 1)[0][0] / float64(blocks)
		}
		return math.Abs(math.Expm1(arms[1]-arms[0])) > threshold
	}
}

// movedTrap takes the means of one copy of each arm in every block, and a
// threshold.
func movedTrap(make func(*rand.Rand, int) machine, blocks int, threshold float64) func(*rand.Rand) bool {
	return func(r *rand.Rand) bool {
		m, moved := make(r, 1), 0.0
		for b := range blocks {
			slots := m(r, b, 2)
			moved += (slots[1][0] - slots[0][0]) / float64(blocks)
		}
		return math.Abs(math.Expm1(moved)) > threshold
	}
}

// eachAlone is a paired t test at 5% on each row for itself.
func eachAlone(rows int) func(*rand.Rand) bool {
	return func(r *rand.Rand) bool {
		table := world{machine: quiet, rows: rows, blocks: 12}.table(r)
		for _, row := range table {
			d := make([]float64, len(row.Base))
			for b := range d {
				d[b] = mean(row.Head[b]) - mean(row.Base[b])
			}
			if pairedT(d) < 0.05 {
				return true
			}
		}
		return false
	}
}

// twoStarts is a Welch test on 200 windows of one start of each arm.
func twoStarts(sd float64, start func(*rand.Rand) float64) func(*rand.Rand) bool {
	return func(r *rand.Rand) bool {
		windows := func() []float64 {
			at, xs := sd*start(r), make([]float64, 200)
			for i := range xs {
				xs[i] = at + 0.003*r.NormFloat64()
			}
			return xs
		}
		return welch(windows(), windows()) < 0.0001
	}
}

// untilSignificant looks after every block from the third, at 5%.
func untilSignificant(r *rand.Rand) bool {
	var d []float64
	for range 20 {
		d = append(d, 0.02*r.NormFloat64())
		if len(d) >= 3 && pairedT(d) < 0.05 {
			return true
		}
	}
	return false
}
