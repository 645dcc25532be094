package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// drawTable makes tables of all kinds: any number of copies, a true effect
// here and there, blocks missing, values tied, rows without spread.
// Tied values come with few blocks: an interval by drawn relabellings depends
// on which of two equal copies a drawn label went to.
func drawTable(t *rapid.T) []Row {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 1))
	nb := rapid.IntRange(1, 3).Draw(t, "base copies")
	nh := rapid.IntRange(1, 3).Draw(t, "head copies")
	ties := rapid.Bool().Draw(t, "ties")
	blocks := rapid.IntRange(1, 9).Draw(t, "blocks")
	if ties {
		blocks = min(blocks, 2)
	}
	groups := rapid.IntRange(1, 2).Draw(t, "candidates")
	var rows []Row
	for g := range groups {
		effects := make([]float64, rapid.IntRange(1, 4).Draw(t, "rows"))
		for i := range effects {
			effects[i] = rapid.SampledFrom([]float64{0, 0, 0.005, 0.02, -0.3}).Draw(t, "effect")
		}
		for _, row := range rowsOf(r, effects, blocks, nb, nh) {
			row.Group = g
			row.Margin = rapid.SampledFrom([]float64{0, 0.0137}).Draw(t, "margin")
			rows = append(rows, maim(t, row, ties))
		}
	}
	return rows
}

// maim rounds a row's values, and takes a block out of it or levels it.
func maim(t *rapid.T, row Row, ties bool) Row {
	if ties {
		each(row, func(x float64) float64 { return math.Round(x*100) / 100 })
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		if gone := rapid.IntRange(0, len(row.Blocks)-1).Draw(t, "missing"); len(row.Blocks) > 1 {
			row.Base = slices.Delete(row.Base, gone, gone+1)
			row.Head = slices.Delete(row.Head, gone, gone+1)
			row.Blocks = slices.Delete(row.Blocks, gone, gone+1)
		}
	case 1:
		each(row, func(float64) float64 { return 1.5 })
	}
	return row
}

func each(row Row, f func(float64) float64) {
	for b := range row.Base {
		for _, xs := range [][]float64{row.Base[b], row.Head[b]} {
			for i := range xs {
				xs[i] = f(xs[i])
			}
		}
	}
}

func mustJudge(t *rapid.T, rows []Row, o Options) Table {
	table, err := Judge(rows, o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

var close9 = cmp.Options{cmpopts.EquateApprox(1e-6, 1e-11), cmpopts.EquateNaNs()}

func options(t *rapid.T) Options {
	return Options{
		Alpha:        rapid.SampledFrom([]float64{0.01, 0.05, 0.2}).Draw(t, "alpha"),
		Seed:         rapid.Uint64().Draw(t, "seed"),
		Relabellings: 1000,
	}
}

func TestSwappedArms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, o := drawTable(t), options(t)
		want := mustJudge(t, rows, o)
		for i := range rows {
			rows[i].Base, rows[i].Head = rows[i].Head, rows[i].Base
		}
		got := mustJudge(t, rows, o)
		for i := range got.Results {
			r := &got.Results[i]
			r.Effect = -r.Effect
			r.CI[0], r.CI[1] = -r.CI[1], -r.CI[0]
			for b := range r.PerBlock {
				r.PerBlock[b] = -r.PerBlock[b]
			}
		}
		if diff := cmp.Diff(want, got, close9); diff != "" {
			t.Fatalf("swapped arms (-want +got):\n%s", diff)
		}
	})
}

func TestReorderedRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, o := drawTable(t), options(t)
		want := mustJudge(t, rows, o)
		order := rapid.Permutation(indices(len(rows))).Draw(t, "order")
		moved := make([]Row, len(rows))
		for i, j := range order {
			moved[i] = rows[j]
		}
		got := mustJudge(t, moved, o)
		back := make([]Result, len(rows))
		for i, j := range order {
			back[j] = got.Results[i]
		}
		got.Results = back
		if diff := cmp.Diff(want, got, close9); diff != "" {
			t.Fatalf("reordered rows (-want +got):\n%s", diff)
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Another unit adds a constant to every logarithm of a row.
func TestScaledUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, o := drawTable(t), options(t)
		want := mustJudge(t, rows, o)
		for _, row := range rows {
			unit := math.Log(rapid.SampledFrom([]float64{1e-9, 1e-3, 60, 1e6}).Draw(t, "unit"))
			each(row, func(x float64) float64 { return x + unit })
		}
		got := mustJudge(t, rows, o)
		if diff := cmp.Diff(want, got, close9); diff != "" {
			t.Fatalf("scaled units (-want +got):\n%s", diff)
		}
	})
}

// What a result says of itself holds together.
func TestResultsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, o := drawTable(t), options(t)
		if rapid.Bool().Draw(t, "looks") {
			o.Looks, o.Look = []int{3, 6, 9}, 2
		}
		table := mustJudge(t, rows, o)
		again := mustJudge(t, rows, o)
		if diff := cmp.Diff(table, again, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("judged twice (-first +second):\n%s", diff)
		}
		for i, r := range table.Results {
			if r.Marked != (math.Abs(r.Effect) > r.Critical) {
				t.Fatalf("row %d: marked %v with effect %v, critical %v", i, r.Marked, r.Effect, r.Critical)
			}
			if r.Marked != (r.P <= o.Alpha) {
				t.Fatalf("row %d: marked %v at p %v, alpha %v, effect %v, critical %v", i, r.Marked, r.P, o.Alpha, r.Effect, r.Critical)
			}
			if !(r.CI[0] <= r.Effect && r.Effect <= r.CI[1]) {
				t.Fatalf("row %d: interval %v lacks the effect %v", i, r.CI, r.Effect)
			}
			if r.Marked && r.CI[0] <= 0 && r.CI[1] >= 0 {
				t.Fatalf("row %d: marked, and its interval %v holds no change", i, r.CI)
			}
			if r.P <= 0 || r.P > 1 || r.More < 0 || (r.More > 0 && (r.Marked || r.Same)) {
				t.Fatalf("row %d: p %v, more %d", i, r.P, r.More)
			}
		}
	})
}
