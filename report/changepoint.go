package report

import (
	"math"
	"slices"
)

// shortest is the fewest points of a level: fewer are outliers.
const shortest = 3

// penaltyOf is what a change must explain, in variances: what the Bayesian
// information criterion asks for, and as much more as keeps the chance that a
// series without any change shows one at two in a hundred or below
// (TestChangePointFalseAlarms).
func penaltyOf(points int) float64 {
	n := float64(points)
	return 2*math.Log(n) + 7 + 70/n // a short series does not know its own variance well
}

// changePoints finds where the level of a series changed, by optimal
// partitioning: of all ways to cut the series into levels, the one with the
// least squared distance to their means plus a penalty for each cut (Jackson
// et al. 2005; the exact search of which PELT, Killick et al. 2012, is the fast
// form). It returns the index of the first point of each level but the first.
//
// The variance is taken from the differences of neighbours, which a change of
// level hardly touches. Outliers are drawn in first, or a single one would buy
// a level of its own.
func changePoints(xs []float64) []int {
	n := len(xs)
	sigma := neighbourSD(xs)
	if n < 2*shortest || sigma == 0 {
		return nil
	}
	xs = drawIn(xs, sigma)
	penalty := penaltyOf(n) * sigma * sigma
	sum, squares := make([]float64, n+1), make([]float64, n+1)
	for i, x := range xs {
		sum[i+1] = sum[i] + x
		squares[i+1] = squares[i] + x*x
	}
	cost := func(from, to int) float64 { // of one level over [from, to)
		s := sum[to] - sum[from]
		return squares[to] - squares[from] - s*s/float64(to-from)
	}
	best := make([]float64, n+1) // least cost of the first i points
	last := make([]int, n+1)     // where its last level begins
	best[0] = -penalty
	for to := 1; to <= n; to++ {
		best[to] = math.Inf(1)
		for from := 0; from+shortest <= to; from++ {
			if c := best[from] + cost(from, to) + penalty; c < best[to] {
				best[to], last[to] = c, from
			}
		}
	}
	var out []int
	for at := last[n]; at > 0; at = last[at] {
		out = append(out, at)
	}
	slices.Reverse(out)
	return out
}

// drawIn brings points that lie far from the median of their neighbours back
// to within four standard deviations of it (the filter of Hampel 1974, over
// five points). Three points of a new level are their own median.
func drawIn(xs []float64, sigma float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		m := median(xs[max(i-2, 0):min(i+3, len(xs))])
		out[i] = math.Max(m-4*sigma, math.Min(m+4*sigma, x))
	}
	return out
}

// neighbourSD estimates the standard deviation of a series around its levels
// from the median of the distances between neighbours.
func neighbourSD(xs []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	ds := make([]float64, len(xs)-1)
	for i := range ds {
		ds[i] = math.Abs(xs[i+1] - xs[i])
	}
	const normal = 1.4826 // of the median of absolute values, for a normal distribution
	sd := normal * median(ds) / math.Sqrt2
	if sd == 0 { // more than half of the points are alike
		sd = normal * mean(ds) / math.Sqrt2
	}
	return sd
}
