package stats

import (
	"fmt"
	"math"
	"slices"
)

// Differences between copies below this log ratio are rounding, and count as
// none: no measurement resolves a part in a million millions.
const rounding = 1e-12

// sample is a row, prepared: what its labels say, and what does not depend
// on them.
type sample struct {
	row    Row
	effect float64
	per    []float64   // effect of each block
	dev    [][]float64 // by block: the copies, baseline first, about the block's mean

	// scale is the standard deviation that the effect has over all
	// relabellings. Within is that of the same row with its effect taken
	// out of the candidate's copies.
	scale, within float64
	freedom       float64 // blocks times (copies in a block - 1)
}

// newSample checks a row and prepares it. The variance of a block's effect
// over all relabellings is that of a difference between the means of two
// samples drawn without replacement (Cochran, Sampling Techniques, chapter
// 2), which needs no relabelling to be known.
func newSample(r Row) (sample, error) {
	if err := check(r); err != nil {
		return sample{}, err
	}
	blocks := float64(len(r.Blocks))
	s := sample{row: r, per: make([]float64, len(r.Blocks)), dev: make([][]float64, len(r.Blocks)), effect: math.NaN()}
	if len(r.Blocks) == 0 {
		return s, nil
	}
	s.effect = 0
	nb, nh := len(r.Base[0]), len(r.Head[0])
	var total, within float64
	for b := range r.Blocks {
		all := slices.Concat(r.Base[b], r.Head[b])
		about(all, mean(all))
		s.dev[b] = all
		s.per[b] = mean(all[nb:]) - mean(all[:nb])
		s.effect += s.per[b] / blocks
		total += dot(all, all)
	}
	for _, dev := range s.dev {
		rest := slices.Clone(dev)
		about(rest[:nb], -s.effect*float64(nh)/float64(nb+nh))
		about(rest[nb:], s.effect*float64(nb)/float64(nb+nh))
		within += dot(rest, rest)
	}
	s.freedom = blocks * float64(nb+nh-1)
	s.scale = math.Sqrt(total*mixing(nb, nh)) / blocks
	s.within = math.Sqrt(within*mixing(nb, nh)) / blocks
	return s, nil
}

// about takes centre from all values.
func about(xs []float64, centre float64) {
	for i := range xs {
		if xs[i] -= centre; math.Abs(xs[i]) < rounding {
			xs[i] = 0
		}
	}
}

// mixing turns the sum of squares of a block's copies into the variance of
// its effect over relabellings.
func mixing(base, head int) float64 {
	n := base + head
	return float64(n) / float64(base*head) / float64(n-1)
}

// z is the effect in units of its spread over relabellings.
func (s sample) z() float64 {
	if s.scale == 0 || len(s.per) == 0 {
		return 0
	}
	return math.Abs(s.effect) / s.scale
}

// se is the standard error of the effect.
func (s sample) se() float64 {
	if s.freedom <= 1 {
		return math.NaN()
	}
	return s.within * math.Sqrt(s.freedom/(s.freedom-1))
}

// critical is the |effect| at which the row's z would just be c, had it the
// same noise about another effect. An effect adds to its own spread over
// relabellings, so z is bounded by the root of the degrees of freedom: with
// too few blocks no effect reaches c.
func (s sample) critical(c float64) float64 {
	c += tie * (1 + c)
	room := 1 - c*c/s.freedom
	if !(room > tie) {
		return math.Inf(1)
	}
	return c * s.within / math.Sqrt(room)
}

func check(r Row) error {
	if len(r.Base) != len(r.Blocks) || len(r.Head) != len(r.Blocks) {
		return fmt.Errorf("found %d block numbers, %d blocks of the baseline and %d of the candidate, expected as many of each",
			len(r.Blocks), len(r.Base), len(r.Head))
	}
	if r.Group < 0 {
		return fmt.Errorf("found candidate number %d, expected 0 or more", r.Group)
	}
	if math.IsNaN(r.Margin) || r.Margin < 0 {
		return fmt.Errorf("found a margin of %v, expected 0 or more", r.Margin)
	}
	seen := make(map[int]bool, len(r.Blocks))
	for b, n := range r.Blocks {
		if seen[n] {
			return fmt.Errorf("found block %d twice, expected each block once", n)
		}
		seen[n] = true
		nb, nh := len(r.Base[b]), len(r.Head[b])
		if nb == 0 || nh == 0 || nb+nh > maxCopies {
			return fmt.Errorf("found %d baseline and %d candidate copies in block %d, expected one of each at least and %d together at most",
				nb, nh, n, maxCopies)
		}
		if nb != len(r.Base[0]) || nh != len(r.Head[0]) {
			return fmt.Errorf("found %d and %d copies in block %d but %d and %d in block %d, expected the same in every block: leave out a block that lacks a copy",
				nb, nh, n, len(r.Base[0]), len(r.Head[0]), r.Blocks[0])
		}
		for _, x := range slices.Concat(r.Base[b], r.Head[b]) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("found %v in block %d, expected a finite logarithm: a metric of zero or without samples cannot be judged", x, n)
			}
		}
	}
	return nil
}

func mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func dot(xs, ys []float64) float64 {
	var sum float64
	for i, x := range xs {
		sum += x * ys[i]
	}
	return sum
}
