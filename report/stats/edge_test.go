package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// copiesOf is a row of four blocks with the given copies in each.
func copiesOf(base, head []float64) Row {
	r := Row{Margin: 0.01}
	for b := range 4 {
		r.Base = append(r.Base, slices.Clone(base))
		r.Head = append(r.Head, slices.Clone(head))
		r.Blocks = append(r.Blocks, b)
	}
	return r
}

func judgeOne(t *testing.T, r Row, o Options) Result {
	t.Helper()
	table, err := Judge([]Row{r}, o)
	if err != nil {
		t.Fatal(err)
	}
	return table.Results[0]
}

func TestAllEqual(t *testing.T) {
	r := judgeOne(t, copiesOf([]float64{2, 2}, []float64{2, 2}), Options{Alpha: 0.01})
	if r.Marked || !r.Same || r.P != 1 || r.Effect != 0 || r.SE != 0 || r.CI != [2]float64{} || r.More != 0 {
		t.Errorf("found %+v, expected the same for certain", r)
	}
}

func TestChangeWithoutSpread(t *testing.T) {
	r := judgeOne(t, copiesOf([]float64{2, 2}, []float64{2.5, 2.5}), Options{Alpha: 0.01})
	if !r.Marked || r.Critical != 0 || r.CI != [2]float64{0.5, 0.5} || r.SE != 0 {
		t.Errorf("found %+v, expected a mark with no noise", r)
	}
	if want := 1.0 / 648; math.Abs(r.P-want) > 1e-12 {
		t.Errorf("p = %v, expected %v, the smallest of four blocks", r.P, want)
	}
	r = judgeOne(t, copiesOf([]float64{2, 2}, []float64{2.5, 2.5}), Options{Alpha: 0.001})
	if r.Marked || !math.IsInf(r.Critical, 1) || !math.IsInf(r.CI[1], 1) {
		t.Errorf("found %+v, expected four blocks to be too few for this alpha", r)
	}
}

// A change in the thirteenth digit is the rounding of the measurement.
func TestRoundingIsNoChange(t *testing.T) {
	r := judgeOne(t, copiesOf([]float64{2, 2}, []float64{2 + 1e-13, 2 + 1e-13}), Options{Alpha: 0.01})
	if r.Marked || r.P != 1 {
		t.Errorf("found %+v, expected no mark", r)
	}
}

func TestOneBlock(t *testing.T) {
	for _, row := range []Row{
		{Base: [][]float64{{1}}, Head: [][]float64{{2}}, Blocks: []int{0}},
		{Base: [][]float64{{1, 1.1}}, Head: [][]float64{{2, 2.1}}, Blocks: []int{7}},
	} {
		r := judgeOne(t, row, Options{Alpha: 0.01})
		if r.Marked || !math.IsInf(r.Critical, 1) || !math.IsInf(r.CI[0], -1) || !math.IsInf(r.CI[1], 1) || math.Abs(r.Effect-1) > 1e-12 {
			t.Errorf("found %+v, expected an effect of 1 and no verdict", r)
		}
	}
}

