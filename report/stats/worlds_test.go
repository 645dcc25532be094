package stats

import (
	"math"
	"math/rand/v2"
)

// A machine makes the log values of n copies in one block, by their place in
// the order of starts and by row. What it keeps from block to block is its
// own; it knows nothing of arms.
type machine func(r *rand.Rand, block, n int) [][]float64

// world is a way in which measurements go wrong, and a table that is measured
// in it. Its tables are laid out as the runner does: the copies of all arms
// are started in random order in every block.
type world struct {
	name       string
	machine    func(r *rand.Rand, rows int) machine
	rows       int // of each candidate
	blocks     int
	looks      []int // nil: one, at the end
	candidates int   // 0: one
	copies     int   // of each arm; 0: two
	order      order // of starts; nil: shuffled in every block

	jitter  float64                      // factor on the spread of the candidates' copies
	effect  func(group, row int) float64 // true log ratio; nil: none
	kept    float64                      // spread of what each copy keeps through all blocks
	missing float64                      // chance that a row lacks a block
	round   float64                      // values are rounded to this
}

// table measures one table.
func (w world) table(r *rand.Rand) []Row {
	candidates, copies := max(1, w.candidates), w.copiesOf()
	m, places := w.machine(r, w.rows), shuffled
	if w.order != nil {
		places = w.order()
	}
	rows := make([]Row, candidates*w.rows)
	for i := range rows {
		rows[i].Group = i / w.rows
		rows[i].Margin = 0.02
	}
	n := copies * (candidates + 1)
	var kept [][]float64
	if w.kept > 0 {
		kept = fill(r, n, w.rows, w.kept, normal)
	}
	for b := range w.blocks {
		slots := m(r, b, n)
		places(r, b, slots)
		if w.kept > 0 {
			shift(slots, func(i, k int) float64 { return kept[i][k] })
		}
		for i := range rows {
			if r.Float64() < w.missing {
				continue
			}
			w.add(&rows[i], i%w.rows, b, slots)
		}
	}
	return rows
}

func (w world) copiesOf() int {
	if w.copies == 0 {
		return 2
	}
	return w.copies
}

// An order hands out the places in the order of starts of a block: before it,
// slots stand in that order; after it, by arm and copy, the baseline first.
type order func() func(r *rand.Rand, block int, slots [][]float64)

func shuffled(r *rand.Rand, _ int, slots [][]float64) {
	r.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
}

// add gives a row its values of a block.
func (w world) add(row *Row, of, b int, slots [][]float64) {
	copies := w.copiesOf()
	base, head := make([]float64, copies), make([]float64, copies)
	var centre float64
	for _, s := range slots {
		centre += s[of] / float64(len(slots))
	}
	for c := range copies {
		base[c] = w.rounded(slots[c][of])
		x := slots[(row.Group+1)*copies+c][of]
		if w.jitter > 0 {
			x = centre + w.jitter*(x-centre)
		}
		head[c] = w.rounded(x + w.true(row.Group, of))
	}
	row.Base, row.Head, row.Blocks = append(row.Base, base), append(row.Head, head), append(row.Blocks, b)
}

func (w world) true(group, row int) float64 {
	if w.effect == nil {
		return 0
	}
	return w.effect(group, row)
}

func (w world) rounded(x float64) float64 {
	if w.round == 0 {
		return x
	}
	return math.Round(x/w.round) * w.round
}

// until is the part of a table that was there after so many blocks.
func until(rows []Row, blocks int) []Row {
	out := make([]Row, len(rows))
	for i, r := range rows {
		n := 0
		for n < len(r.Blocks) && r.Blocks[n] < blocks {
			n++
		}
		r.Base, r.Head, r.Blocks = r.Base[:n], r.Head[:n], r.Blocks[:n]
		out[i] = r
	}
	return out
}

// fill makes n copies whose rows share half of their variance, since one
// process serves all rows; draw makes one standard deviate.
func fill(r *rand.Rand, n, rows int, sd float64, draw func(*rand.Rand) float64) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		common := draw(r)
		out[i] = make([]float64, rows)
		for k := range out[i] {
			out[i][k] = sd * math.Sqrt2 / 2 * (common + draw(r))
		}
	}
	return out
}

func shift(slots [][]float64, by func(slot, row int) float64) {
	for i := range slots {
		for k := range slots[i] {
			slots[i][k] += by(i, k)
		}
	}
}

func normal(r *rand.Rand) float64 { return r.NormFloat64() }

// student has two degrees of freedom, and so no variance.
func student(r *rand.Rand) float64 {
	return r.NormFloat64() / math.Sqrt(r.ExpFloat64())
}

func skewed(r *rand.Rand) float64 { return r.ExpFloat64() - 1 }

