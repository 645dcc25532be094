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

// index finds the trials of a run by scenario and cell, and knows which
// blocks the run went through.
type index struct {
	copies int
	trials map[string]map[cell]*journal.Trial
	parts  []*blocks         // one, or those of the shards of a merged run
	partOf map[string]string // the shard of each scenario; empty for a run that is none
	byName map[string]*blocks
}

// blocks are those that a run, or one shard of a merged run, went through.
type blocks struct {
	seen  []int          // that left a trace, ascending
	ended map[int]string // that were closed, and what failed in them
}

func newIndex(j *journal.Run) *index {
	ix := &index{
		copies: max(j.Header.Copies, 1),
		trials: map[string]map[cell]*journal.Trial{},
		partOf: map[string]string{}, byName: map[string]*blocks{},
	}
	for _, p := range j.Header.Parts {
		for _, id := range p.Rows {
			ix.partOf[id] = p.Shard
		}
	}
	for i := range j.Trials {
		t := &j.Trials[i]
		byCell := ix.trials[t.Scenario]
		if byCell == nil {
			byCell = map[cell]*journal.Trial{}
			ix.trials[t.Scenario] = byCell
		}
		byCell[cell{t.Block, t.Arm, t.Copy}] = t
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
	return ix
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
	var s sample
	trials, run := ix.trials[scenario], ix.part(ix.partOf[scenario])
	for _, b := range run.seen {
		bs, why := ix.side(trials, b, base, metric)
		if why == "" {
			var hs []*journal.Trial
			if hs, why = ix.side(trials, b, head, metric); why == "" {
				s.add(b, bs, hs, metric)
				continue
			}
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

// side returns the trials of one arm in one block, or why they do not count.
// An invalid trial is a better reason than a missing one.
func (ix *index) side(trials map[cell]*journal.Trial, block int, arm, metric string) ([]*journal.Trial, string) {
	out := make([]*journal.Trial, 0, ix.copies)
	why := ""
	for c := range ix.copies {
		t := trials[cell{block, arm, c}]
		switch {
		case t == nil:
			if why == "" {
				why = missing
			}
		case t.Invalid != "":
			return nil, fmt.Sprintf("%s#%d: %s", arm, c, t.Invalid)
		default:
			v, ok := t.Metrics[metric]
			if !ok {
				return nil, fmt.Sprintf("%s#%d: no sample of %s", arm, c, metric)
			}
			if !(v > 0) || math.IsInf(v, 0) {
				return nil, fmt.Sprintf("%s#%d: %s is %v, and a ratio needs a positive number", arm, c, metric, v)
			}
			out = append(out, t)
		}
	}
	if why != "" {
		return nil, why
	}
	return out, ""
}

func (s *sample) add(block int, base, head []*journal.Trial, metric string) {
	s.blocks = append(s.blocks, block)
	s.base = append(s.base, values(base, metric))
	s.head = append(s.head, values(head, metric))
	s.baseTrials = append(s.baseTrials, base...)
	s.headTrials = append(s.headTrials, head...)
}

func values(trials []*journal.Trial, metric string) []float64 {
	out := make([]float64, len(trials))
	for i, t := range trials {
		out[i] = t.Metrics[metric]
	}
	return out
}

// logs returns the natural logarithms of values.
func logs(values [][]float64) [][]float64 {
	out := make([][]float64, len(values))
	for b, vs := range values {
		out[b] = make([]float64, len(vs))
		for c, v := range vs {
			out[b][c] = math.Log(v)
		}
	}
	return out
}