// A row without blocks takes no verdict, and takes none from the others.
func TestRowWithoutBlocks(t *testing.T) {
	rows := []Row{{}, copiesOf([]float64{2, 2.01}, []float64{2.5, 2.51})}
	table, err := Judge(rows, Options{Alpha: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if r := table.Results[0]; !math.IsNaN(r.Effect) || r.P != 1 || r.Marked || r.Same || r.More != 0 {
		t.Errorf("found %+v for a row without blocks", r)
	}
	if !table.Results[1].Marked {
		t.Errorf("found %+v, expected a mark", table.Results[1])
	}
	if table, err = Judge([]Row{{}, {}}, Options{Alpha: 0.01}); err != nil || table.Results[1].P != 1 || table.Permutations != 0 {
		t.Errorf("only rows without blocks: found %+v, %v", table, err)
	}
	if table, err = Judge(nil, Options{Alpha: 0.01}); err != nil || len(table.Results) != 0 {
		t.Errorf("no rows: found %v, %v", table, err)
	}
}

// A slowdown that sits in rare long pauses counts in full: nothing is trimmed.
func TestRarePausesCount(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	row := rowsOf(r, []float64{0}, 20, 2, 2)[0]
	plain := judgeOne(t, row, Options{Alpha: 0.01}).Effect
	for b := 0; b < 20; b += 4 {
		row.Head[b][0] += 0.4
	}
	if got := judgeOne(t, row, Options{Alpha: 0.01}).Effect - plain; math.Abs(got-0.05) > 1e-12 {
		t.Errorf("pauses of 40%% in one copy of eight moved the effect by %v, expected 0.05", got)
	}
}

func TestMoreBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	row := rowsOf(r, []float64{0.022}, 5, 2, 2)[0]
	res := judgeOne(t, row, Options{Alpha: 0.01})
	if res.Marked || res.More < 1 || res.More > 40 {
		t.Errorf("found %+v, expected some further blocks", res)
	}
	row.Margin = 1
	if res = judgeOne(t, row, Options{Alpha: 0.01}); !res.Same || res.More != 0 {
		t.Errorf("found %+v, expected it to be settled", res)
	}
}

// Another candidate takes its share of alpha, whether or not it has rows.
func TestCandidatesShareAlpha(t *testing.T) {
	row := copiesOf([]float64{2, 2.01}, []float64{2.5, 2.51})
	alone := judgeOne(t, row, Options{Alpha: 0.01})
	shared := judgeOne(t, row, Options{Alpha: 0.01, Groups: 3})
	if math.Abs(shared.P-3*alone.P) > 1e-12 {
		t.Errorf("p = %v among three candidates, expected three times %v", shared.P, alone.P)
	}
}

func TestRefusals(t *testing.T) {
	good := func() Row { return copiesOf([]float64{1, 2}, []float64{1, 2}) }
	for _, c := range []struct {
		name string
		edit func(*Row, *Options)
		want string
	}{
		{"nan", func(r *Row, _ *Options) { r.Base[2][1] = math.NaN() }, "NaN in block 2"},
		{"log of zero", func(r *Row, _ *Options) { r.Head[0][0] = math.Inf(-1) }, "-Inf in block 0"},
		{"blocks", func(r *Row, _ *Options) { r.Blocks = r.Blocks[1:] }, "3 block numbers"},
		{"twice", func(r *Row, _ *Options) { r.Blocks[1] = 0 }, "block 0 twice"},
		{"copies", func(r *Row, _ *Options) { r.Base[3] = r.Base[3][1:] }, "leave out a block that lacks a copy"},
		{"no copies", func(r *Row, _ *Options) { r.Base[3] = nil }, "0 baseline"},
		{"candidate", func(r *Row, _ *Options) { r.Group = -1 }, "candidate number -1"},
		{"margin", func(r *Row, _ *Options) { r.Margin = -1 }, "margin of -1"},
		{"alpha", func(_ *Row, o *Options) { o.Alpha = 0 }, "alpha of 0"},
		{"confidence", func(_ *Row, o *Options) { o.Confidence = 0.999 }, "confidence of 0.999"},
		{"look", func(_ *Row, o *Options) { o.Look = 1 }, "look 1 of a plan without looks"},
		{"no such look", func(_ *Row, o *Options) { o.Looks, o.Look = []int{4}, 1 }, "found look 1"},
		{"looks", func(_ *Row, o *Options) { o.Looks = []int{4, 4} }, "growing numbers"},
		{"too many", func(_ *Row, o *Options) { o.Looks = []int{3, 9} }, "expected at most 3"},
		{"relabellings", func(_ *Row, o *Options) { o.Relabellings = -1 }, "-1 relabellings"},
	} {
		row, o := good(), Options{Alpha: 0.01}
		c.edit(&row, &o)
		if _, err := Judge([]Row{good(), row}, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: found error %v, expected one with %q", c.name, err, c.want)
		}
	}
	three := copiesOf([]float64{1, 2, 3}, []float64{1, 2, 3})
	if _, err := Judge([]Row{good(), three}, Options{Alpha: 0.01}); err == nil || !strings.Contains(err.Error(), "same in all rows") {
		t.Errorf("rows with other copies: found error %v", err)
	}
}
