package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shards are the parts of a plan of five scenarios, each with its own number
// of blocks.
func shards(blocks ...int) []*Run {
	all := []string{"a", "b", "c", "d", "e"}
	var runs []*Run
	for k, n := range blocks {
		h := header()
		h.ID = fmt.Sprintf("run%d", k+1)
		h.Shard = fmt.Sprintf("%d/%d", k+1, len(blocks))
		h.Started = start.Add(time.Duration(k) * time.Second)
		h.Spec = json.RawMessage(`{"name":"x","digest":"d1","profile":"ci"}`)
		h.Arms = []Arm{{Name: "base", Source: "git main", Revision: "r1", Digest: "t1"}, {Name: "head", Source: "dir .", Revision: "r2", Digest: "t2"}}
		h.Looks = []int{20}
		h.Rows = nil
		r := &Run{Header: &h, End: &End{Ended: h.Started.Add(time.Minute), Reason: EndBlocks}}
		for i := k; i < len(all); i += len(blocks) {
			h.Rows = append(h.Rows, all[i])
		}
		for b := range n {
			for _, row := range h.Rows {
				t := trial(b, 0)
				t.Scenario = row
				r.Trials = append(r.Trials, t)
			}
			r.Ends = append(r.Ends, BlockEnd{Block: b, Ended: start})
		}
		runs = append(runs, r)
	}
	return runs
}

func TestMergeJoinsTheShardsInPlanOrder(t *testing.T) {
	runs := shards(2, 3, 2)
	slices.Reverse(runs) // in whatever order they were downloaded
	m, err := Merge(runs, "joined")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, m.Header.Rows); diff != "" {
		t.Error(diff)
	}
	if m.Header.ID != "joined" || m.Header.Shard != "" || !m.Header.Started.Equal(start) || len(m.Header.Parts) != 3 {
		t.Errorf("header %+v", m.Header)
	}
	if len(m.Trials) != 2*2+3*2+2*1 || len(m.Ends) != 7 {
		t.Errorf("%d trials, %d ends of blocks", len(m.Trials), len(m.Ends))
	}
	if m.End.Reason != EndBlocks || !m.End.Ended.Equal(start.Add(62*time.Second)) {
		t.Errorf("end %+v", m.End)
	}
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	if err := Save(path, m); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Trials) != len(m.Trials) || again.End == nil || again.Resume != 0 {
		t.Errorf("read back: %d trials, end %v", len(again.Trials), again.End)
	}
	if diff := cmp.Diff(m.Header.Parts, again.Header.Parts); diff != "" {
		t.Error(diff)
	}
	if !slices.IsSortedFunc(again.Trials, func(a, b Trial) int { return a.Block - b.Block }) {
		t.Error("the saved trials are not in the order of their blocks")
	}
}

