// Package runner plans a measurement and carries it out.
//
// [NewPlan] is pure: a spec and a seed in, a schedule out. [Run] executes a
// plan: it builds the arms, starts every copy afresh in every block, lets
// the drivers of runner/load put load on them in turns, and writes a journal,
// which report judges. The runner itself judges nothing; when to stop early
// is told to it by a function.
package runner

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// Plan is the schedule of a run. It holds no clock and no process.
type Plan struct {
	Seed      uint64
	Arms      []string // the baseline first
	Copies    int      // of each arm, in each block
	Blocks    spec.Blocks
	Scenarios []spec.Scenario // those to run, in spec order
	Shard     Shard           // zero: the whole
}

// Copy names one instance of an arm in a block.
type Copy struct {
	Arm   int // index into Plan.Arms
	Index int // from 0
}

// Block is the schedule of one block: all copies are started in Starts'
// order, then each scenario is run in Scenarios' order.
type Block struct {
	Index     int
	Starts    []Copy // a permutation of all copies; a copy's place in it is its slot
	Scenarios []int  // a permutation of the indexes of Plan.Scenarios
}

// PlanOptions narrows a plan.
type PlanOptions struct {
	Seed   uint64
	Filter []string // globs over scenario names and IDs; empty: all
	Shard  Shard    // zero: the whole
}

// Shard is part K of N of a plan, from 1. Whole scenarios are dealt out, so
// that both sides of a row are measured on one machine.
type Shard struct{ K, N int }

func (s Shard) String() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.K, s.N)
}

// NewPlan makes the plan of a spec. It fails where nothing is left to run.
func NewPlan(s *spec.Spec, o PlanOptions) (*Plan, error) {
	p := &Plan{Seed: o.Seed, Copies: s.Plan.Copies, Blocks: s.Plan.Blocks, Arms: []string{s.Baseline}, Shard: o.Shard}
	for _, a := range s.Arms {
		if a.Name != s.Baseline {
			p.Arms = append(p.Arms, a.Name)
		}
	}
	selected, err := filter(s.Scenarios, o.Filter)
	if err != nil {
		return nil, err
	}
	for i, sc := range selected {
		if o.Shard.N == 0 || i%o.Shard.N == o.Shard.K-1 {
			p.Scenarios = append(p.Scenarios, sc)
		}
	}
	if len(p.Scenarios) == 0 {
		return nil, fmt.Errorf("shard %s holds no scenario: the spec has only %d, use at most that many shards", o.Shard, len(selected))
	}
	return p, nil
}

// filter returns the scenarios that any of the globs selects, by name or ID.
// A glob that selects nothing is an error: it is most likely mistyped.
func filter(all []spec.Scenario, globs []string) ([]spec.Scenario, error) {
	if len(globs) == 0 {
		return all, nil
	}
	chosen := make([]bool, len(all))
	for _, g := range globs {
		found := false
		for i, s := range all {
			if matches(g, s) {
				chosen[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("--scenario %q selects none of the %d scenarios: %s", g, len(all), nameList(all))
		}
	}
	var kept []spec.Scenario
	for i, s := range all {
		if chosen[i] {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

func matches(glob string, s spec.Scenario) bool {
	if glob == s.Name || glob == s.ID() {
		return true
	}
	byName, _ := path.Match(glob, s.Name)
	byID, _ := path.Match(glob, s.ID())
	return byName || byID
}

func nameList(all []spec.Scenario) string {
	var names string
	for i, s := range all {
		if i == 8 {
			return names + ", ..."
		}
		if i > 0 {
			names += ", "
		}
		names += s.ID()
	}
	return names
}

// All returns every copy, arm by arm.
func (p *Plan) All() []Copy {
	var all []Copy
	for a := range p.Arms {
		for c := range p.Copies {
			all = append(all, Copy{Arm: a, Index: c})
		}
	}
	return all
}

// Block returns the schedule of block i. The order of starts is shuffled in
// every block by itself, not balanced over blocks: the relabelling test tries
// all orders that could have been, so they must all have been possible (the
// test CalibrationOrders of report/stats shows what a balanced order costs).
func (p *Plan) Block(i int) Block {
	all := p.All()
	b := Block{Index: i, Starts: make([]Copy, len(all))}
	for slot, k := range p.rand(streamStarts, uint64(i)).Perm(len(all)) {
		b.Starts[slot] = all[k]
	}
	b.Scenarios = p.rand(streamScenarios, uint64(i)).Perm(len(p.Scenarios))
	return b
}

// Turns returns the order in which n copies take their turns in each cycle
// of a scenario of a block: a function of the cycle, with the properties of
// [NewOrder].
func (p *Plan) Turns(block, scenario, n int) func(cycle int, order []int) {
	return NewOrder(p.stream(streamTurns, uint64(block)<<32|uint64(scenario)), n)
}

// Estimate is the expected time of one block and of the whole plan, without
// builds: windows and warm-ups of all copies, and startup for each start.
func (p *Plan) Estimate(startup time.Duration) (block, least, most time.Duration) {
	copies := time.Duration(len(p.Arms) * p.Copies)
	block = copies * startup
	primed := map[string]bool{}
	for _, s := range p.Scenarios {
		block += copies * (s.Window + s.Warmup)
		if s.Prime != nil && !primed[s.Name] {
			block += copies * s.Prime.Time
			primed[s.Name] = true
		}
	}
	return block, block * time.Duration(p.Blocks.Min), block * time.Duration(p.Blocks.Max)
}

// The independent random streams of a plan.
const (
	streamStarts uint64 = iota + 1
	streamScenarios
	streamTurns
)

// stream derives an independent seed from the plan's.
func (p *Plan) stream(kind, n uint64) uint64 { return p.rand(kind, n).Uint64() }

func (p *Plan) rand(kind, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(p.Seed^kind*0x9e3779b97f4a7c15, n))
}

// NewOrder returns a pure function that gives the order of n targets in each
// cycle. The order is random, and balanced: cycles come in rounds of n (2n
// for odd n), and within a round each target takes each place equally often
// and follows each other target equally often, so that neither a place in
// the cycle nor a predecessor can favour a target. It is a Williams design
// (E. J. Williams, Aust. J. Sci. Res. 1949) whose labels and rows are
// shuffled anew in every round.
func NewOrder(seed uint64, n int) func(cycle int, order []int) {
	rows := williams(n)
	return func(cycle int, order []int) {
		round := cycle / len(rows)
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		labels := rng.Perm(n)
		row := rng.Perm(len(rows))[cycle%len(rows)]
		for place, k := range rows[row] {
			order[place] = labels[k]
		}
	}
}

// williams returns the rows of a Williams design for n treatments.
func williams(n int) [][]int {
	first := make([]int, n) // 0, 1, n-1, 2, n-2, ...
	for i := range first {
		if i%2 == 1 {
			first[i] = (i + 1) / 2
		} else {
			first[i] = (n - i/2) % n
		}
	}
	var rows [][]int
	for shift := range n {
		row := make([]int, n)
		for place, k := range first {
			row[place] = (k + shift) % n
		}
		rows = append(rows, row)
	}
	if n%2 == 1 && n > 1 {
		for _, r := range rows[:n] {
			mirrored := slices.Clone(r)
			slices.Reverse(mirrored)
			rows = append(rows, mirrored)
		}
	}
	return rows
}
