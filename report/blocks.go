package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-bench/tandem/runner/journal"
)

// cell names one window of a scenario.
type cell struct {
	block int
	arm   string
	copy  int
}

// index finds the trials of a run by scenario, arm, block and copy, and knows
// which blocks the run went through.
type index struct {
	copies int
	trials map[string]byArm  // by scenario
	parts  []*blocks         // one, or those of the shards of a merged run
	partOf map[string]string // the shard of each scenario; empty for a run that is none
	byName map[string]*blocks
}

// byArm are the trials of a scenario: for each arm those of the first block
// that was seen, copy by copy, then those of the next; nil where there is none.
type byArm map[string][]*journal.Trial

// blocks are those that a run, or one shard of a merged run, went through.
type blocks struct {
	seen  []int          // that left a trace, ascending
	ended map[int]string // that were closed, and what failed in them
}

func newIndex(j *journal.Run) *index {
	ix := &index{
		copies: max(j.Header.Copies, 1),
		trials: map[string]byArm{},
		partOf: map[string]string{}, byName: map[string]*blocks{},
	}
	for _, p := range j.Header.Parts {
		for _, id := range p.Rows {
			ix.partOf[id] = p.Shard
		}
		ix.part(p.Shard)
	}
	if len(j.Header.Parts) == 0 {
		ix.part("")
	}
	for i := range j.Trials {
		t := &j.Trials[i]
		part := ix.part(ix.partOf[t.Scenario])
		part.seen = append(part.seen, t.Block)
	}
	for _, e := range j.Ends {
		part := ix.part(e.Shard)
		part.ended[e.Block] = e.Failed
		part.seen = append(part.seen, e.Block)
	}
	for _, p := range ix.parts {
		slices.Sort(p.seen)
		p.seen = slices.Compact(p.seen)
	}
	for i := range j.Trials {
		ix.place(&j.Trials[i])
	}
	return ix
}

// place puts a trial where it is looked for. A later one of the same window
// takes the place of an earlier one.
func (ix *index) place(t *journal.Trial) {
	if t.Copy < 0 || t.Copy >= ix.copies {
		return
	}
	run := ix.part(ix.partOf[t.Scenario])
	arms := ix.trials[t.Scenario]
	if arms == nil {
		arms = byArm{}
		ix.trials[t.Scenario] = arms
	}
	if arms[t.Arm] == nil {
		arms[t.Arm] = make([]*journal.Trial, len(run.seen)*ix.copies)
	}
	at, _ := slices.BinarySearch(run.seen, t.Block)
	arms[t.Arm][at*ix.copies+t.Copy] = t
}

// of are the trials of an arm in the block that was seen at this place.
func (ix *index) of(trials []*journal.Trial, at int) []*journal.Trial {
	if trials == nil {
		return make([]*journal.Trial, ix.copies)
	}
	return trials[at*ix.copies : (at+1)*ix.copies]
}

// part returns the blocks of a shard, or of the run where it is none.
func (ix *index) part(shard string) *blocks {
	p := ix.byName[shard]
	if p == nil {
		p = &blocks{ended: map[int]string{}}
		ix.byName[shard] = p
		ix.parts = append(ix.parts, p)
	}
	return p
}

// progress is the number of blocks that the run went through: of the shard
// that came furthest, where it was merged.
func (ix *index) progress() int {
	n := 0
	for _, p := range ix.parts {
		done := len(p.ended)
		if done == 0 {
			done = len(p.seen)
		}
		n = max(n, done)
	}
	return n
}

// sample is what the trials of two arms say about one metric.
type sample struct {
	blocks     []int       // that count
	base, head [][]float64 // values by block, then copy
	baseTrials []*journal.Trial
	headTrials []*journal.Trial
	values     []float64 // of base and head, in one piece
	dropped    int
	reasons    []string // why blocks were dropped, in block order
}

// collect takes the blocks in which every copy of both arms has a valid
// trial with a positive value of the metric. A block that lacks one is left
// out whole, for every copy alike: to keep the copies that did well would
// flatter the arm that failed.
//
// An unfinished block, which the run was cut off in, is no fault of the row
// and is not counted as dropped unless one of its trials is invalid.
func (ix *index) collect(scenario, base, head, metric string) sample {
	run := ix.byName[ix.partOf[scenario]]
	if run == nil { // of no shard that was merged
		return sample{}
	}
	s := newSample(len(run.seen), ix.copies)
	baseTrials, headTrials := ix.trials[scenario][base], ix.trials[scenario][head]
	for at, b := range run.seen {
		bs, hs := ix.of(baseTrials, at), ix.of(headTrials, at)
		why := invalid(bs, base, metric)
		if why == "" {
			why = invalid(hs, head, metric)
		}
		if why == "" {
			s.add(b, bs, hs, metric)
			continue
		}
		if failed, ended := run.ended[b]; ended {
			if why == missing && failed != "" {
				why = failed
			}
		} else if why == missing {
			continue
		}
		s.dropped++
		s.reasons = append(s.reasons, fmt.Sprintf("block %d: %s", b+1, why))
	}
	return s
}

const missing = "not every copy was measured"

// invalid says why the trials of one arm in one block do not count, or
// nothing. An invalid trial is a better reason than a missing one.
func invalid(trials []*journal.Trial, arm, metric string) string {
	why := ""
	for c, t := range trials {
		if t == nil {
			why = missing
			continue
		}
		if t.Invalid != "" {
			return fmt.Sprintf("%s#%d: %s", arm, c, t.Invalid)
		}
		v, ok := t.Metrics.Get(metric)
		if !ok {
			return fmt.Sprintf("%s#%d: no sample of %s", arm, c, metric)
		}
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Sprintf("%s#%d: %s is %v, and a ratio needs a positive number", arm, c, metric, v)
		}
	}
	return why
}

// newSample makes room for all blocks at once: a long run has thousands.
func newSample(blocks, copies int) sample {
	return sample{
		blocks: make([]int, 0, blocks),
		base:   make([][]float64, 0, blocks), head: make([][]float64, 0, blocks),
		baseTrials: make([]*journal.Trial, 0, blocks*copies), headTrials: make([]*journal.Trial, 0, blocks*copies),
		values: make([]float64, 0, 2*blocks*copies),
	}
}

func (s *sample) add(block int, base, head []*journal.Trial, metric string) {
	s.blocks = append(s.blocks, block)
	s.base = append(s.base, s.valuesOf(base, metric))
	s.head = append(s.head, s.valuesOf(head, metric))
	s.baseTrials = append(s.baseTrials, base...)
	s.headTrials = append(s.headTrials, head...)
}

func (s *sample) valuesOf(trials []*journal.Trial, metric string) []float64 {
	from := len(s.values)
	for _, t := range trials {
		s.values = append(s.values, t.Metrics.Value(metric))
	}
	return s.values[from:len(s.values):len(s.values)]
}

// logs returns the natural logarithms of values.
func logs(values [][]float64) [][]float64 {
	n := 0
	for _, vs := range values {
		n += len(vs)
	}
	out, all := make([][]float64, len(values)), make([]float64, 0, n)
	for b, vs := range values {
		from := len(all)
		for _, v := range vs {
			all = append(all, math.Log(v))
		}
		out[b] = all[from:len(all):len(all)]
	}
	return out
}
