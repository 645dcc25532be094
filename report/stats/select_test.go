package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNthLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, size := range []int{1, 2, 17, 500, 5000, 30_000} {
		for _, values := range []int{1, 3, 1 << 30} { // many ties, or none
			xs := make([]float64, size)
			for i := range xs {
				xs[i] = float64(r.IntN(values))
			}
			if values > 3 && size > 1000 { // an order that misleads the sample
				slices.Sort(xs[:size/2])
				for i := 0; i < size; i += stride {
					xs[i] = -xs[i]
				}
			}
			sorted, before := slices.Clone(xs), slices.Clone(xs)
			slices.Sort(sorted)
			slices.Reverse(sorted)
			for _, n := range []int{0, 1, size / 200, size / 100, size / 3, size - 1} {
				if n >= size {
					continue
				}
				if got := nthLargest(xs, n, make([]float64, size)); got != sorted[n] {
					t.Errorf("%d of %d values: %v, expected %v", n, size, got, sorted[n])
				}
			}
			if !slices.Equal(xs, before) {
				t.Error("the values were reordered")
			}
		}
	}
}
