package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// world is a made-up run: what every copy of every arm would measure.
type world struct {
	arms      []journal.Arm
	scenarios []spec.Scenario
	judge     []string
	gates     []spec.Threshold
	policy    spec.Policy
	blocks    int
	copies    int
	bare      bool    // without histograms
	noise     float64 // sd of a copy's speed in one block, as a log
	seed      uint64
	// speed is the true log speed of an arm in a scenario, relative to the
	// baseline's.
	speed func(arm, scenario string) float64
	// edit changes a trial; false leaves it out.
	edit func(*journal.Trial) bool
	// finish changes the whole run at the end.
	finish func(*journal.Run)
}

var day = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func twoArms() []journal.Arm {
	return []journal.Arm{
		{Name: "base", Source: "git main", Revision: "1f0c9ae27d3b4e55aa", Digest: "sha256:aa", Versions: map[string]string{"node": "v20.11.1"}},
		{Name: "head", Source: "dir .", Revision: "77ab01ff22c3d4e5f6", Dirty: true, Digest: "sha256:bb", Versions: map[string]string{"node": "v20.11.1"}},
	}
}

func httpScenario(name string) spec.Scenario {
	return spec.Scenario{Name: name, HTTP: &spec.HTTP{Method: "GET", Path: "/", Connections: 100}, Window: time.Second, Interleave: spec.Turns}
}

// newWorld is a small quiet run in which nothing moved.
func newWorld(names ...string) *world {
	w := &world{
		bare: true, arms: twoArms(), judge: []string{"rps", "cpu_per_request"}, blocks: 12, copies: 2, noise: 0.01, seed: 7,
		policy: spec.Policy{Unsure: spec.Pass, New: spec.Pass, Removed: spec.Fail, Failed: spec.Fail, Incomparable: spec.Fail},
		speed:  func(string, string) float64 { return 0 },
	}
	for _, n := range names {
		w.scenarios = append(w.scenarios, httpScenario(n))
	}
	return w
}

func (w *world) spec() *spec.Spec {
	s := &spec.Spec{
		Path: "bench.yaml", Digest: "d1", Name: "my-server", Baseline: w.arms[0].Name, Scenarios: w.scenarios,
		Judge: w.judge, Alpha: 0.01, Margin: 0.01, Thresholds: w.gates, Policy: w.policy,
		Source: "version: 1\nname: my-server\n",
		Plan: spec.Plan{Blocks: spec.Blocks{Min: w.blocks, Max: w.blocks}, Window: time.Second, Warmup: time.Second,
			Turn: 2 * time.Millisecond, Interleave: spec.Turns, Copies: w.copies},
	}
	for _, a := range w.arms {
		s.Arms = append(s.Arms, spec.Arm{Name: a.Name, Label: a.Label, Server: &spec.Server{Command: spec.Command{Shell: "node server.js"}}})
	}
	return s
}

// run makes the journal. The same world gives the same journal.
func (w *world) run() *journal.Run {
	raw, err := json.Marshal(w.spec())
	if err != nil {
		panic(err)
	}
	h := &journal.Header{
		Version: 1, ID: "20260314-092653", Tool: "0.1.0", Started: day, Seed: w.seed, Spec: raw, Arms: w.arms, Copies: w.copies,
		Looks: []int{w.blocks}, Pins: journal.Pins{Server: "0", Load: "1"},
		Host: journal.Host{CPU: "AMD EPYC 7763", Cores: 2, Kernel: "6.8.0", OS: "linux", Arch: "amd64", Hypervisor: "kvm"},
	}
	for _, s := range w.scenarios {
		h.Rows = append(h.Rows, s.ID())
	}
	j := &journal.Run{Header: h}
	r := rand.New(rand.NewPCG(w.seed, 1))
	now := day
	for b := range w.blocks {
		now = w.block(j, b, r, now)
	}
	j.End = &journal.End{Ended: now, Reason: journal.EndBlocks}
	if w.finish != nil {
		w.finish(j)
	}
	return j
}

