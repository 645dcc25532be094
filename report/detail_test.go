package report

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/runner/journal"
)

func encoded(t *testing.T, h *hdrhistogram.Histogram) []byte {
	t.Helper()
	data, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	check(t, err)
	return data
}

// Percentiles come from the merged histogram: 990 requests of 1 ms in one
// window and 10 of 100 ms in another have a 99th percentile of 1 ms, where
// the average of the windows' own would be 50 ms.
func TestDetailsMergeHistograms(t *testing.T) {
	w := newWorld("a")
	w.blocks, w.copies = 1, 2
	w.edit = func(tr *journal.Trial) bool {
		h := hdrhistogram.New(1, int64(time.Minute), 3)
		value, n := int64(time.Millisecond), int64(990)
		if tr.Copy == 1 {
			value, n = int64(100*time.Millisecond), 10
		}
		check(t, h.RecordValues(value, n))
		tr.Latency = encoded(t, h)
		return true
	}
	for _, d := range analyze(t, w).Details() {
		if math.Abs(d.Latency.P99-0.001) > 1e-5 || math.Abs(d.Latency.Max-0.1) > 1e-3 || math.Abs(d.Latency.Mean-0.00199) > 1e-5 {
			t.Errorf("%s: %+v", d.Arm, d.Latency)
		}
	}
}

// One-second samples are pooled as they are, over all windows.
func TestDetailsPoolSeconds(t *testing.T) {
	w := newWorld("a")
	w.blocks, w.copies = 2, 1
	w.edit = func(tr *journal.Trial) bool {
		tr.Interval = []float64{100, 200}
		if tr.Block == 1 {
			tr.Interval = []float64{300, 400, 500}
		}
		setMetric(tr, "bytes_per_request", 10)
		return true
	}
	d := analyze(t, w).Details()[0]
	want := Spread{Min: 100, P1: 104, P2_5: 110, P50: 300, P97_5: 490, P99: 496, Max: 500, Mean: 300, Stdev: math.Sqrt(25000)}
	if d.Samples != 5 || math.Abs(d.Rate.Stdev-want.Stdev) > 1e-9 {
		t.Errorf("%d samples, %+v", d.Samples, d.Rate)
	}
	d.Rate.Stdev = want.Stdev
	if d.Rate != want || d.Throughput.P50 != 3000 {
		t.Errorf("%+v, throughput %+v", d.Rate, d.Throughput)
	}
}

// A damaged histogram is left out, not made up.
func TestDetailsWithoutHistogram(t *testing.T) {
	w := newWorld("a")
	w.edit = func(tr *journal.Trial) bool { tr.Latency = []byte("junk"); return true }
	if d := analyze(t, w).Details()[0]; !math.IsNaN(d.Latency.P50) {
		t.Errorf("%+v", d.Latency)
	}
}

func TestMergeOfHistogramsOfDifferentRange(t *testing.T) {
	short, long := hdrhistogram.New(1, 1000, 2), hdrhistogram.New(1, 1_000_000_000, 2)
	check(t, short.RecordValues(500, 10))
	check(t, long.RecordValues(900_000_000, 10))
	h := mergeLatency([]*journal.Trial{{Latency: encoded(t, short)}, {Latency: encoded(t, long)}})
	if h.TotalCount() != 20 || h.Max() < 890_000_000 {
		t.Errorf("%d values, at most %d", h.TotalCount(), h.Max())
	}
}

func FuzzLatency(f *testing.F) {
	f.Add(latencies(0.001, rand.New(rand.NewPCG(1, 1))))
	f.Fuzz(func(_ *testing.T, data []byte) { mergeLatency([]*journal.Trial{{Latency: data}, {Latency: data}}) })
}
