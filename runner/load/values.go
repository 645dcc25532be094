package load

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest time that a histogram can hold; longer ones are
// recorded as this.
const longest = 10 * time.Minute

// newHistogram returns a histogram of nanoseconds with three significant
// figures. Its pages are touched here, so that no turn pays for that.
func newHistogram() *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, int64(longest), 3)
	h.Reset()
	return h
}

// record adds one time in nanoseconds, held to what the histogram can take.
func record(h *hdrhistogram.Histogram, ns int64) {
	// RecordValue fails only above the range that min and max hold it to.
	_ = h.RecordValue(max(1, min(ns, int64(longest))))
}

// quantiles are the percentiles that a distribution is reported by.
var quantiles = []struct {
	name    string
	percent float64
}{
	{"p2_5", 2.5}, {"p25", 25}, {"p50", 50}, {"p75", 75}, {"p90", 90},
	{"p95", 95}, {"p97_5", 97.5}, {"p99", 99}, {"p99_9", 99.9},
}

// Values returns the sample's metrics by their names in base units: seconds,
// bytes, 1/s and ratios. What was not observed is absent, never zero: no
// latency without a valid response, no rate without measured time.
func (s *Sample) Values() map[string]float64 {
	v := map[string]float64{}
	if !s.Reported {
		s.rates(v)
	}
	if ended := s.Started - s.InFlight; ended > 0 {
		v["error_ratio"] = float64(s.Failed) / float64(ended)
	}
	distribution(v, "latency", s.Latency)
	for name, h := range s.Hists {
		distribution(v, name, h)
	}
	intervals(v, s.Interval)
	for name, value := range s.Metrics {
		v[name] = value
	}
	return v
}

// rates adds what follows from the counts.
func (s *Sample) rates(v map[string]float64) {
	v["requests"] = float64(s.OK)
	v["bytes_in"] = float64(s.BytesIn)
	v["bytes_out"] = float64(s.BytesOut)
	if s.Elapsed > 0 {
		v["rps"] = float64(s.OK) / s.Elapsed.Seconds()
	}
	if s.OK > 0 {
		v["bytes_per_request"] = float64(s.BytesIn) / float64(s.OK)
	}
}

// distribution adds the metrics of one family from its histogram.
func distribution(v map[string]float64, family string, h *hdrhistogram.Histogram) {
	if h == nil || h.TotalCount() == 0 {
		return
	}
	const second = float64(time.Second)
	v[family+".min"] = float64(h.Min()) / second
	v[family+".max"] = float64(h.Max()) / second
	v[family+".mean"] = h.Mean() / second
	v[family+".stdev"] = h.StdDev() / second
	for _, q := range quantiles {
		v[family+"."+q.name] = float64(h.ValueAtQuantile(q.percent)) / second
	}
}

// intervals adds the metrics of the one-second samples.
func intervals(v map[string]float64, rates []float64) {
	if len(rates) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(rates))
	var sum, squares float64
	for _, r := range sorted {
		sum += r
	}
	mean := sum / float64(len(sorted))
	for _, r := range sorted {
		squares += (r - mean) * (r - mean)
	}
	v["rps_interval.mean"] = mean
	v["rps_interval.stdev"] = math.Sqrt(squares / float64(max(1, len(sorted)-1)))
	v["rps_interval.min"] = sorted[0]
	v["rps_interval.p1"] = quantile(sorted, 0.01)
	v["rps_interval.p2_5"] = quantile(sorted, 0.025)
	v["rps_interval.p50"] = quantile(sorted, 0.5)
	v["rps_interval.p97_5"] = quantile(sorted, 0.975)
}

// quantile interpolates linearly between the order statistics of a sorted
// sample (type 7 of Hyndman and Fan 1996).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
