package stats

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The long form is what METHODOLOGY.md quotes:
//
//	go test ./report/stats -run Calibration -v -timeout 0 \
//		-calibration.tables 10000 -calibration.alpha 0.01 -calibration.relabellings 0
//
// The short form judges fewer tables at a higher alpha, so that the same
// mistake would show, and with fewer relabellings, which the verdicts must
// not need to hold.
var (
	tables       = flag.Int("calibration.tables", 160, "tables to judge in each world")
	alpha        = flag.Float64("calibration.alpha", 0.05, "error rate to judge them at")
	relabellings = flag.Int("calibration.relabellings", 1000, "relabellings to draw; 0: as many as a run would")
)

// tally is what came of the tables of one world.
type tally struct {
	tables, alarms int // tables with a mark on a row of same code
	rows, covered  int
	moved          int     // rows whose true effect is their margin or more
	marked, same   int     // rows
	missed         int     // rows that moved and are called the same
	told           float64 // sum of the effects of the marked rows
	blocks         int
}

func (t *tally) add(u tally) {
	t.tables += u.tables
	t.alarms += u.alarms
	t.rows += u.rows
	t.covered += u.covered
	t.moved += u.moved
	t.marked += u.marked
	t.same += u.same
	t.missed += u.missed
	t.told += u.told
	t.blocks += u.blocks
}

// TestCalibration measures the rate of same-code tables with any mark, and
// the coverage of the intervals, in every world.
func TestCalibration(t *testing.T) {
	for i, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			n := *tables
			if n < 1000 { // the short form, within seconds
				n = max(60, min(n, 6*n/w.rows))
			}
			sum := simulate(n, uint64(i), func(r *rand.Rand) tally {
				return w.run(t, r, Options{Alpha: *alpha, Seed: r.Uint64(), Relabellings: *relabellings})
			})
			rate := float64(sum.alarms) / float64(sum.tables)
			coverage := float64(sum.covered) / float64(sum.rows)
			t.Logf("| %s | %d | %s | %.2f%% | %.2f%% | %.1f |", w.name, w.rows*max(1, w.candidates), w.plan(),
				100*rate, 100*coverage, float64(sum.blocks)/float64(sum.tables))
			if limit := mostAlarms(sum.tables, *alpha); sum.alarms > limit {
				t.Errorf("%d of %d same-code tables have a mark (%.2f%%), expected at most %d at alpha %v", sum.alarms, sum.tables, 100*rate, limit, *alpha)
			}
			if limit := mostAlarms(sum.moved, *alpha); sum.moved > 0 && sum.missed > limit {
				t.Errorf("%d of %d rows that moved by their margin or more are called the same, expected at most %d", sum.missed, sum.moved, limit)
			}
			// Rows of a table share their copies: tables are the sample.
			if slack := 0.01 + 4*math.Sqrt(*alpha*(1-*alpha)/float64(sum.tables)); coverage < 1-*alpha-slack {
				t.Errorf("%.2f%% of the intervals hold the true ratio, expected %.0f%% within %.2f%%", 100*coverage, 100*(1-*alpha), 100*slack)
			}
		})
	}
}

func (w world) plan() string {
	if w.looks != nil {
		return fmt.Sprintf("looks at %v", w.looks)
	}
	return fmt.Sprintf("%d blocks", w.blocks)
}

// run measures and judges one table, and stops where its plan says so.
func (w world) run(t *testing.T, r *rand.Rand, o Options) tally {
	rows := w.table(r)
	o.Looks = w.looks
	for {
		now, n := rows, w.blocks
		if w.looks != nil {
			n = w.looks[o.Look]
			now = until(rows, n)
		}
		table, err := Judge(now, o)
		if err != nil {
			t.Error(err)
			return tally{tables: 1}
		}
		if settled(table) || n == w.blocks {
			return w.count(table, n)
		}
		o.Look++
	}
}

func settled(t Table) bool {
	for _, r := range t.Results {
		if !r.Marked && !r.Same {
			return false
		}
	}
	return true
}

func (w world) count(table Table, blocks int) tally {
	t := tally{tables: 1, blocks: blocks}
	for i, r := range table.Results {
		truth := w.true(i/w.rows, i%w.rows)
		if truth == 0 && r.Marked {
			t.alarms = 1
		}
		t.rows++
		t.covered += one(r.CI[0] <= truth+1e-12 && truth-1e-12 <= r.CI[1])
		if r.Marked {
			t.marked++
			t.told += r.Effect
		}
		t.same += one(r.Same)
		if math.Abs(truth) >= 0.02 {
			t.moved++
			t.missed += one(r.Same)
		}
	}
	return t
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// simulate adds up n tables, each of its own seed, so that the sum does not
// depend on how many CPUs work on it.
func simulate(n int, seed uint64, table func(*rand.Rand) tally) tally {
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	sums := make([]tally, workers)
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n; i += workers {
				sums[w].add(table(rand.New(rand.NewPCG(seed, uint64(i)))))
			}
		})
	}
	wait.Wait()
	var sum tally
	for _, s := range sums {
		sum.add(s)
	}
	return sum
}

// mostAlarms is the number of alarms among n tables that a true rate of alpha
// exceeds once in ten thousand worlds.
func mostAlarms(n int, alpha float64) int {
	b := distuv.Binomial{N: float64(n), P: alpha}
	k := int(alpha * float64(n))
	for b.CDF(float64(k)) < 1-1e-4 {
		k++
	}
	return k
}
