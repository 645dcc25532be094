package report

import (
	"io"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// The wire form of autocannon's --json output, as far as it fits: counts by
// status are left out, since only valid responses are counted here.
type (
	autocannonResult struct {
		Title       string    `json:"title"`
		URL         string    `json:"url"`
		Connections int       `json:"connections"`
		Pipelining  int       `json:"pipelining"`
		Workers     int       `json:"workers"`
		SampleInt   int       `json:"sampleInt"` // milliseconds
		Duration    float64   `json:"duration"`  // seconds
		Samples     int       `json:"samples"`
		Start       time.Time `json:"start"`
		Finish      time.Time `json:"finish"`
		Errors      int64     `json:"errors"`
		Timeouts    int64     `json:"timeouts"`
		Mismatches  int64     `json:"mismatches"`
		Non2xx      int64     `json:"non2xx"`
		Resets      int64     `json:"resets"`

		Latency    autocannonHist `json:"latency"` // milliseconds
		Requests   autocannonHist `json:"requests"`
		Throughput autocannonHist `json:"throughput"` // bytes
	}
	autocannonHist map[string]number
)

// autocannonPercentiles are those that autocannon prints, by its names.
var autocannonPercentiles = []struct {
	name    string
	percent float64
}{
	{"p0_001", 0.001}, {"p0_01", 0.01}, {"p0_1", 0.1}, {"p1", 1}, {"p2_5", 2.5}, {"p10", 10}, {"p25", 25}, {"p50", 50},
	{"p75", 75}, {"p90", 90}, {"p97_5", 97.5}, {"p99", 99}, {"p99_9", 99.9}, {"p99_99", 99.99}, {"p99_999", 99.999},
}

// writeAutocannon writes an array of results in autocannon's JSON, one for
// each arm of each scenario, over all windows that count.
func writeAutocannon(w io.Writer, a *Analysis, _ RenderOptions) error {
	if a.run == nil {
		return errNoTrials
	}
	points, _ := a.matrixPoints()
	out := []autocannonResult{}
	for _, scenario := range a.scenarios() {
		byArm := map[string][]*journal.Trial{}
		for _, t := range a.trialsOf(scenario) {
			byArm[t.Arm] = append(byArm[t.Arm], t)
		}
		for _, arm := range a.Arms {
			if trials := byArm[arm.Name]; len(trials) > 0 {
				out = append(out, newAutocannon(points[scenario], scenario, arm.Name, trials))
			}
		}
	}
	return encodeJSON(w, out)
}

func newAutocannon(sc spec.Scenario, scenario, arm string, trials []*journal.Trial) autocannonResult {
	d := newDetail(scenario, arm, trials)
	r := autocannonResult{
		Title: scenario + " " + arm, Pipelining: 1, SampleInt: 1000, Duration: math.Round(d.Seconds*100) / 100, Samples: d.Samples,
		Start: trials[0].Started, Finish: trials[len(trials)-1].Started.Add(time.Duration(trials[len(trials)-1].Elapsed * float64(time.Second))),
	}
	if sc.HTTP != nil {
		r.URL, r.Connections, r.Pipelining = string(sc.HTTP.Path), sc.HTTP.Connections, max(sc.HTTP.Pipeline, 1)
	}
	for _, t := range trials {
		for _, e := range t.Errors {
			r.count(e)
		}
	}
	rates, bytes := secondsOf(trials)
	r.Latency = histOf(mergeLatency(trials))
	r.Requests = samplesOf(rates, d.Requests)
	r.Throughput = samplesOf(bytes, d.Bytes)
	return r
}

// count adds failed requests where autocannon counts them.
func (r *autocannonResult) count(e journal.ErrorCount) {
	switch e.Class {
	case "status":
		r.Non2xx += e.Count
	case "body":
		r.Mismatches += e.Count
	case "timeout":
		r.Timeouts += e.Count
		r.Errors += e.Count
	case "read_reset":
		r.Resets += e.Count
	default:
		r.Errors += e.Count
	}
}

// histOf is the latencies in milliseconds; it is empty without a histogram.
func histOf(h *hdrhistogram.Histogram) autocannonHist {
	if h == nil {
		return autocannonHist{}
	}
	ms := func(v int64) number { return number(float64(v) / 1e6) }
	out := autocannonHist{
		"average": number(h.Mean() / 1e6), "mean": number(h.Mean() / 1e6), "stddev": number(h.StdDev() / 1e6),
		"min": ms(h.Min()), "max": ms(h.Max()), "totalCount": number(h.TotalCount()),
	}
	for _, p := range autocannonPercentiles {
		out[p.name] = ms(h.ValueAtQuantile(p.percent))
	}
	return out
}

func samplesOf(samples []float64, total float64) autocannonHist {
	s := spreadOf(samples)
	out := autocannonHist{
		"average": number(s.Mean), "mean": number(s.Mean), "stddev": number(s.Stdev), "min": number(s.Min), "max": number(s.Max), "total": number(total),
	}
	sorted := sortedCopy(samples)
	for _, p := range autocannonPercentiles {
		out[p.name] = number(math.NaN())
		if len(sorted) > 0 {
			out[p.name] = number(quantile(sorted, p.percent/100))
		}
	}
	return out
}
