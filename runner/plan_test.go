package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tandem-bench/tandem/spec"
)

// The properties that NewOrder promises, on which the exactness of the
// relabelling test rests.
func TestOrderIsBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		round := rapid.IntRange(0, 1000).Draw(t, "round")
		cycles := n
		if n%2 == 1 && n > 1 {
			cycles = 2 * n
		}
		places, follows := map[[2]int]int{}, map[[2]int]int{}
		next := NewOrder(seed, n)
		order := make([]int, n)
		for c := round * cycles; c < (round+1)*cycles; c++ {
			next(c, order)
			for place, k := range order {
				places[[2]int{place, k}]++
				if place > 0 {
					follows[[2]int{order[place-1], k}]++
				}
			}
		}
		for place := range n {
			for k := range n {
				if got, want := places[[2]int{place, k}], cycles/n; got != want {
					t.Fatalf("target %d stood %d times in place %d of %d cycles, want %d", k, got, place, cycles, want)
				}
				if got, want := follows[[2]int{place, k}], cycles/n; place != k && got != want {
					t.Fatalf("target %d followed target %d %d times in %d cycles, want %d", k, place, got, cycles, want)
				}
			}
		}
	})
}

func TestOrderIsPureAndRandom(t *testing.T) {
	a, b, other := make([]int, 4), make([]int, 4), make([]int, 4)
	same := 0
	for c := range 200 {
		NewOrder(1, 4)(c, a)
		NewOrder(1, 4)(c, b)
		NewOrder(2, 4)(c, other)
		if !slices.Equal(a, b) {
			t.Fatalf("cycle %d: %v, then %v", c, a, b)
		}
		if slices.Equal(a, other) {
			same++
		}
	}
	// Two independent orders of four agree once in 24 cycles.
	if same > 30 {
		t.Errorf("orders of two seeds agree in %d of 200 cycles", same)
	}
}

func testSpec(arms, copies, scenarios int) *spec.Spec {
	s := &spec.Spec{Baseline: "base", Plan: spec.Plan{Copies: copies, Blocks: spec.Blocks{Min: 4, Max: 20}}}
	s.Arms = append(s.Arms, spec.Arm{Name: "head"}, spec.Arm{Name: "base"})
	for i := 2; i < arms; i++ {
		s.Arms = append(s.Arms, spec.Arm{Name: fmt.Sprint("arm", i)})
	}
	for i := range scenarios {
		s.Scenarios = append(s.Scenarios, spec.Scenario{
			Name: fmt.Sprint("http/s", i), HTTP: &spec.HTTP{}, Window: time.Second, Warmup: time.Second / 2,
		})
	}
	return s
}

func TestPlanOfABlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testSpec(rapid.IntRange(2, 4).Draw(t, "arms"), rapid.IntRange(1, 3).Draw(t, "copies"), rapid.IntRange(1, 6).Draw(t, "scenarios"))
		seed := rapid.Uint64().Draw(t, "seed")
		p, err := NewPlan(s, PlanOptions{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		again, _ := NewPlan(s, PlanOptions{Seed: seed})
		i := rapid.IntRange(0, 50).Draw(t, "block")
		b := p.Block(i)
		if diff := cmp.Diff(b, again.Block(i)); diff != "" {
			t.Fatalf("the same seed gave another block:\n%s", diff)
		}
		starts := map[Copy]bool{}
		for _, c := range b.Starts {
			starts[c] = true
		}
		if len(starts) != len(p.All()) || len(b.Starts) != len(p.All()) {
			t.Fatalf("starts %v are not each copy once", b.Starts)
		}
		sorted := slices.Sorted(slices.Values(b.Scenarios))
		for k, v := range sorted {
			if k != v {
				t.Fatalf("scenarios %v are not each scenario once", b.Scenarios)
			}
		}
	})
}

// Every order of starts must be as likely as any other, in every block.
func TestStartsAreUniform(t *testing.T) {
	p, err := NewPlan(testSpec(2, 2, 1), PlanOptions{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	const blocks = 24 * 400
	orders := map[string]int{}
	for i := range blocks {
		orders[fmt.Sprint(p.Block(i).Starts)]++
	}
	chi2 := 0.0
	for _, n := range orders {
		chi2 += float64((n-400)*(n-400)) / 400
	}
	// The 99.9% quantile of chi squared with 23 degrees of freedom.
	if len(orders) != 24 || chi2 > 49.7 {
		t.Errorf("%d orders of 24, chi squared %.1f", len(orders), chi2)
	}
}

func TestBaselineComesFirst(t *testing.T) {
	p, err := NewPlan(testSpec(3, 2, 1), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"base", "head", "arm2"}, p.Arms); diff != "" {
		t.Error(diff)
	}
}

func TestFilter(t *testing.T) {
	s := testSpec(2, 2, 3)
	s.Scenarios[2].Matrix = []spec.Axis{{Name: "c", Value: "16"}}
	tests := []struct {
		globs []string
		want  []string
		err   string
	}{
		{nil, []string{"http/s0", "http/s1", "http/s2[c=16]"}, ""},
		{[]string{"http/*"}, []string{"http/s0", "http/s1", "http/s2[c=16]"}, ""},
		{[]string{"http/s2"}, []string{"http/s2[c=16]"}, ""},
		{[]string{"http/s2[c=16]"}, []string{"http/s2[c=16]"}, ""},
		{[]string{"*s1", "http/s0"}, nil, `--scenario "*s1" selects none of the 3 scenarios: http/s0, http/s1, http/s2[c=16]`},
		{[]string{"*/s1", "http/s0"}, []string{"http/s0", "http/s1"}, ""},
	}
	for _, tt := range tests {
		p, err := NewPlan(s, PlanOptions{Filter: tt.globs})
		if err != nil {
			if err.Error() != tt.err {
				t.Errorf("%q: error %q, want %q", tt.globs, err, tt.err)
			}
			continue
		}
		var got []string
		for _, sc := range p.Scenarios {
			got = append(got, sc.ID())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || tt.err != "" {
			t.Errorf("%q: want error %q; scenarios:\n%s", tt.globs, tt.err, diff)
		}
	}
}

func TestShardsPartitionThePlan(t *testing.T) {
	s := testSpec(2, 2, 7)
	seen := map[string]int{}
	for k := 1; k <= 3; k++ {
		p, err := NewPlan(s, PlanOptions{Shard: Shard{K: k, N: 3}})
		if err != nil {
			t.Fatal(err)
		}
		for _, sc := range p.Scenarios {
			seen[sc.ID()]++
		}
	}
	for _, sc := range s.Scenarios {
		if seen[sc.ID()] != 1 {
			t.Errorf("%s is in %d shards", sc.ID(), seen[sc.ID()])
		}
	}
	if _, err := NewPlan(s, PlanOptions{Shard: Shard{K: 8, N: 8}}); err == nil || !strings.Contains(err.Error(), "only 7") {
		t.Errorf("an empty shard gave %v", err)
	}
}

func TestEstimate(t *testing.T) {
	p, err := NewPlan(testSpec(2, 2, 3), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	block, least, most := p.Estimate(500 * time.Millisecond)
	if block != 20*time.Second || least != 80*time.Second || most != 400*time.Second {
		t.Errorf("got %v, %v, %v", block, least, most)
	}
}