func TestMergeRefusesWhatIsNoPart(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(runs []*Run) []*Run
		want   string
	}{
		{"no shard", func([]*Run) []*Run { return nil }, "no shard to merge"},
		{"a whole run", func(rs []*Run) []*Run { rs[1].Header.Shard = ""; return rs }, "run run2 is no shard"},
		{"a strange name", func(rs []*Run) []*Run { rs[1].Header.Shard = "3/2"; return rs }, `"3/2"`},
		{"missing", func(rs []*Run) []*Run { return rs[:2] }, "found 2 of 3, without 3/3"},
		{"a million missing", func(rs []*Run) []*Run { rs[0].Header.Shard = "1/1000000"; return rs[:1] }, "found 1 of 1000000, without 2/1000000"},
		{"twice", func(rs []*Run) []*Run { return append(rs, rs[0]) }, "shard 1/3 twice"},
		{"another number of shards", func(rs []*Run) []*Run { rs[2].Header.Shard = "3/4"; return rs }, "3/4 beside shards of 3"},
		{"another spec", func(rs []*Run) []*Run { rs[2].Header.Spec = json.RawMessage(`{"digest":"d2"}`); return rs }, "the spec's digest is d1 in shard 1/3 and d2 in shard 3/3"},
		{"another profile", func(rs []*Run) []*Run { rs[2].Header.Spec = json.RawMessage(`{"digest":"d1"}`); return rs }, "the profile is ci in shard 1/3 and none in shard 3/3"},
		{"a broken spec", func(rs []*Run) []*Run { rs[2].Header.Spec = json.RawMessage(`7`); return rs }, "cannot be read"},
		{"another seed", func(rs []*Run) []*Run { rs[1].Header.Seed = 8; return rs }, "the seed is 7 in shard 1/3 and 8 in shard 2/3"},
		{"another tandem", func(rs []*Run) []*Run { rs[1].Header.Tool = "v2"; return rs }, "the version of tandem is test in shard 1/3 and v2"},
		{"another plan", func(rs []*Run) []*Run { rs[1].Header.Looks = []int{4}; return rs }, "the plan of looks"},
		{"another filter", func(rs []*Run) []*Run { rs[1].Header.Filter = []string{"a*"}; return rs }, "--scenario"},
		{"another head", func(rs []*Run) []*Run { rs[1].Header.Arms[1].Revision = "r3"; return rs }, "the revision of arm head is r2 in shard 1/3 and r3"},
		{"an arm less", func(rs []*Run) []*Run { rs[1].Header.Arms = rs[1].Header.Arms[:1]; return rs }, "the number of arms"},
		{"another folder", func(rs []*Run) []*Run {
			for _, r := range rs {
				r.Header.Arms[1].Revision, r.Header.Arms[1].Digest = "", r.Header.ID
			}
			return rs
		}, "the built tree of arm head"},
		{"a scenario twice", func(rs []*Run) []*Run { rs[1].Header.Rows[0] = "a"; return rs }, "scenario a is in two shards"},
		{"a scenario too many", func(rs []*Run) []*Run { rs[2].Header.Rows = append(rs[2].Header.Rows, "f", "g"); return rs }, "of which"},
		{"a trial of another shard", func(rs []*Run) []*Run { rs[1].Trials[0].Scenario = "a"; return rs }, `holds a trial of "a"`},
		{"a check of another shard", func(rs []*Run) []*Run { rs[1].Checks = []Check{{Scenario: "a"}}; return rs }, `holds a check of "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Merge(c.change(shards(2, 2, 2)), "joined")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if missing := strings.Contains(c.name, "missing"); errors.Is(err, ErrMissingShards) != missing {
				t.Errorf("%v: missing shards %v, want %v", err, !missing, missing)
			}
		})
	}
}

// A merged run is as whole as the least of its shards.
func TestMergedEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		end  *End
		want End
	}{
		{"budget", &End{Reason: EndBudget, Detail: "no room"}, End{Reason: EndBudget, Detail: "shard 2/2: no room"}},
		{"failed", &End{Reason: EndFailed, Detail: "the server died"}, End{Reason: EndFailed, Detail: "shard 2/2: the server died"}},
		{"interrupted", &End{Reason: EndInterrupted}, End{Reason: EndInterrupted}},
		{"killed", nil, End{Reason: EndInterrupted, Detail: "shard 2/2: its journal has no end: it was killed"}},
		{"whole", &End{Reason: EndBlocks}, End{Reason: EndBlocks}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := shards(2, 2)
			runs[1].End = c.end
			m, err := Merge(runs, "joined")
			if err != nil {
				t.Fatal(err)
			}
			if m.End.Reason != c.want.Reason || m.End.Detail != c.want.Detail {
				t.Errorf("%+v, want %+v", m.End, c.want)
			}
		})
	}
}

func TestMergedWarnings(t *testing.T) {
	runs := shards(2, 2)
	for _, r := range runs {
		r.Header.Warnings = []string{"nothing is pinned"}
	}
	runs[0].End.Warnings = []string{"hot"}
	runs[1].Torn, runs[1].Resume = true, 1
	runs[1].Header.Host.CPU = "another"
	runs[1].Header.Arms[1].Digest = "t3"
	m, err := Merge(runs, "joined")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"nothing is pinned",
		"shard 1/2: hot",
		"shard 2/2: the last line of its journal was cut off and is left out",
		"shard 2/2: it was resumed 1 time(s)",
		"the shards ran on 2 kinds of machine, each row on one of them: , 0 CPUs, kernel ; another, 0 CPUs, kernel ",
		"arm head: the shards built different files of it: its build is not reproducible, or its folder had changes that are not committed",
	}
	if diff := cmp.Diff(want, m.Header.Warnings); diff != "" {
		t.Error(diff)
	}
}
