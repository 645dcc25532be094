package stats

// stride is the spacing of the sample that nthLargest takes.
const stride = 16

// nthLargest is the value of xs that n others are at least as large as, from
// 0; scratch is as long as xs. Critical values and the ends of intervals lie
// far out, so nearly all values are left out first, by a bound taken from a
// sample; choosing among all would take most of the time of a table.
func nthLargest(xs []float64, n int, scratch []float64) float64 {
	if rank := 2*(n/stride) + stride; rank*stride < len(xs)/2 {
		sample := scratch[:0]
		for i := 0; i < len(xs); i += stride {
			sample = append(sample, xs[i])
		}
		bound := choice(sample, rank)
		kept := scratch[:0]
		for _, x := range xs {
			if x >= bound {
				kept = append(kept, x)
			}
		}
		if len(kept) > n {
			return choice(kept, n)
		}
	}
	return choice(append(scratch[:0], xs...), n)
}

// choice is the n-th largest of xs, which it reorders (Hoare's quickselect).
func choice(xs []float64, n int) float64 {
	low, high := 0, len(xs)-1
	for low < high {
		pivot := xs[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for xs[i] > pivot {
				i++
			}
			for xs[j] < pivot {
				j--
			}
			if i <= j {
				xs[i], xs[j] = xs[j], xs[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			high = j
		case n >= i:
			low = i
		default:
			return xs[n]
		}
	}
	return xs[n]
}
