package report

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// deal splits a run into n shards, as run --shard would have made them.
func deal(j *journal.Run, n int) []*journal.Run {
	var out []*journal.Run
	for k := range n {
		h := *j.Header
		h.ID, h.Shard, h.Rows = fmt.Sprintf("%s-%d", h.ID, k+1), fmt.Sprintf("%d/%d", k+1, n), nil
		end := *j.End
		s := &journal.Run{Header: &h, Ends: j.Ends, End: &end}
		mine := map[string]bool{}
		for i := k; i < len(j.Header.Rows); i += n {
			h.Rows = append(h.Rows, j.Header.Rows[i])
			mine[j.Header.Rows[i]] = true
		}
		for _, t := range j.Trials {
			if mine[t.Scenario] {
				s.Trials = append(s.Trials, t)
			}
		}
		out = append(out, s)
	}
	return out
}

// A table that was measured in shards is judged as the whole is: the same
// figures, verdicts, noise and gates, and one error rate.
func TestMergedTableIsJudgedAsTheWhole(t *testing.T) {
	w := newWorld("a", "b", "c", "d", "e")
	w.speed = slower("head", "d", 0.08)
	w.gates = []spec.Threshold{{Metric: "rps", Scenario: "*", Fail: gate("worse > max(noise, 0.03)")}}
	j := w.run()
	j.Header.Looks = []int{w.blocks}
	whole, err := Analyze(j, nil)
	check(t, err)
	merged, err := journal.Merge(deal(j, 3), "joined")
	check(t, err)
	joined, err := Analyze(merged, nil)
	check(t, err)
	if joined.Outcome != GateFailed || joined.Promise.Rows != 10 {
		t.Errorf("outcome %s over %d rows", joined.Outcome, joined.Promise.Rows)
	}
	same := []cmp.Option{cmpopts.EquateNaNs(), cmp.AllowUnexported(Row{})}
	if diff := cmp.Diff(whole.Rows, joined.Rows, same...); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(whole.Gates, joined.Gates); diff != "" {
		t.Error(diff)
	}
}

// Shards that their budgets ended after different numbers of blocks: each row
// has the blocks of its shard, and none is counted as dropped.
func TestMergedShardsOfDifferentLengths(t *testing.T) {
	w := newWorld("a", "b")
	j := w.run()
	j.Header.Looks = []int{w.blocks}
	parts := deal(j, 2)
	const short = 7
	parts[1].Ends = parts[1].Ends[:short]
	parts[1].End = &journal.End{Reason: journal.EndBudget, Detail: "no room", Ended: parts[1].End.Ended}
	var kept []journal.Trial
	for _, tr := range parts[1].Trials {
		if tr.Block < short {
			kept = append(kept, tr)
		}
	}
	parts[1].Trials = kept
	merged, err := journal.Merge(parts, "joined")
	check(t, err)
	a, err := Analyze(merged, nil)
	check(t, err)
	for scenario, blocks := range map[string]int{"a": w.blocks, "b": short} {
		r := row(t, a, scenario, "rps")
		if r.Blocks != blocks || r.Dropped != 0 || !r.Verdict.measured() {
			t.Errorf("%s: %d blocks, %d dropped, %s (%s)", scenario, r.Blocks, r.Dropped, r.Verdict, r.Reason)
		}
	}
	if a.Partial != "" || a.Outcome != Passed {
		t.Errorf("partial %q, outcome %s", a.Partial, a.Outcome)
	}
}

// A shard that was killed leaves the table partial, whatever the others say.
func TestMergedWithAKilledShard(t *testing.T) {
	j := newWorld("a", "b").run()
	j.Header.Looks = []int{12}
	parts := deal(j, 2)
	parts[1].End = nil
	merged, err := journal.Merge(parts, "joined")
	check(t, err)
	a, err := Analyze(merged, nil)
	check(t, err)
	if a.Outcome != Interrupted || a.Partial != "interrupted: shard 2/2: its journal has no end: it was killed" {
		t.Errorf("outcome %s, partial %q", a.Outcome, a.Partial)
	}
}