// bimodal is 70% fast and 30% slow by 8%, in units of 2%.
func bimodal(r *rand.Rand) float64 {
	if r.Float64() < 0.3 {
		return -4 + 0.2*r.NormFloat64()
	}
	return 0.2 * r.NormFloat64()
}

func copiesBy(sd float64, draw func(*rand.Rand) float64) func(*rand.Rand, int) machine {
	return func(_ *rand.Rand, rows int) machine {
		return func(r *rand.Rand, _, n int) [][]float64 { return fill(r, n, rows, sd, draw) }
	}
}

// Starts of a process that differ by 2%, and nothing else.
var quiet = copiesBy(0.02, normal)

// bimodalStarts decides for each start, over all rows, whether it is slow.
func bimodalStarts(_ *rand.Rand, rows int) machine {
	return func(r *rand.Rand, _, n int) [][]float64 {
		slots := fill(r, n, rows, 0.003, normal)
		for i := range slots {
			by := 0.02 * bimodal(r)
			shift(slots[i:i+1], func(_, _ int) float64 { return by })
		}
		return slots
	}
}

// drifting is a machine whose speed wanders by 5% a block, shared by all
// copies of a block, and by half a percent from each copy to the next.
func drifting(_ *rand.Rand, rows int) machine {
	speed := 0.0
	return func(r *rand.Rand, _, n int) [][]float64 {
		slots := fill(r, n, rows, 0.01, normal)
		speed += 0.05 * r.NormFloat64()
		shift(slots, func(i, _ int) float64 { return speed + 0.005*float64(i) })
		return slots
	}
}

// autocorrelated noise goes on from copy to copy and block to block.
func autocorrelated(_ *rand.Rand, rows int) machine {
	state := make([]float64, rows)
	return func(r *rand.Rand, _, n int) [][]float64 {
		slots := make([][]float64, n)
		for i := range slots {
			slots[i] = make([]float64, rows)
			for k := range slots[i] {
				state[k] = 0.9*state[k] + 0.02*r.NormFloat64()
				slots[i][k] = state[k]
			}
		}
		return slots
	}
}

// stolen loses 30% in one block of ten: of one copy, or of all.
func stolen(all bool) func(*rand.Rand, int) machine {
	return func(_ *rand.Rand, rows int) machine {
		return func(r *rand.Rand, _, n int) [][]float64 {
			slots := fill(r, n, rows, 0.02, normal)
			if hit, victim := r.Float64() < 0.1, r.IntN(n); hit {
				shift(slots, func(i, _ int) float64 {
					if all || i == victim {
						return math.Log(0.7)
					}
					return 0
				})
			}
			return slots
		}
	}
}

// slotted gives each place in the order of starts its own bias.
func slotted(bias ...float64) func(*rand.Rand, int) machine {
	return func(_ *rand.Rand, rows int) machine {
		return func(r *rand.Rand, _, n int) [][]float64 {
			slots := fill(r, n, rows, 0.01, normal)
			shift(slots, func(i, _ int) float64 { return bias[i%len(bias)] })
			return slots
		}
	}
}

// flipping has a place that is slow in one block and fast in the next.
func flipping(_ *rand.Rand, rows int) machine {
	return func(r *rand.Rand, block, n int) [][]float64 {
		slots := fill(r, n, rows, 0.002, normal)
		shift(slots, func(i, _ int) float64 {
			if i == n-1 {
				return 0.05 * float64(1-2*(block%2))
			}
			return 0
		})
		return slots
	}
}

// uneven has blocks of very different noise, and rows of very different noise.
func uneven(blocks, rowsToo bool) func(*rand.Rand, int) machine {
	return func(_ *rand.Rand, rows int) machine {
		return func(r *rand.Rand, _, n int) [][]float64 {
			sd := 0.02
			if blocks {
				sd *= math.Exp(r.NormFloat64())
			}
			slots := fill(r, n, rows, sd, normal)
			for i := range slots {
				for k := range slots[i] {
					if rowsToo {
						slots[i][k] *= math.Pow(10, -2*float64(k)/float64(rows))
					}
				}
			}
			return slots
		}
	}
}

// everything at once.
func everything(r *rand.Rand, rows int) machine {
	drift, steal, slot, tails := drifting(r, rows), stolen(false)(r, rows), slotted(0, 0, -0.03, 0.01)(r, rows), copiesBy(0.005, student)(r, rows)
	return func(r *rand.Rand, block, n int) [][]float64 {
		sum := drift(r, block, n)
		for _, m := range []machine{steal, slot, tails} {
			more := m(r, block, n)
			shift(sum, func(i, k int) float64 { return more[i][k] })
		}
		return sum
	}
}

