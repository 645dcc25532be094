package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/runner/journal"
)

func scenarioID(i int) string { return fmt.Sprintf("s%d", i) }

// pageScenario draws one scenario: for each judged row its blocks and its
// copies, and the latencies of all arms.
func (a *Analysis) pageScenario(scenario string, i int) pageScenario {
	out := pageScenario{ID: scenarioID(i), Name: plain(scenario)}
	trials := a.trialsOf(scenario)
	var words []string
	drawn := map[string]bool{}
	for k := range a.Rows {
		r := &a.Rows[k]
		if r.Scenario != scenario || !r.Judged {
			continue
		}
		words = append(words, metricTitle(r.Metric)+" "+a.verdictWord(r))
		out.Open = out.Open || r.Marked
		if !r.Verdict.measured() {
			out.Notes = append(out.Notes, join(string(r.Verdict), brief(r.Reason)))
			continue
		}
		out.Charts = append(out.Charts, a.blockFigure(r))
		if !drawn[r.Metric] {
			drawn[r.Metric] = true
			out.Charts = append(out.Charts, a.copyFigure(r, trials))
		}
		out.Tables = append(out.Tables, a.blockTable(r, trials))
	}
	out.Notes = slices.Compact(out.Notes)
	out.Verdicts = strings.Join(words, ", ")
	if f, t, ok := a.latencyFigure(scenario, trials); ok {
		out.Charts = append(out.Charts, f)
		out.Tables = append(out.Tables, t)
	}
	return out
}

// rowTitle names a row in a caption.
func (a *Analysis) rowTitle(r *Row) string {
	if len(a.Arms) > 2 {
		return fmt.Sprintf("%s, %s / %s", metricTitle(r.Metric), armTitle(a.arm(r.Head.Arm)), armTitle(a.Baseline))
	}
	return metricTitle(r.Metric)
}

// blockFigure shows the ratio of each block: drift, outliers and restarts.
func (a *Analysis) blockFigure(r *Row) figure {
	ys := append([]float64{1, r.Ratio}, r.PerBlock...)
	noisy := !math.IsInf(r.Noise, 0) && !math.IsNaN(r.Noise)
	if noisy {
		ys = append(ys, 1-r.Noise, 1+r.Noise)
	}
	c := newChart(blockAxis(r.BlockIDs), linearAxis(ys, 5, func(v float64) string { return fmt.Sprintf("%.4gx", v) }))
	if noisy {
		c.band("band", 1-r.Noise, 1+r.Noise)
	}
	if r.CI[0] > 0 && !math.IsInf(r.CI[1], 0) {
		c.band("ci "+armClass("f", a.armIndex(r.Head.Arm)), r.CI[0], r.CI[1])
	}
	c.level("one", 1)
	c.level("mid "+armClass("s", a.armIndex(r.Head.Arm)), r.Ratio)
	ps := make([]point, len(r.PerBlock))
	for i, v := range r.PerBlock {
		ps[i] = point{float64(r.BlockIDs[i] + 1), v}
	}
	c.dots(armClass("s", a.armIndex(r.Head.Arm)), ps)
	return figure{
		c.done(fmt.Sprintf("ratio of %s in each of %d blocks, %.3f to %.3f", metricTitle(r.Metric), len(ps), r.Range[0], r.Range[1])),
		"Ratio by block: " + a.rowTitle(r),
	}
}

func armClass(prefix string, index int) string { return fmt.Sprintf("%s%d", prefix, max(index, 0)%6) }

// blockAxis is an axis of block numbers, from 1.
func blockAxis(ids []int) axis {
	first, last := 1, 1
	if len(ids) > 0 {
		first, last = ids[0]+1, ids[len(ids)-1]+1
	}
	x := axis{lo: float64(first) - 0.6, hi: float64(last) + 0.6}
	step := max(1, (last-first+8)/8)
	for b := first; b <= last; b += step {
		x.ticks = append(x.ticks, tick{float64(b), fmt.Sprint(b)})
	}
	return x
}

