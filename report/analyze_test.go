package report

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// drawWorld draws a small run with effects, noise and holes. Its blocks are so
// few that every relabelling is tried: drawn ones differ within their error.
func drawWorld(t *rapid.T) *world {
	w := newWorld("a", "b", "c")
	w.blocks = rapid.IntRange(1, 4).Draw(t, "blocks")
	w.seed = rapid.Uint64().Draw(t, "seed")
	w.noise = rapid.Float64Range(0.0005, 0.05).Draw(t, "noise")
	effect := rapid.Float64Range(-0.2, 0.2).Draw(t, "effect")
	w.speed = func(arm, scenario string) float64 {
		if arm == "head" && scenario == "b" {
			return effect
		}
		return 0
	}
	hole := rapid.IntRange(0, 8).Draw(t, "hole")
	w.edit = func(tr *journal.Trial) bool {
		if tr.Scenario == "c" && tr.Block == hole && tr.Copy == 0 {
			tr.Invalid = "stolen CPU"
		}
		return true
	}
	return w
}

func mustAnalyze(t *rapid.T, j *journal.Run) *Analysis {
	a, err := Analyze(j, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSwappingArmsInvertsEverything(t *testing.T) {
	inverse := map[Verdict]Verdict{Regressed: Improved, Improved: Regressed, Same: Same, Unsure: Unsure, Failed: Failed}
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		j := w.run()
		a := mustAnalyze(t, j)
		swapped := *j
		h := *j.Header
		h.Arms = []journal.Arm{h.Arms[1], h.Arms[0]}
		swapped.Header = &h
		b := mustAnalyze(t, &swapped)
		for i, r := range a.Rows {
			s := b.Rows[i]
			if math.Abs(r.Ratio*s.Ratio-1) > 1e-9 {
				t.Errorf("%s %s: ratio %v, swapped %v", r.Scenario, r.Metric, r.Ratio, s.Ratio)
			}
			if r.Judged && s.Verdict != inverse[r.Verdict] {
				t.Errorf("%s %s: %s, swapped %s", r.Scenario, r.Metric, r.Verdict, s.Verdict)
			}
		}
	})
}

func TestUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		factor := rapid.Float64Range(1e-6, 1e6).Draw(t, "factor")
		a := mustAnalyze(t, w.run())
		edit := w.edit
		w.edit = func(tr *journal.Trial) bool {
			setMetric(tr, "cpu_per_request", tr.Metrics.Value("cpu_per_request")*(factor))
			return edit(tr)
		}
		b := mustAnalyze(t, w.run())
		for i, r := range a.Rows {
			if s := b.Rows[i]; r.Verdict != s.Verdict || (r.Judged && r.Verdict.measured() && math.Abs(r.Change-s.Change) > 1e-6) {
				t.Errorf("%s %s: %s %v, scaled %s %v", r.Scenario, r.Metric, r.Verdict, r.Change, s.Verdict, s.Change)
			}
		}
	})
}

// The order of the trials in the file carries no meaning.
func TestOrderOfTrialsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawWorld(t).run()
		a := mustAnalyze(t, j)
		shuffled := *j
		shuffled.Trials = rapid.Permutation(j.Trials).Draw(t, "trials")
		b := mustAnalyze(t, &shuffled)
		opts := cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreUnexported(Row{})}
		if diff := cmp.Diff(a.Rows, b.Rows, opts); diff != "" {
			t.Error(diff)
		}
	})
}

// Every planned row is in the table, whatever became of its trials.
func TestNoRowIsAbsent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		keep := rapid.SliceOfN(rapid.Bool(), 7, 7).Draw(t, "keep")
		n := 0
		w.edit = func(*journal.Trial) bool { n++; return keep[n%7] }
		a := mustAnalyze(t, w.run())
		for _, s := range w.scenarios {
			for _, m := range w.judge {
				found := slices.ContainsFunc(a.Rows, func(r Row) bool {
					return r.Scenario == s.ID() && r.Metric == m && r.Judged && r.Verdict != ""
				})
				if !found {
					t.Errorf("no verdict for %s %s", s.ID(), m)
				}
			}
		}
	})
}

