package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLooks(t *testing.T) {
	for _, c := range []struct {
		min, max int
		want     []int
	}{
		{4, 20, []int{4, 7, 11, 20}},
		{4, 4, []int{4}},
		{9, 4, []int{4}},
		{4, 5, []int{4, 5}},
		{1, 3, []int{1, 2, 3}},
		{6, 30, []int{6, 10, 17, 30}},
		{10, 100, []int{10, 17, 28, 46, 100}},
	} {
		if diff := cmp.Diff(c.want, Looks(c.min, c.max)); diff != "" {
			t.Errorf("Looks(%d, %d) (-want +got):\n%s", c.min, c.max, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(1, 50).Draw(t, "min")
		to := rapid.IntRange(from, 500).Draw(t, "max")
		looks := Looks(from, to)
		if err := checkLooks(looks, 0); err != nil {
			t.Fatal(err)
		}
		if looks[0] != from || looks[len(looks)-1] != to {
			t.Fatalf("looks %v, expected them to go from %d to %d", looks, from, to)
		}
	})
}

func TestLookAt(t *testing.T) {
	looks := []int{4, 7, 11, 20}
	for _, c := range []struct {
		blocks, look int
		between      bool
	}{{0, 0, true}, {3, 0, true}, {4, 0, false}, {5, 1, true}, {11, 2, false}, {19, 3, true}, {20, 3, false}, {21, 3, false}} {
		look, between := LookAt(looks, c.blocks)
		if look != c.look || between != c.between {
			t.Errorf("LookAt(%v, %d) = %d, %v, expected %d, %v", looks, c.blocks, look, between, c.look, c.between)
		}
	}
}

func TestMinBlocks(t *testing.T) {
	for _, c := range []struct {
		base, head int
		alpha      float64
		looks      []int
		want       int
	}{
		{2, 2, 0.01, nil, 3}, // 2 of 216
		{2, 2, 0.05, nil, 3}, // 2 of 36 are not enough
		{2, 2, 0.06, nil, 2},
		{2, 2, 0.001, nil, 5},
		{2, 2, 0.01 / 3, nil, 4},
		{1, 1, 0.01, nil, 8}, // 2 of 256
		{1, 2, 0.01, nil, 5}, // 1 of 243
		{3, 3, 0.01, nil, 2}, // 2 of 400
		{2, 2, 0.01, []int{4, 7, 11, 20}, 7},
		{2, 2, 0.01, []int{2}, 0},
		{2, 2, 0.01, []int{2, 3}, 3},
		{0, 2, 0.01, nil, 0},
	} {
		if got := MinBlocks(c.base, c.head, c.alpha, c.looks...); got != c.want {
			t.Errorf("MinBlocks(%d, %d, %v, %v) = %d, expected %d", c.base, c.head, c.alpha, c.looks, got, c.want)
		}
	}
}

// A change too large to miss is marked at MinBlocks and not before.
func TestMinBlocksIsSharp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		nb, nh int
		alpha  float64
		looks  []int
	}{{2, 2, 0.01, nil}, {1, 1, 0.01, nil}, {2, 1, 0.003, nil}, {3, 3, 0.05, nil}, {2, 2, 0.01, []int{4, 7, 11, 20}}, {2, 2, 0.05, []int{3, 4, 5, 9}}} {
		first := 0
		plan := c.looks
		if plan == nil {
			plan = []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
		}
		for k, blocks := range plan {
			rows := rowsOf(r, []float64{5}, blocks, c.nb, c.nh)
			o := Options{Alpha: c.alpha}
			if c.looks != nil {
				o.Looks, o.Look = c.looks, k
			}
			table, err := Judge(rows, o)
			if err != nil {
				t.Fatal(err)
			}
			if table.Results[0].Marked && first == 0 {
				first = blocks
			}
			if impossible := math.IsInf(table.Results[0].Critical, 1); impossible != (first == 0) {
				t.Errorf("%+v: critical %v after %d blocks", c, table.Results[0].Critical, blocks)
			}
		}
		if want := MinBlocks(c.nb, c.nh, c.alpha, c.looks...); first != want {
			t.Errorf("%+v: first marked after %d blocks, MinBlocks says %d", c, first, want)
		}
	}
}

