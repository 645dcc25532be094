package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// A site is where rules are compared: what it does to one window of one
// second. All figures are standard deviations of the log of a metric.
type site struct {
	name   string
	start  float64 // between starts of a process, for as long as it lives
	window float64 // between windows of a process that take turns of a millisecond
	drift  float64 // of the machine between windows taken one after the other; nine tenths of it last to the next
}

const comparedRows = 6

// series is the windows of some processes: by row, process and window.
type series [][][]float64

// measure starts n processes and takes windows of each; shift is added to the
// first row of the processes from changed on. In turns, all see the same
// machine; otherwise one process is measured after the other.
func (s site) measure(r *rand.Rand, n, windows int, inTurns bool, changed int, shift float64) series {
	starts := fill(r, n, comparedRows, s.start, normal)
	out := make(series, comparedRows)
	for k := range out {
		out[k] = make([][]float64, n)
	}
	speed := s.drift * r.NormFloat64()
	step := func() {
		speed = 0.9*speed + math.Sqrt(1-0.81)*s.drift*r.NormFloat64()
	}
	for i := range windows * n {
		process := i / windows
		if inTurns {
			process = i % n
		}
		if !inTurns || process == 0 {
			step()
		}
		for k := range out {
			x := starts[process][k] + speed + s.window*r.NormFloat64()
			if k == 0 && process >= changed {
				x += shift
			}
			out[k][process] = append(out[k][process], x)
		}
	}
	return out
}

// rule is a way to judge a run of so many blocks of four windows: it says
// which rows it marks.
type rule struct {
	name string
	run  func(r *rand.Rand, s site, blocks int, shift float64) []bool
}

var rules = []rule{
	{"before, then after; 5% threshold", beforeAfter},
	{"moved more than the A/A spread of two copies", spreadRule},
	{"Mann-Whitney on windows in turns, p < 1% / rows", windowTest(mannWhitney)},
	{"Welch on windows in turns, p < 1% / rows", windowTest(welch)},
	{"t test on blocks, p < 1% / rows", blockTest},
	{"relabelling", relabellingRule},
}

// beforeAfter measures one start of the baseline, then one of the candidate.
func beforeAfter(r *rand.Rand, s site, blocks int, shift float64) []bool {
	marks := make([]bool, comparedRows)
	for k, p := range s.measure(r, 2, 2*blocks, false, 1, shift) {
		marks[k] = math.Abs(math.Expm1(mean(p[1])-mean(p[0]))) > 0.05
	}
	return marks
}

// spreadRule starts two copies of each arm once.
func spreadRule(r *rand.Rand, s site, blocks int, shift float64) []bool {
	marks := make([]bool, comparedRows)
	for k, p := range s.measure(r, 4, blocks, true, 2, shift) {
		moved := mean(p[2]) + mean(p[3]) - mean(p[0]) - mean(p[1])
		marks[k] = math.Abs(moved/2) > math.Abs(mean(p[1])-mean(p[0]))
	}
	return marks
}

// windowTest starts each arm once and tests windows as if independent.
func windowTest(p func(x, y []float64) float64) func(*rand.Rand, site, int, float64) []bool {
	return func(r *rand.Rand, s site, blocks int, shift float64) []bool {
		marks := make([]bool, comparedRows)
		for k, w := range s.measure(r, 2, 2*blocks, true, 1, shift) {
			marks[k] = p(w[0], w[1]) < 0.01/comparedRows
		}
		return marks
	}
}

// blocksOf starts two copies of each arm in every block.
func blocksOf(r *rand.Rand, s site, blocks int, shift float64) []Row {
	rows := make([]Row, comparedRows)
	for b := range blocks {
		for k, p := range s.measure(r, 4, 1, true, 2, shift) {
			rows[k].Base = append(rows[k].Base, []float64{p[0][0], p[1][0]})
			rows[k].Head = append(rows[k].Head, []float64{p[2][0], p[3][0]})
			rows[k].Blocks = append(rows[k].Blocks, b)
		}
	}
	return rows
}

func blockTest(r *rand.Rand, s site, blocks int, shift float64) []bool {
	marks := make([]bool, comparedRows)
	for k, row := range blocksOf(r, s, blocks, shift) {
		d := make([]float64, blocks)
		for b := range d {
			d[b] = mean(row.Head[b]) - mean(row.Base[b])
		}
		m, sd := stat.MeanStdDev(d, nil)
		t := math.Abs(m) / sd * math.Sqrt(float64(blocks))
		marks[k] = twoSided(t, float64(blocks-1)) < 0.01/comparedRows
	}
	return marks
}

func relabellingRule(r *rand.Rand, s site, blocks int, shift float64) []bool {
	marks := make([]bool, comparedRows)
	table, err := Judge(blocksOf(r, s, blocks, shift), Options{Alpha: 0.01, Seed: r.Uint64(), Relabellings: *relabellings})
	if err != nil {
		panic(err)
	}
	for k, res := range table.Results {
		marks[k] = res.Marked
	}
	return marks
}

func twoSided(t, freedom float64) float64 {
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Survival(math.Abs(t))
}

func welch(x, y []float64) float64 {
	mx, vx := stat.MeanVariance(x, nil)
	my, vy := stat.MeanVariance(y, nil)
	ex, ey := vx/float64(len(x)), vy/float64(len(y))
	freedom := (ex + ey) * (ex + ey) / (ex*ex/float64(len(x)-1) + ey*ey/float64(len(y)-1))
	return twoSided((mx-my)/math.Sqrt(ex+ey), freedom)
}

// mannWhitney is the normal approximation, which is good from ten windows on.
func mannWhitney(x, y []float64) float64 {
	type value struct {
		x     float64
		first bool
	}
	var all []value
	for _, v := range x {
		all = append(all, value{v, true})
	}
	for _, v := range y {
		all = append(all, value{v, false})
	}
	slices.SortFunc(all, func(a, b value) int { return compare(a.x, b.x) })
	n, m := float64(len(x)), float64(len(y))
	u := -n * (n + 1) / 2
	for i, v := range all {
		if v.first {
			u += float64(i + 1)
		}
	}
	z := (math.Abs(u-n*m/2) - 0.5) / math.Sqrt(n*m*(n+m+1)/12)
	return 2 * distuv.UnitNormal.Survival(z)
}
