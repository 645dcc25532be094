package report

import (
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/runner/journal"
)

// Detail is the statistics of one arm in one scenario, over all windows that
// count, in the form that users of autocannon know. Figures that the journal
// does not hold are NaN.
type Detail struct {
	Scenario string
	Arm      string
	Windows  int
	Seconds  float64 // measured
	Requests float64
	Bytes    float64 // received
	Samples  int     // of Rate and Throughput

	Latency    Spread // seconds, of all requests: percentiles of the merged histogram
	Rate       Spread // requests per second, sampled once per second of measuring time
	Throughput Spread // bytes per second, likewise
}

// Spread is a distribution in a few figures.
type Spread struct {
	Min, P1, P2_5, P50, P97_5, P99, Max, Mean, Stdev float64
}

// Details computes the statistics of every arm in every scenario that has any.
func (a *Analysis) Details() []Detail {
	var out []Detail
	for _, scenario := range a.scenarios() {
		byArm := map[string][]*journal.Trial{}
		for _, t := range a.trialsOf(scenario) {
			byArm[t.Arm] = append(byArm[t.Arm], t)
		}
		for _, arm := range a.Arms {
			if trials := byArm[arm.Name]; len(trials) > 0 {
				out = append(out, newDetail(scenario, arm.Name, trials))
			}
		}
	}
	return out
}

// unitOfWork is what a scenario counts, in the plural.
func (a *Analysis) unitOfWork(scenario string) string {
	for _, sc := range a.Spec.Scenarios {
		if sc.ID() == scenario && sc.Command != nil {
			return "processes"
		}
	}
	return "requests"
}

func newDetail(scenario, arm string, trials []*journal.Trial) Detail {
	d := Detail{Scenario: scenario, Arm: arm, Windows: len(trials), Latency: spreadOf(nil)}
	for _, t := range trials {
		d.Seconds += t.Elapsed
		d.Requests += t.Metrics.Value("requests")
		d.Bytes += t.Metrics.Value("bytes_in")
	}
	rates, bytes := secondsOf(trials)
	if h := mergeLatency(trials); h != nil && h.TotalCount() > 0 {
		d.Latency = spreadOfHistogram(h)
	}
	d.Samples = len(rates)
	d.Rate, d.Throughput = spreadOf(rates), spreadOf(bytes)
	return d
}

// secondsOf are the requests and bytes of each second of measuring time. A
// window too short for a whole second is one sample.
func secondsOf(trials []*journal.Trial) (rates, bytes []float64) {
	for _, t := range trials {
		samples := t.Interval
		if v, ok := t.Metrics.Get("rps"); ok && len(samples) == 0 {
			samples = []float64{v}
		}
		for _, r := range samples {
			rates = append(rates, r)
			if per, ok := t.Metrics.Get("bytes_per_request"); ok {
				bytes = append(bytes, r*per)
			}
		}
	}
	return rates, bytes
}

func sortedCopy(vs []float64) []float64 { return slices.Sorted(slices.Values(vs)) }

func spreadOfHistogram(h *hdrhistogram.Histogram) Spread {
	q := func(p float64) float64 { return float64(h.ValueAtQuantile(p)) / 1e9 }
	return Spread{
		Min: float64(h.Min()) / 1e9, P1: q(1), P2_5: q(2.5), P50: q(50), P97_5: q(97.5), P99: q(99), Max: float64(h.Max()) / 1e9,
		Mean: h.Mean() / 1e9, Stdev: h.StdDev() / 1e9,
	}
}

func spreadOf(vs []float64) Spread {
	nan := math.NaN()
	s := Spread{nan, nan, nan, nan, nan, nan, nan, nan, nan}
	if len(vs) == 0 {
		return s
	}
	sorted := sortedCopy(vs)
	q := func(p float64) float64 { return quantile(sorted, p/100) }
	s = Spread{Min: sorted[0], P1: q(1), P2_5: q(2.5), P50: q(50), P97_5: q(97.5), P99: q(99), Max: sorted[len(sorted)-1], Mean: mean(vs)}
	for _, v := range vs {
		s.Stdev += (v - s.Mean) * (v - s.Mean)
	}
	s.Stdev = math.Sqrt(s.Stdev / float64(max(len(vs)-1, 1)))
	return s
}

// quantile interpolates between the order statistics (type 7 of Hyndman and
// Fan 1996).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