func (w *world) block(j *journal.Run, b int, r *rand.Rand, now time.Time) time.Time {
	starts := map[string]float64{} // how fast each copy happened to start
	for _, a := range w.arms {
		for c := range w.copies {
			starts[fmt.Sprint(a.Name, c)] = w.noise * r.NormFloat64()
		}
	}
	for si, s := range w.scenarios {
		j.Checks = append(j.Checks, journal.Check{Block: b, Scenario: s.ID(), Outcome: journal.CheckOK})
		drift := 0.05 * r.NormFloat64() // the machine's, alike for all
		for ai, a := range w.arms {
			for c := range w.copies {
				x := drift + starts[fmt.Sprint(a.Name, c)] + w.noise/3*r.NormFloat64() + w.speed(a.Name, s.ID())
				t := w.trial(b, s.ID(), a.Name, c, 100000/float64(1+si%7)*math.Exp(x), r)
				t.Started, t.Slot = now, ai*w.copies+c
				if w.edit == nil || w.edit(&t) {
					j.Trials = append(j.Trials, t)
				}
			}
		}
		now = now.Add(time.Duration(len(w.arms)*w.copies) * time.Second)
	}
	j.Ends = append(j.Ends, journal.BlockEnd{Block: b, Ended: now})
	return now
}

func (w *world) trial(block int, scenario, arm string, copy int, rps float64, r *rand.Rand) journal.Trial {
	var histogram []byte
	if !w.bare {
		histogram = latencies(100/rps, r)
	}
	return journal.Trial{
		Latency: histogram, Interval: []float64{rps},
		Block: block, Scenario: scenario, Arm: arm, Copy: copy, Elapsed: 1, Turns: 500,
		Metrics: journal.NewMetrics(map[string]float64{
			"rps": rps, "requests": math.Round(rps), "cpu_per_request": 0.99 / rps, "busy": 0.99,
			"latency.p50": 100 / rps, "latency.p99": 180 / rps * math.Exp(0.03*r.NormFloat64()), "latency.mean": 100 / rps,
			"bytes_per_request": 165, "bytes_in": 165 * math.Round(rps), "error_ratio": 0, "max_rss": 54e6,
		}),
		Audit: journal.Audit{Steal: 0.002 * r.Float64(), GeneratorBusy: 0.7, Cycles: 500, Discarded: 3, SoloRPS: rps * 1.03},
	}
}

// setMetric gives a trial another value of a metric.
func setMetric(t *journal.Trial, name string, value float64) {
	all := maps.Collect(t.Metrics.All())
	all[name] = value
	t.Metrics = journal.NewMetrics(all)
}

// dropMetric takes a metric from a trial.
func dropMetric(t *journal.Trial, name string) {
	all := maps.Collect(t.Metrics.All())
	delete(all, name)
	t.Metrics = journal.NewMetrics(all)
}

func gate(source string) *spec.Gate {
	g := new(spec.Gate)
	if err := json.Unmarshal([]byte(fmt.Sprintf("%q", source)), g); err != nil {
		panic(err)
	}
	return g
}

// analyze judges the world as a report would, from the journal's bytes.
func analyze(t *testing.T, w *world) *Analysis {
	t.Helper()
	a, err := Analyze(roundTrip(t, w.run()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// roundTrip writes a run as a journal and reads it back.
func roundTrip(t *testing.T, j *journal.Run) *journal.Run {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	w, err := journal.Create(path, *j.Header)
	check(t, err)
	for _, c := range j.Checks {
		check(t, w.Check(c))
	}
	for _, tr := range j.Trials {
		check(t, w.Trial(tr))
	}
	for _, e := range j.Ends {
		check(t, w.EndBlock(e))
	}
	if j.End != nil {
		check(t, w.End(*j.End))
	}
	back, err := journal.Open(path)
	check(t, err)
	return back
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// golden compares with testdata/name, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); -update rewrites it:\n%s", path, diff)
	}
}

// row finds a row of the analysis.
func row(t *testing.T, a *Analysis, scenario, metric string) *Row {
	t.Helper()
	for i := range a.Rows {
		if a.Rows[i].Scenario == scenario && a.Rows[i].Metric == metric {
			return &a.Rows[i]
		}
	}
	t.Fatalf("no row %s %s", scenario, metric)
	return nil
}

// withSpec puts another spec into the header.
func withSpec(t *testing.T, j *journal.Run, s *spec.Spec) *journal.Run {
	t.Helper()
	raw, err := json.Marshal(s)
	check(t, err)
	j.Header.Spec = raw
	return j
}

// latencies is a histogram of requests around a typical time, a hundredth of
// them with a stall.
func latencies(typical float64, r *rand.Rand) []byte {
	h := hdrhistogram.New(1, int64(time.Minute), 2)
	for i := range 400 {
		v := typical * math.Exp(0.25*r.NormFloat64())
		if i%100 == 0 {
			v *= 8
		}
		if err := h.RecordValue(int64(v * 1e9)); err != nil {
			panic(err)
		}
	}
	data, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	return data
}