// copyFigure shows the value of every copy in every block.
func (a *Analysis) copyFigure(r *Row, trials []*journal.Trial) figure {
	byArm := make([][]point, len(a.Arms))
	var ys []float64
	var blocks []int
	for _, t := range trials {
		v, ok := t.Metrics.Get(r.Metric)
		if !ok {
			continue
		}
		k := a.armIndex(t.Arm)
		if k < 0 {
			continue
		}
		// The arms stand a little apart, so that dots do not hide each other.
		offset := 0.0
		if n := len(a.Arms); n > 1 {
			offset = 0.36 * (float64(k)/float64(n-1) - 0.5)
		}
		byArm[k] = append(byArm[k], point{float64(t.Block+1) + offset, v})
		ys = append(ys, v)
		blocks = append(blocks, t.Block)
	}
	slices.Sort(blocks)
	c := newChart(blockAxis(blocks), linearAxis(ys, 5, unitLabel(r.Unit, ys)))
	for k, ps := range byArm {
		c.dots("small "+armClass("s", k), ps)
	}
	return figure{c.done(fmt.Sprintf("%s of every copy in each block", metricTitle(r.Metric))), "Every copy: " + metricTitle(r.Metric)}
}

// unitLabel labels the ticks of an axis, all in one unit.
func unitLabel(unit string, vs []float64) func(float64) string {
	_, hi := extent(vs)
	sc := scaleFor(unit, hi)
	return func(v float64) string {
		s := fmt.Sprintf("%.4g", v/sc.div)
		if math.Abs(v/sc.div) >= 10000 {
			s = fmt.Sprintf("%.3gk", v/sc.div/1000)
		}
		if sc.unit != "" {
			s += " " + sc.unit
		}
		return s
	}
}