// The looks spend all of alpha, and no more, wherever a run ends.
func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		looks := Looks(rapid.IntRange(1, 9).Draw(t, "min"), rapid.IntRange(10, 60).Draw(t, "max"))
		alpha := rapid.SampledFrom([]float64{0.001, 0.01, 0.1}).Draw(t, "alpha")
		rows := make([]sample, 1)
		var err error
		if rows[0], err = newSample(rowsOf(rand.New(rand.NewPCG(1, 1)), []float64{0}, 2, 2, 2)[0]); err != nil {
			t.Fatal(err)
		}
		end := rapid.IntRange(0, len(looks)-1).Draw(t, "end")
		var sum float64
		for k := range end + 1 {
			share := Options{Alpha: alpha, Looks: looks, Look: k, Last: k == end}.share(rows, 1)
			if share < 0 {
				t.Fatalf("look %d of %v has share %v", k, looks, share)
			}
			sum += share
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("looks %v ended at %d spend %v of alpha, expected all", looks, end, sum)
		}
	})
}

// A change as large as the plan can resolve is found in four runs of five.
func TestCalibrationResolvable(t *testing.T) {
	for _, c := range []struct{ rows, blocks int }{{1, 4}, {6, 4}, {1, 6}, {1, 12}, {6, 12}, {20, 20}} {
		t.Run(fmt.Sprintf("%d rows, %d blocks", c.rows, c.blocks), func(t *testing.T) {
			const sd = 0.02 // of a copy, and so of the difference of two means of two
			w := world{machine: quiet, rows: c.rows, blocks: c.blocks, effect: firstRow(Resolvable(sd, c.blocks, c.rows, 0.01))}
			n := *tables
			found := simulate(n, 1, func(r *rand.Rand) tally {
				table, err := Judge(w.table(r), Options{Alpha: 0.01, Seed: r.Uint64(), Relabellings: max(*relabellings, 2000)})
				if err != nil {
					t.Error(err)
				}
				if table.Results[0].Marked {
					return tally{alarms: 1}
				}
				return tally{}
			}).alarms
			rate := float64(found) / float64(n)
			t.Logf("| %d | %d | %.2f%% | %.1f%% |", c.rows, c.blocks, 100*math.Expm1(w.true(0, 0)), 100*rate)
			if slack := 0.05 + 4*math.Sqrt(power*(1-power)/float64(n)); math.Abs(rate-power) > slack {
				t.Errorf("found %.1f%% of changes, expected %.0f%% within %.1f%%", 100*rate, 100*power, 100*slack)
			}
		})
	}
}

func TestResolvable(t *testing.T) {
	plan := Plan{Alpha: 0.01, Rows: 6, Candidates: 1, CopiesBase: 2, CopiesHead: 2}
	if got := plan.Resolvable(0.02, 2); !math.IsInf(got, 1) {
		t.Errorf("two blocks resolve %v, expected nothing", got)
	}
	last := math.Inf(1)
	for _, blocks := range []int{3, 4, 6, 12, 20, 100} {
		got := plan.Resolvable(0.02, blocks)
		if !(got < last) {
			t.Errorf("%d blocks resolve %v, expected less than %v", blocks, got, last)
		}
		last = got
	}
	looked, many, three := plan, plan, plan
	looked.Looks = []int{4, 7, 11, 20}
	many.Rows = 60
	three.Candidates = 3
	for _, p := range []Plan{looked, many, three} {
		if p.Resolvable(0.02, 20) <= plan.Resolvable(0.02, 20) {
			t.Errorf("%+v resolves no less than %+v", p, plan)
		}
	}
}
