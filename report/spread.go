package report

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// BlockSD is the standard deviation of the row's log ratio from block to
// block: what decides how long a change of a given size takes to be seen. It
// is NaN for fewer than two blocks.
func (r Row) BlockSD() float64 {
	logs := make([]float64, 0, len(r.PerBlock))
	for _, ratio := range r.PerBlock {
		logs = append(logs, math.Log(ratio))
	}
	return stat.StdDev(logs, nil)
}