func TestMoreThanAThirdInvalidFails(t *testing.T) {
	for _, c := range []struct {
		invalid int
		want    Verdict
	}{{0, Same}, {4, Same}, {5, Failed}, {12, Failed}} {
		w := newWorld("a")
		w.noise, w.judge = 0.0001, []string{"rps"}
		w.edit = func(tr *journal.Trial) bool {
			if tr.Block < c.invalid && tr.Arm == "base" && tr.Copy == 1 {
				tr.Invalid = "stolen CPU"
			}
			return true
		}
		r := row(t, analyze(t, w), "a", "rps")
		if r.Verdict != c.want || r.Dropped != c.invalid || r.Blocks != 12-c.invalid {
			t.Errorf("%d invalid: %s, %d dropped, %d blocks", c.invalid, r.Verdict, r.Dropped, r.Blocks)
		}
	}
}

// The block in which a run was cut off is no fault of the rows that it did
// not come to.
func TestUnfinishedBlockIsNotDropped(t *testing.T) {
	a := analyses()["partial"]
	if r := row(t, a, "http/hello-world", "rps"); r.Blocks != 6 || r.Dropped != 0 {
		t.Errorf("measured in the last block: %d blocks, %d dropped", r.Blocks, r.Dropped)
	}
	if r := row(t, a, "http/json-post", "rps"); r.Blocks != 5 || r.Dropped != 0 {
		t.Errorf("not reached in the last block: %d blocks, %d dropped", r.Blocks, r.Dropped)
	}
}

func TestValuesAreGeometricMeans(t *testing.T) {
	w := newWorld("a")
	a := analyze(t, w)
	for _, r := range a.Rows {
		if d := math.Abs(math.Log(r.Head.Value/r.Base.Value) - math.Log(r.Ratio)); d > 1e-9 {
			t.Errorf("%s: ratio %v is not that of the values %v and %v", r.Metric, r.Ratio, r.Head.Value, r.Base.Value)
		}
	}
	if v := row(t, a, "a", "rps").Base.Metrics["error_ratio"]; v != 0 {
		t.Errorf("mean of zeros is %v", v)
	}
}