// stopping is the plan of every world with early stopping.
var stopping = Looks(4, 20)

// firstOnly gives the first candidate's first row, or all of the first
// candidate's rows, a true change that must not spoil the others.
func firstRow(by float64) func(group, row int) float64 {
	return func(group, row int) float64 {
		if group == 0 && row == 0 {
			return by
		}
		return 0
	}
}

func firstCandidate(by float64) func(group, row int) float64 {
	return func(group, _ int) float64 {
		if group == 0 {
			return by
		}
		return 0
	}
}

// worlds are all same-code tables, or tables with same-code rows beside
// changed ones, whose error rate the calibration measures.
var worlds = []world{
	{name: "quiet-1", machine: quiet, rows: 1, blocks: 12},
	{name: "quiet-4-blocks", machine: quiet, rows: 2, blocks: 4},
	{name: "quiet-6", machine: quiet, rows: 6, blocks: 20},
	{name: "quiet-60", machine: quiet, rows: 60, blocks: 12},
	{name: "quiet-stopping", machine: quiet, rows: 3, blocks: 20, looks: stopping},
	{name: "quiet-60-stopping", machine: quiet, rows: 60, blocks: 20, looks: stopping},
	{name: "drift", machine: drifting, rows: 6, blocks: 12},
	{name: "drift-stopping", machine: drifting, rows: 6, blocks: 20, looks: stopping},
	{name: "starts", machine: copiesBy(0.05, normal), rows: 6, blocks: 12},
	{name: "heavy-tails", machine: copiesBy(0.01, student), rows: 6, blocks: 12},
	{name: "heavy-tails-4-blocks", machine: copiesBy(0.01, student), rows: 1, blocks: 4},
	{name: "heavy-tails-stopping", machine: copiesBy(0.01, student), rows: 6, blocks: 20, looks: stopping},
	{name: "skewed", machine: copiesBy(0.02, skewed), rows: 6, blocks: 6},
	{name: "bimodal", machine: bimodalStarts, rows: 6, blocks: 12},
	{name: "bimodal-stopping", machine: bimodalStarts, rows: 3, blocks: 20, looks: stopping},
	{name: "steal-one", machine: stolen(false), rows: 6, blocks: 12},
	{name: "steal-one-stopping", machine: stolen(false), rows: 3, blocks: 20, looks: stopping},
	{name: "steal-all", machine: stolen(true), rows: 6, blocks: 12},
	{name: "slots", machine: slotted(0, 0, 0, -0.05), rows: 6, blocks: 12},
	{name: "slots-stopping", machine: slotted(0, 0, 0, -0.05), rows: 3, blocks: 20, looks: stopping},
	{name: "flipping-slots", machine: flipping, rows: 6, blocks: 12},
	{name: "autocorrelated", machine: autocorrelated, rows: 6, blocks: 12},
	{name: "uneven-blocks", machine: uneven(true, false), rows: 6, blocks: 12},
	{name: "uneven-rows", machine: uneven(false, true), rows: 20, blocks: 12},
	{name: "uneven-arms", machine: quiet, rows: 6, blocks: 12, jitter: 3},
	{name: "uneven-arms-stopping", machine: quiet, rows: 3, blocks: 20, looks: stopping, jitter: 3},
	{name: "missing", machine: quiet, rows: 6, blocks: 12, missing: 0.2},
	{name: "missing-stopping", machine: quiet, rows: 6, blocks: 20, looks: stopping, missing: 0.2},
	{name: "rounded", machine: quiet, rows: 6, blocks: 8, round: 0.02},
	{name: "one-copy", machine: everything, rows: 6, blocks: 12, copies: 1},
	{name: "three-copies-stopping", machine: everything, rows: 6, blocks: 10, looks: Looks(3, 10), copies: 3},
	{name: "at-the-margin-stopping", machine: quiet, rows: 3, blocks: 20, looks: stopping, effect: firstRow(0.02)},
	{name: "everything", machine: everything, rows: 6, blocks: 12},
	{name: "everything-stopping", machine: everything, rows: 20, blocks: 20, looks: stopping},
	{name: "one-row-changed", machine: quiet, rows: 6, blocks: 12, effect: firstRow(0.05)},
	{name: "one-row-changed-stopping", machine: quiet, rows: 6, blocks: 20, looks: stopping, effect: firstRow(0.05)},
	{name: "three-candidates", machine: quiet, rows: 3, blocks: 12, candidates: 3},
	{name: "one-candidate-changed", machine: quiet, rows: 3, blocks: 12, candidates: 2, effect: firstCandidate(0.1)},
	{name: "one-candidate-changed-stopping", machine: everything, rows: 2, blocks: 20, looks: stopping, candidates: 3, effect: firstCandidate(-0.1)},
}