// blockTable holds the figures of both pictures of a row.
func (a *Analysis) blockTable(r *Row, trials []*journal.Trial) pageTable {
	t := pageTable{Caption: "figures: " + a.rowTitle(r), Heads: []string{"block", "ratio"}}
	arms := []string{r.Base.Arm, r.Head.Arm}
	for _, arm := range arms {
		for c := range a.Header.Copies {
			t.Heads = append(t.Heads, fmt.Sprintf("%s#%d", plain(arm), c))
		}
	}
	values := map[cell]float64{}
	all := bothValues(r)
	for _, tr := range trials {
		if v, ok := tr.Metrics.Get(r.Metric); ok {
			values[cell{tr.Block, tr.Arm, tr.Copy}] = v
			all = append(all, v)
		}
	}
	sc := scaleFor(r.Unit, all...)
	for i, b := range r.BlockIDs {
		line := []string{fmt.Sprint(b + 1), showRatio(r.PerBlock[i])}
		for _, arm := range arms {
			for c := range a.Header.Copies {
				v, ok := values[cell{b, arm, c}]
				if !ok {
					v = math.NaN()
				}
				line = append(line, sc.with(v))
			}
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}

// latencyFigure draws the latencies of all arms by percentile, on an axis
// that gives each further nine the same room.
func (a *Analysis) latencyFigure(scenario string, trials []*journal.Trial) (figure, pageTable, bool) {
	table := pageTable{Caption: "figures: latency by percentile"}
	curves := make([][]curvePoint, len(a.Arms))
	var ys []float64
	deepest := 1.0
	for k, arm := range a.Arms {
		var of []*journal.Trial
		for _, t := range trials {
			if t.Arm == arm.Name {
				of = append(of, t)
			}
		}
		curves[k] = latencyCurve(of)
		for _, p := range curves[k] {
			ys = append(ys, p.seconds)
			deepest = math.Min(deepest, p.above)
		}
	}
	if len(ys) == 0 {
		return figure{}, table, false
	}
	x := axis{lo: -0.05, hi: math.Max(-math.Log10(deepest), 1) + 0.05}
	for n, label := range []string{"0", "90", "99", "99.9", "99.99", "99.999", "99.9999"} {
		if float64(n) <= x.hi {
			x.ticks = append(x.ticks, tick{float64(n), label})
		}
	}
	c := newChart(x, logAxis(ys, unitLabel("s", ys[:1])))
	for k, curve := range curves {
		ps := make([]point, len(curve))
		for i, p := range curve {
			ps[i] = point{-math.Log10(p.above), p.seconds}
		}
		c.line("curve "+armClass("s", k), ps)
	}
	a.latencyTable(&table, curves, ys)
	return figure{c.done("latency by percentile of " + plain(scenario)), "Latency by percentile (all windows merged)"}, table, true
}

func (a *Analysis) latencyTable(t *pageTable, curves [][]curvePoint, ys []float64) {
	t.Heads = []string{"percentile"}
	for _, arm := range a.Arms {
		t.Heads = append(t.Heads, armTitle(arm))
	}
	sc := scaleFor("s", ys...)
	for n, label := range []string{"0", "90", "99", "99.9", "99.99", "99.999"} {
		line, any := []string{label}, false
		for _, curve := range curves {
			v := math.NaN()
			if at := 12 * n; at < len(curve)-1 {
				v, any = curve[at].seconds, true
			}
			line = append(line, sc.with(v))
		}
		if any {
			t.Lines = append(t.Lines, line)
		}
	}
	line := []string{"largest"}
	for _, curve := range curves {
		v := math.NaN()
		if len(curve) > 0 {
			v = curve[len(curve)-1].seconds
		}
		line = append(line, sc.with(v))
	}
	t.Lines = append(t.Lines, line)
}

// sweepFigure draws one metric over one axis.
func (a *Analysis) sweepFigure(s sweep) figure {
	var ys []float64
	for _, l := range s.lines {
		for _, p := range l.points {
			ys = append(ys, p.mid, p.low, p.top)
		}
	}
	x := axis{lo: -0.2, hi: float64(len(s.values)) - 0.8}
	xs := make([]float64, len(s.values))
	for i := range xs {
		xs[i] = float64(i)
	}
	if vs, ok := s.numeric(); ok {
		xs = vs
		x = axis{lo: vs[0] * 0.93, hi: vs[len(vs)-1] * 1.07, log: vs[len(vs)-1]/vs[0] > 8}
	}
	for i, v := range s.values {
		x.ticks = append(x.ticks, tick{xs[i], shorten(plain(v), 12)})
	}
	c := newChart(x, linearAxis(ys, 5, unitLabel(s.unit, ys)))
	for _, l := range s.lines {
		var low, mid, top []point
		for _, p := range l.points {
			at := xs[p.at]
			low, mid, top = append(low, point{at, p.low}), append(mid, point{at, p.mid}), append(top, point{at, p.top})
		}
		k := a.armIndex(l.arm)
		c.area(armClass("f", k), low, top)
		c.line("curve "+armClass("s", k), mid)
		c.dots(armClass("s", k), mid)
	}
	caption := fmt.Sprintf("%s: %s over %s", plain(s.name), metricTitle(s.metric), plain(s.axis))
	for _, f := range s.fixed {
		caption += fmt.Sprintf(", %s=%s", plain(f.Name), plain(f.Value))
	}
	return figure{c.done(caption), caption}
}

// addMachine draws the outside evidence over the run.
func (a *Analysis) addMachine(p *page) {
	ms := a.machine()
	if len(ms) == 0 {
		return
	}
	var minutes []float64
	for _, m := range ms {
		minutes = append(minutes, m.minute)
	}
	x := linearAxis(minutes, 5, func(v float64) string { return fmt.Sprintf("%.3g min", v) })
	draw := func(title, class string, of func(moment) float64) {
		var ps []point
		ys := []float64{0}
		for _, m := range ms {
			if v := of(m); !math.IsNaN(v) {
				ps = append(ps, point{m.minute, v})
				ys = append(ys, v)
			}
		}
		if len(ps) == 0 {
			return
		}
		c := newChart(x, linearAxis(ys, 4, func(v float64) string { return fmt.Sprintf("%.3g%%", 100*v) }))
		c.line("curve "+class, ps)
		c.dots("small "+class, ps)
		p.Timeline = append(p.Timeline, figure{c.done(title + " over the run"), title})
	}
	draw("CPU of the servers, mean of the block's windows", "s0", func(m moment) float64 { return m.busy })
	draw("CPU of the load generator", "s2", func(m moment) float64 { return m.generator })
	draw("CPU time stolen by the hypervisor", "s1", func(m moment) float64 { return m.steal })
	p.Machine = pageTable{Heads: []string{"block", "minute", "server CPU", "generator CPU", "stolen, mean", "stolen, most", "other processes", "invalid windows"}}
	for _, m := range ms {
		busy := "n/a"
		if !math.IsNaN(m.busy) {
			busy = percent(m.busy)
		}
		p.Machine.Lines = append(p.Machine.Lines, []string{fmt.Sprint(m.block + 1), fmt.Sprintf("%.1f", m.minute), busy,
			percent(m.generator), percent(m.steal), percent(m.stealMax), percent(m.others), fmt.Sprint(m.invalid)})
	}
}
