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
func interval(effect float64, relabelled []float64, w weights, confidence float64, low, high, scratch []float64) [2]float64 {
	allowed := allowance(1-confidence, len(relabelled))
	if allowed == 0 {
		return [2]float64{math.Inf(-1), math.Inf(1)}
	}
	for m, d := range relabelled {
		// The low ends are mirrored, to select from the same side. Both
		// are infinite for the measured labelling and its mirror image.
		one, other := (effect+d)*w.up[m], (effect-d)*w.down[m]
		low[m], high[m] = -min(one, other), max(one, other)
	}
	for _, m := range w.whole {
		low[m], high[m] = math.Inf(1), math.Inf(1)
	}
	return [2]float64{-nthLargest(low, allowed, scratch), nthLargest(high, allowed, scratch)}
}

// weights are what the ends need of the shares a of the relabellings.
type weights struct {
	up, down []float64 // 1 / (1 + a) and 1 / (1 - a)
	whole    []int     // where a is 1 or -1
}

func newWeights(shares []float64) weights {
	w := weights{up: make([]float64, len(shares)), down: make([]float64, len(shares))}
	for m, a := range shares {
		if 1-math.Abs(a) < tie {
			w.whole = append(w.whole, m)
			continue
		}
		w.up[m], w.down[m] = 1/(1+a), 1/(1-a)
	}
	return w
}
