package report

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
)

// BenchmarkLongJournal reports a run of 200,000 trials, from its file to the
// table: fifty scenarios in a thousand blocks, each trial with the metrics
// and the histogram of an HTTP driver.
//
//	go test ./report -run '^$' -bench LongJournal
func BenchmarkLongJournal(b *testing.B) {
	w := newWorld()
	for i := range 50 {
		w.scenarios = append(w.scenarios, httpScenario(fmt.Sprintf("route/%02d", i)))
	}
	w.blocks = 1000
	var histogram []byte
	w.edit = func(t *journal.Trial) bool {
		if histogram == nil {
			histogram = latencies(100/t.Metrics.Value("rps"), rand.New(rand.NewPCG(1, 1)))
		}
		t.Latency = histogram
		fillIn(t)
		return true
	}
	run := w.run()
	path := filepath.Join(b.TempDir(), "journal.jsonl")
	out, err := journal.Create(path, *run.Header)
	for i := 0; err == nil && i < len(run.Trials); i++ {
		err = out.Trial(run.Trials[i])
	}
	for i := 0; err == nil && i < len(run.Ends); i++ {
		err = out.EndBlock(run.Ends[i])
	}
	if err == nil {
		err = out.End(*run.End)
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		j, err := journal.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		a, err := Analyze(j, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := Write(io.Discard, "text", a, RenderOptions{Width: 100}); err != nil {
			b.Fatal(err)
		}
	}
}

// fillIn gives a trial the rest of what an HTTP driver measures.
func fillIn(t *journal.Trial) {
	all := maps.Collect(t.Metrics.All())
	for _, kind := range []string{"latency", "ttfb"} {
		for i, q := range []string{"min", "p2_5", "p25", "p50", "p75", "p90", "p95", "p97_5", "p99", "p99_9", "max", "mean", "stdev"} {
			all[kind+"."+q] = all["latency.p50"] * (1 + float64(i)/7)
		}
	}
	t.Metrics = journal.NewMetrics(all)
}
