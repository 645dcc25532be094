package stats

import (
	"math"
	"slices"
)

// tie is the difference, relative to one and to themselves, below which two relabelled effects are
// equal: they are sums of the same numbers in another order.
const tie = 1e-9

// judged is what the relabellings say of one row.
type judged struct {
	p        float64 // adjusted for the rows of the candidate
	critical float64 // z above which the row is marked; +Inf where none could be
}

// stepDown compares each row's z with the largest |z| of any row under each
// relabelling (max-T of Westfall and Young, 1993, chapter 4): the rows in
// order of z, each against the rows that do not stand above it. Rows of
// unchanged code keep the error rate alpha also beside rows of changed code,
// since their copies can be relabelled whatever the others do, and the
// maximum is taken over them at least (Romano and Wolf 2005).
//
// each hands out the |z| of one row under all relabellings.
func stepDown(z []float64, count int, alpha float64, each func(row int, out []float64)) []judged {
	out := make([]judged, len(z))
	order := make([]int, len(z))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(z[i], z[j]) })

	allowed := allowance(alpha, count)
	largest := make([]float64, count)
	one := make([]float64, count)
	scratch := make([]float64, count)
	for _, r := range order {
		each(r, one)
		for m, v := range one {
			largest[m] = max(largest[m], v)
		}
		out[r] = judged{p: atLeast(largest, z[r]), critical: math.Inf(1)}
		if allowed > 0 {
			out[r].critical = nthLargest(largest, allowed, scratch)
		}
	}
	settle(out, order, alpha, count)
	return out
}

// settle goes down from the largest z: no row gets a smaller p than one
// above it, and from the first unmarked row on, no row has a smaller
// critical value than that one, since it would have to be marked first.
func settle(out []judged, order []int, alpha float64, count int) {
	limit := float64(allowance(alpha, count)) / float64(count)
	p, floor := 0.0, 0.0
	for _, r := range slices.Backward(order) {
		p = max(p, out[r].p)
		out[r].p = p
		out[r].critical = max(out[r].critical, floor)
		if p > limit {
			floor = max(floor, out[r].critical)
		}
	}
}

// allowance is the number of relabellings, the measured one among them, that
// may be as extreme as a row for it to be marked.
func allowance(alpha float64, count int) int {
	return min(int(math.Floor(alpha*float64(count)*(1+tie))), count-1)
}

// atLeast is the share of relabellings that reach z. The measured one does.
func atLeast(largest []float64, z float64) float64 {
	reached := 0
	z -= tie * (1 + z)
	for _, v := range largest {
		if v >= z {
			reached++
		}
	}
	return float64(reached) / float64(len(largest))
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
