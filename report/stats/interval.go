package stats

import "math"

// interval is the set of effects that the relabelling test of this row alone
// does not reject at 1 - confidence: those for which, once the effect is taken
// out of the candidate's copies, the measured labelling is not among the most
// extreme. Taking out an effect e leaves D - e of the measured effect D and
// D* - e a of a relabelled one D*, where a is the share of the shift that it
// holds. The labelling is as extreme as the measured one from
// min(A, B) to max(A, B), with
//
//	A = (D + D*) / (1 + a)    B = (D - D*) / (1 - a)
//
// so that the ends of the interval are order statistics of these (Garthwaite
// 1996 searches for them; with one common scale they can be written down).
// Its coverage is exact where copies of the two arms differ by a shift.
func interval(effect float64, relabelled, shares []float64, confidence float64, low, high []float64) [2]float64 {
	allowed := allowance(1-confidence, len(relabelled))
	if allowed == 0 {
		return [2]float64{math.Inf(-1), math.Inf(1)}
	}
	for m, d := range relabelled {
		a := shares[m]
		if 1-math.Abs(a) < tie { // the measured labelling, or its mirror image
			low[m], high[m] = math.Inf(1), math.Inf(1)
			continue
		}
		one, other := (effect+d)/(1+a), (effect-d)/(1-a)
		low[m], high[m] = -min(one, other), max(one, other) // low ends mirrored, to select from the same side
	}
	return [2]float64{-nthLargest(low, allowed), nthLargest(high, allowed)}
}