func TestKindsAreJudgedByWhatTheyHave(t *testing.T) {
	w := newWorld("http")
	w.scenarios = append(w.scenarios,
		spec.Scenario{Name: "compile", Command: &spec.Process{}},
		spec.Scenario{Name: "echo", WS: &spec.WS{}},
		spec.Scenario{Name: "tool", Exec: &spec.Exec{Metrics: []spec.Extract{{Metric: "score", Better: "higher", Unit: "points"}}}, Judge: []string{"score"}},
	)
	w.edit = func(tr *journal.Trial) bool { return tr.Scenario == "http" }
	a := analyze(t, w)
	got := map[string][]string{}
	for _, r := range a.Rows {
		if r.Judged {
			got[r.Scenario] = append(got[r.Scenario], r.Metric)
		}
	}
	want := map[string][]string{"http": {"rps", "cpu_per_request"}, "compile": {"wall", "cpu"}, "echo": {"rps", "cpu_per_request"}, "tool": {"score"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := row(t, a, "tool", "score"); r.Better != "higher" || r.Unit != "points" {
		t.Errorf("the tool's own metric: better %s, unit %s", r.Better, r.Unit)
	}
}

func TestControlRowMoved(t *testing.T) {
	w := newWorld("a", "ctl")
	w.scenarios[1].Control = true
	w.speed = slower("head", "ctl", 0.1)
	a := analyze(t, w)
	if !slices.ContainsFunc(a.Warnings, func(s string) bool { return strings.Contains(s, "control row ctl (rps) moved by -9.9%") }) {
		t.Errorf("warnings %q", a.Warnings)
	}
}

func TestTooFewBlocks(t *testing.T) {
	w := newWorld("a")
	w.blocks = 2
	w.speed = slower("head", "a", 0.5)
	a := analyze(t, w)
	r := row(t, a, "a", "rps")
	if r.Verdict != Unsure || !math.IsInf(r.Noise, 1) || r.MoreBlocks == 0 {
		t.Errorf("%s, noise %v, %d more blocks", r.Verdict, r.Noise, r.MoreBlocks)
	}
	want := "2 blocks cannot mark any change at alpha 0.01: nor can any look of this plan; allow more blocks or copies"
	if a.Promise.MinBlocks != 0 || !slices.Contains(a.Warnings, want) {
		t.Errorf("min blocks %d, warnings %q", a.Promise.MinBlocks, a.Warnings)
	}
	// Four blocks could mark a row if they were all, but the first of three
	// looks has too little of alpha.
	w = newWorld("a")
	w.blocks = 4
	w.speed = slower("head", "a", 0.5)
	w.finish = func(j *journal.Run) { j.Header.Looks, j.End = []int{4, 8, 20}, nil }
	a = analyze(t, w)
	want = "4 blocks cannot mark any change at alpha 0.01: the first look that can is after 8"
	if a.Promise.MinBlocks != 8 || !slices.Contains(a.Warnings, want) {
		t.Errorf("min blocks %d, warnings %q", a.Promise.MinBlocks, a.Warnings)
	}
}

func TestAnalyzeRefuses(t *testing.T) {
	j := newWorld("a").run()
	noSpec := *j.Header
	noSpec.Spec = []byte(`[]`)
	oneArm := *j.Header
	oneArm.Arms = oneArm.Arms[:1]
	for name, c := range map[string]struct {
		j    *journal.Run
		want string
	}{
		"nil":       {nil, "no header"},
		"no header": {&journal.Run{}, "no header"},
		"one arm":   {&journal.Run{Header: &oneArm}, "needs a baseline and a candidate"},
		"bad spec":  {&journal.Run{Header: &noSpec}, "the spec kept in the journal cannot be read"},
	} {
		if _, err := Analyze(c.j, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestSettled(t *testing.T) {
	at := func(w *world, blocks int, looks []int) (bool, string) {
		j := w.run()
		j.Header.Looks = looks
		j.Ends = j.Ends[:blocks]
		j.Trials = slices.DeleteFunc(j.Trials, func(tr journal.Trial) bool { return tr.Block >= blocks })
		j.End = nil
		return Settled(j, w.spec())
	}
	quiet := newWorld("a")
	quiet.noise = 0.0001
	moved := newWorld("a", "b")
	moved.noise, moved.speed = 0.0005, slower("head", "b", 0.3)
	noisy := newWorld("a")
	noisy.noise = 0.1
	for _, c := range []struct {
		name   string
		w      *world
		blocks int
		want   bool
	}{
		{"the same, at a look", quiet, 6, true},
		{"the same, between looks", quiet, 7, false},
		{"moved and the same, at a look", moved, 10, true},
		{"too noisy", noisy, 6, false},
		{"nothing yet", quiet, 0, false},
	} {
		got, why := at(c.w, c.blocks, []int{6, 10, 12})
		if got != c.want || (got && why == "") {
			t.Errorf("%s: %v %q", c.name, got, why)
		}
	}
}

// A clock that jumps while a run goes on changes no figure: what is measured
// is measured by clocks that only go forward, and the times of day in the
// journal only say when.
func TestClockThatJumps(t *testing.T) {
	analyse := func(jump time.Duration) *Analysis {
		j := newWorld("a", "b").run()
		for i := range j.Trials {
			if j.Trials[i].Block >= 3 {
				j.Trials[i].Started = j.Trials[i].Started.Add(jump)
			}
		}
		for i := range j.Ends {
			if j.Ends[i].Block >= 3 {
				j.Ends[i].Ended = j.Ends[i].Ended.Add(jump)
			}
		}
		a, err := Analyze(j, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := analyse(0)
	for _, jump := range []time.Duration{-24 * time.Hour, time.Hour} {
		if diff := cmp.Diff(want.Rows, analyse(jump).Rows, cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(Row{})); diff != "" {
			t.Errorf("the clock jumped by %v:\n%s", jump, diff)
		}
	}
}
