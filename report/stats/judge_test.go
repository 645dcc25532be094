package stats

import (
	"math/rand/v2"
	"testing"
)

// table makes rows of same code: a drift for each block, and copies about it.
func table(r *rand.Rand, rows, blocks, groups int, noise float64) []Row {
	var out []Row
	for g := range groups {
		for range rows {
			row := Row{Group: g, Margin: 0.02}
			for b := range blocks {
				drift := 0.1 * r.NormFloat64()
				two := func() []float64 {
					return []float64{drift + noise*r.NormFloat64(), drift + noise*r.NormFloat64()}
				}
				row.Base = append(row.Base, two())
				row.Head = append(row.Head, two())
				row.Blocks = append(row.Blocks, b)
			}
			out = append(out, row)
		}
	}
	return out
}

func BenchmarkJudge(b *testing.B) {
	for _, c := range []struct {
		name                 string
		rows, blocks, groups int
	}{{"1x4", 1, 4, 1}, {"6x12", 6, 12, 1}, {"60x6", 60, 6, 1}, {"60x20", 60, 20, 1}, {"500x20x3", 500, 20, 3}} {
		b.Run(c.name, func(b *testing.B) {
			rows := table(rand.New(rand.NewPCG(1, 2)), c.rows, c.blocks, c.groups, 0.02)
			for b.Loop() {
				if _, err := Judge(rows, Options{Alpha: 0.01, Seed: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
