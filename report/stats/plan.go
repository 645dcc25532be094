package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// lookGrowth is the factor between the blocks of one look and the next.
	lookGrowth = 5.0 / 3
	// spending is the power of the share of blocks that gives the share of
	// alpha spent (Kim and DeMets 1987): the cube leaves nearly all of it to
	// the last look, which most runs get to.
	spending = 3
	// power is the chance with which a resolvable change is found.
	power = 0.8
)

// Looks are the numbers of blocks at which a plan of min to max blocks is
// looked at: few, since each takes its share of alpha, and further apart the
// more there is already.
func Looks(min, max int) []int {
	if min >= max {
		return []int{max}
	}
	var looks []int
	for at := float64(min); int(math.Round(at*math.Sqrt(lookGrowth))) < max; at *= lookGrowth {
		looks = append(looks, int(math.Round(at)))
	}
	if len(looks) == 0 {
		looks = append(looks, min)
	}
	for i := len(looks) - 1; i > 0; i-- { // rounding at very small numbers
		if looks[i] <= looks[i-1] {
			looks = append(looks[:i], looks[i+1:]...)
		}
	}
	return append(looks, max)
}

// LookAt finds the look that a run with so many blocks is judged by: the one
// planned there, or else the next. last says that the run ended between two
// looks: it holds where the run has ended for good, by its budget.
func LookAt(looks []int, blocks int) (look int, between bool) {
	for i, n := range looks {
		if blocks <= n {
			return i, blocks < n
		}
	}
	return max(0, len(looks)-1), false
}

// shares divides alpha over the looks. alpha is that of one candidate. A look
// at which no labelling could be rare enough to be marked leaves its share to
// the next. All of it is known beforehand.
func shares(looks []int, base, head int, alpha float64) []float64 {
	out := make([]float64, len(looks))
	saved, before := 0.0, 0.0
	for k, n := range looks {
		spent := math.Pow(float64(n)/float64(looks[len(looks)-1]), spending)
		saved += spent - before
		before = spent
		if alpha*saved*labellings(base, head, n)*(1+tie) >= 1 {
			out[k], saved = saved, 0
		}
	}
	return out
}

// share is the part of alpha that the look has.
func (o Options) share(rows []sample, groups int) float64 {
	with := slices.IndexFunc(rows, func(s sample) bool { return len(s.per) > 0 })
	if len(o.Looks) <= 1 || with < 0 {
		return 1
	}
	r := rows[with].row
	all := shares(o.Looks, len(r.Base[0]), len(r.Head[0]), o.Alpha/float64(groups))
	if !o.Last && o.Look < len(all)-1 {
		return all[o.Look]
	}
	left := 1.0
	for _, spent := range all[:o.Look] {
		left -= spent
	}
	return left
}

// MinBlocks is the number of blocks below which no row of a plan can be
// marked, however large its change: too few labellings exist for the true one
// to be rare enough. alpha is that of one candidate (the table's, over the
// number of candidates). With looks, it is the first of them at which a mark
// is possible, given what alpha is spent there, and 0 where there is none.
func MinBlocks(copiesBase, copiesHead int, alpha float64, looks ...int) int {
	if copiesBase < 1 || copiesHead < 1 || !(alpha > 0) {
		return 0
	}
	if len(looks) > 0 {
		for k, share := range shares(looks, copiesBase, copiesHead, alpha) {
			if share > 0 {
				return looks[k]
			}
		}
		return 0
	}
	blocks := 1
	for labellings(copiesBase, copiesHead, blocks)*alpha*(1+tie) < 1 {
		blocks++
	}
	return blocks
}

// Plan is what the precision of a plan depends on.
type Plan struct {
	Alpha      float64 // of the table
	Rows       int     // judged rows of each candidate
	Candidates int
	CopiesBase int
	CopiesHead int
	Looks      []int // empty: one look at the end
}

// Resolvable is the smallest effect (a log ratio) that the plan marks with a
// chance of 80% in so many blocks, given the standard deviation of a block's
// effect from block to block. Rows are taken as independent, the worst case.
// It is +Inf where so few blocks cannot mark a row.
func (p Plan) Resolvable(sd float64, blocks int) float64 {
	alpha := p.Alpha / float64(max(1, p.Candidates))
	if len(p.Looks) > 1 {
		all := shares(p.Looks, p.CopiesBase, p.CopiesHead, alpha)
		alpha *= all[len(all)-1]
	}
	if blocks < 1 || labellings(p.CopiesBase, p.CopiesHead, blocks)*alpha*(1+tie) < 1 {
		return math.Inf(1)
	}
	freedom := float64(blocks*(p.CopiesBase+p.CopiesHead-1) - 1)
	if freedom < 1 {
		return math.Inf(1)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}
	alone := -math.Expm1(math.Log1p(-alpha) / float64(max(1, p.Rows)))
	// At a handful of blocks the true labelling stands out less from those
	// that keep most of it: the factor is fitted to TestCalibrationResolvable.
	few := 1 + 1/float64(blocks*blocks)
	return few * (t.Quantile(1-alone/2) + t.Quantile(power)) * sd / math.Sqrt(float64(blocks))
}

// Resolvable is [Plan.Resolvable] of a plan of one candidate with two copies
// of each arm and one look.
func Resolvable(sd float64, blocks, rows int, alpha float64) float64 {
	return Plan{Alpha: alpha, Rows: rows, Candidates: 1, CopiesBase: 2, CopiesHead: 2}.Resolvable(sd, blocks)
}

// more estimates how many further blocks would mark the row, or show it to be
// the same, if its effect and its noise stay as they are.
func (o Options) more(s sample, r Result, rows, groups int) int {
	if r.Marked || r.Same || len(s.per) == 0 {
		return 0
	}
	blocks := float64(len(s.per))
	perBlock := s.freedom / blocks
	noise := s.within * s.within * blocks // variance of one block's effect
	alone := distuv.UnitNormal.Quantile(1 - o.Alpha/float64(2*rows*groups))
	need := math.Inf(1)
	if r.Effect != 0 {
		need = alone * alone * (noise/r.Effect/r.Effect + 1/perBlock)
	}
	confidence := o.Confidence
	if confidence == 0 {
		confidence = 1 - o.Alpha
	}
	if room := s.row.Margin - math.Abs(r.Effect); room > 0 {
		half := distuv.UnitNormal.Quantile((1 + confidence) / 2)
		need = min(need, half*half*noise/room/room)
	}
	if need > 1e6 {
		return 0
	}
	base, head := len(s.row.Base[0]), len(s.row.Head[0])
	need = max(need, float64(MinBlocks(base, head, o.Alpha/float64(groups))))
	return max(1, int(math.Ceil(need-blocks-tie)))
}
