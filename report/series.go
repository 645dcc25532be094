package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// curvePoint is a latency and the share of requests that took longer.
type curvePoint struct {
	above   float64 // 1 - percentile / 100
	seconds float64
}

// latencyCurve is the distribution of one arm's latencies, from the median to
// the last percentile that at least one request stands for.
func latencyCurve(trials []*journal.Trial) []curvePoint {
	h := mergeLatency(trials)
	if h == nil || h.TotalCount() < 2 {
		return nil
	}
	var out []curvePoint
	for k := 0; ; k++ {
		above := math.Pow(10, -float64(k)/12) // twelve steps for each nine
		if above*float64(h.TotalCount()) < 1 {
			break
		}
		out = append(out, curvePoint{above, float64(h.ValueAtQuantile(100*(1-above))) / 1e9})
	}
	return append(out, curvePoint{1 / float64(h.TotalCount()), float64(h.Max()) / 1e9})
}

// sweep is one metric of one scenario over one axis of its matrix, the other
// axes held.
type sweep struct {
	name   string
	metric string
	unit   string
	axis   string
	fixed  []spec.Axis // the other axes
	values []string    // of the axis, in spec order
	lines  []sweepLine // one for each arm
}

type sweepLine struct {
	arm    string
	points []sweepPoint
}

// sweepPoint is one arm's windows at one value of the axis.
type sweepPoint struct {
	at       int // index of the value
	mid      float64
	low, top float64 // between them lie four fifths of the windows
}

// sweeps finds what can be drawn as lines over an axis: the axis with the most
// values, for each judged metric.
func (a *Analysis) sweeps() []sweep {
	var out []sweep
	for _, r := range a.Rows {
		if len(r.Matrix) == 0 || !r.Judged {
			continue
		}
		ax := a.longestAxis(r.Name)
		at := valueOn(r.Matrix, ax)
		var fixed []spec.Axis
		for _, x := range r.Matrix {
			if x.Name != ax {
				fixed = append(fixed, x)
			}
		}
		k := slices.IndexFunc(out, func(s sweep) bool {
			return s.name == r.Name && s.metric == r.Metric && slices.Equal(s.fixed, fixed)
		})
		if k < 0 {
			out = append(out, sweep{name: r.Name, metric: r.Metric, unit: r.Unit, axis: ax, fixed: fixed})
			k = len(out) - 1
		}
		if !slices.Contains(out[k].values, at) {
			out[k].values = append(out[k].values, at)
			a.addSweepPoints(&out[k], r.Scenario)
		}
	}
	return slices.DeleteFunc(out, func(s sweep) bool { return len(s.values) < 2 || len(s.lines) == 0 })
}

func (a *Analysis) longestAxis(name string) string {
	values := map[string]map[string]bool{}
	var order []string
	for _, r := range a.Rows {
		if r.Name != name {
			continue
		}
		for _, x := range r.Matrix {
			if values[x.Name] == nil {
				values[x.Name] = map[string]bool{}
				order = append(order, x.Name)
			}
			values[x.Name][x.Value] = true
		}
	}
	best := order[0]
	for _, x := range order {
		if len(values[x]) > len(values[best]) {
			best = x
		}
	}
	return best
}

func (a *Analysis) addSweepPoints(s *sweep, scenario string) {
	byArm := map[string][]float64{}
	for _, t := range a.trialsOf(scenario) {
		if v, ok := t.Metrics.Get(s.metric); ok {
			byArm[t.Arm] = append(byArm[t.Arm], v)
		}
	}
	for _, arm := range a.Arms {
		vs := byArm[arm.Name]
		if len(vs) == 0 {
			continue
		}
		sorted := slices.Sorted(slices.Values(vs))
		p := sweepPoint{at: len(s.values) - 1, mid: centerOf(vs), low: quantile(sorted, 0.1), top: quantile(sorted, 0.9)}
		k := slices.IndexFunc(s.lines, func(l sweepLine) bool { return l.arm == arm.Name })
		if k < 0 {
			s.lines = append(s.lines, sweepLine{arm: arm.Name})
			k = len(s.lines) - 1
		}
		s.lines[k].points = append(s.lines[k].points, p)
	}
}

// numeric reads the values of the axis as numbers, if all are, in order of
// size; ok is false where one is not.
func (s sweep) numeric() (vs []float64, ok bool) {
	for _, v := range s.values {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f <= 0 {
			return nil, false
		}
		vs = append(vs, f)
	}
	return vs, slices.IsSorted(vs)
}

// moment is what the machine did during the windows of one block.
type moment struct {
	block              int
	minute             float64 // from the start of the run, of its first window
	busy               float64 // mean over windows; NaN where it is not known
	generator          float64
	steal, stealMax    float64
	others             float64
	discarded, invalid int
}

// machine is the outside evidence over the run, block by block.
func (a *Analysis) machine() []moment {
	if a.run == nil {
		return nil
	}
	byBlock := map[int][]*journal.Trial{}
	for i := range a.run.Trials {
		t := &a.run.Trials[i]
		byBlock[t.Block] = append(byBlock[t.Block], t)
	}
	var out []moment
	for _, b := range sortedKeys(byBlock) {
		m := moment{block: b, minute: math.Inf(1), busy: math.NaN()}
		var busy []float64
		for _, t := range byBlock[b] {
			m.minute = math.Min(m.minute, t.Started.Sub(a.Header.Started).Minutes())
			if v, ok := t.Metrics.Get("busy"); ok {
				busy = append(busy, v)
			}
			m.stealMax = math.Max(m.stealMax, t.Audit.Steal)
			m.invalid += map[bool]int{true: 1}[t.Invalid != ""]
			m.discarded = max(m.discarded, t.Audit.Discarded)
		}
		m.steal = mean(audits(byBlock[b], func(x journal.Audit) float64 { return x.Steal }))
		m.generator = mean(audits(byBlock[b], func(x journal.Audit) float64 { return x.GeneratorBusy }))
		m.others = mean(audits(byBlock[b], func(x journal.Audit) float64 { return x.OthersCPU }))
		if len(busy) > 0 {
			m.busy = mean(busy)
		}
		out = append(out, m)
	}
	return out
}
