package report

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-bench/tandem/runner/journal"
)

// series is n points around level 0, and around level from the cut on.
func series(r *rand.Rand, n, cut int, level float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = r.NormFloat64()
		if i >= cut {
			xs[i] += level
		}
	}
	return xs
}

// A series without a change shows one in at most about two of a hundred times,
// be it short or long.
func TestChangePointFalseAlarms(t *testing.T) {
	const times = 2000
	for _, n := range []int{10, 30, 100, 300} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		alarms := 0
		for range times {
			if len(changePoints(series(r, n, n, 0))) > 0 {
				alarms++
			}
		}
		t.Logf("%d points: %.1f%%", n, 100*float64(alarms)/times)
		if share := float64(alarms) / times; share > 0.03 {
			t.Errorf("%d points: %.1f%% of series without a change show one", n, 100*share)
		}
	}
}

// A change of four standard deviations is found, at its place.
func TestChangePointIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	found, placed := 0, 0
	const times = 500
	for range times {
		cuts := changePoints(series(r, 40, 25, 4))
		found += bit(len(cuts) == 1)
		placed += bit(len(cuts) == 1 && cuts[0] == 25)
	}
	if found < 450 || placed < 400 {
		t.Errorf("found %d and placed %d of %d", found, placed, times)
	}
}

func TestChangePointsOfPlainSeries(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want []int
	}{
		{nil, nil},
		{[]float64{1, 2, 3}, nil},
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1}, nil},
		{[]float64{0, .1, 0, .1, 0, 5, 5.1, 5, 5.1, 5}, []int{5}},
		{[]float64{0, .1, 0, .1, 0, 5, 5.1, 5, 5.1, 5, 0, .1, 0, .1}, []int{5, 10}},
		{[]float64{0, .1, 0, .1, 0, 5, 0, .1, 0, .1, 0, .1}, nil}, // one outlier is no level
	} {
		if got := changePoints(c.xs); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.xs, got, c.want)
		}
	}
}

// Neither scale nor place of a series matters.
func TestChangePointsInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		xs := series(r, 30, rapid.IntRange(3, 27).Draw(t, "cut"), rapid.Float64Range(-6, 6).Draw(t, "level"))
		want := changePoints(xs)
		factor := rapid.SampledFrom([]float64{-1, 0.5, 4}).Draw(t, "factor")
		ys := make([]float64, len(xs))
		for i, x := range xs {
			ys[i] = factor * x
		}
		if got := changePoints(ys); !slices.Equal(got, want) {
			t.Errorf("times %v: %v, was %v", factor, got, want)
		}
	})
}

// drifting is a history in which every run compares with the same baseline
// and the candidate lost 4% from the given run on.
func drifting(t *testing.T, runs, from int) []*Analysis {
	t.Helper()
	var out []*Analysis
	for i := range runs {
		w := newWorld("http/hello", "http/json")
		w.blocks, w.seed, w.noise = 4, uint64(i+1), 0.004
		if i >= from {
			w.speed = slower("head", "http/hello", 0.04)
		}
		w.finish = func(j *journal.Run) {
			j.Header.ID = fmt.Sprintf("run-%02d", i)
			j.Header.Started = day.Add(time.Duration(i) * 24 * time.Hour)
			j.Header.Arms = slices.Clone(j.Header.Arms)
			j.Header.Arms[1].Revision = fmt.Sprintf("%07x", 0xabc000+i)
		}
		a, err := Analyze(w.run(), nil)
		check(t, err)
		out = append(out, a)
	}
	return out
}

func TestHistoryFindsTheDrift(t *testing.T) {
	runs := drifting(t, 20, 12)
	slices.Reverse(runs) // the order of the files does not matter
	trend, err := History(runs)
	check(t, err)
	for _, r := range trend.Rows {
		switch {
		case r.Scenario == "http/hello":
			if len(r.Ratio) != 1 || trend.Runs[r.Points[r.Ratio[0].At].Run].ID != "run-12" || math.Abs(r.Ratio[0].Worse-0.04) > 0.01 {
				t.Errorf("%s %s: %+v", r.Scenario, r.Metric, r.Ratio)
			}
		case len(r.Ratio) != 0:
			t.Errorf("%s %s did not change: %+v", r.Scenario, r.Metric, r.Ratio)
		}
	}
}

// A run that failed leaves a gap and moves no other point.
func TestHistoryWithGaps(t *testing.T) {
	runs := drifting(t, 6, 99)
	for i := range runs[2].Rows {
		runs[2].Rows[i].Verdict = Failed
	}
	trend, err := History(runs)
	check(t, err)
	for _, r := range trend.Rows {
		if len(r.Points) != 5 || r.Points[2].Run != 3 {
			t.Errorf("%s: %+v", r.Scenario, r.Points)
		}
	}
	if _, err := History(nil); err == nil {
		t.Error("no runs make no history")
	}
}

func TestWriteHistory(t *testing.T) {
	trend, err := History(drifting(t, 20, 12))
	check(t, err)
	for _, f := range []struct {
		name, format string
		o            RenderOptions
	}{{"history.text", "text", RenderOptions{Width: 100}}, {"history.json", "json", RenderOptions{}}, {"history.html", "html", RenderOptions{}}} {
		var b bytes.Buffer
		check(t, WriteHistory(&b, f.format, trend, f.o))
		golden(t, f.name, settle(f.format, b.String()))
	}
	if err := WriteHistory(&bytes.Buffer{}, "csv", trend, RenderOptions{}); err == nil {
		t.Error("accepted csv")
	}
	one, err := History(drifting(t, 1, 99))
	check(t, err)
	var b bytes.Buffer
	check(t, WriteHistory(&b, "html", one, RenderOptions{}))
	if bytes.Contains(b.Bytes(), []byte("NaN")) {
		t.Error("the page of one run holds NaN")
	}
}
