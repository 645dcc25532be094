package report

import (
	"fmt"
	"math"
	"strings"
)

// details writes the statistics of every arm as autocannon does.
func (t *textWriter) details() {
	if !t.o.Detail {
		return
	}
	t.intervals()
	for _, d := range t.a.Details() {
		t.title(fmt.Sprintf("%s, %s", plain(d.Scenario), armTitle(t.a.arm(d.Arm))))
		if !math.IsNaN(d.Latency.P50) {
			l := d.Latency
			vs := []float64{l.P2_5, l.P50, l.P97_5, l.P99, l.Mean, l.Stdev, l.Max}
			t.box([]string{"Stat", "2.5%", "50%", "97.5%", "99%", "Avg", "Stdev", "Max"}, [][]string{append([]string{"Latency"}, eachWith("s", l.P50, vs)...)})
		}
		if !math.IsNaN(d.Rate.P50) {
			lines := [][]string{append([]string{"Req/Sec"}, eachWith("1/s", d.Rate.P50, tailStats(d.Rate))...)}
			if !math.IsNaN(d.Throughput.P50) {
				lines = append(lines, append([]string{"Bytes/Sec"}, eachWith("B", d.Throughput.P50, tailStats(d.Throughput))...))
			}
			t.box([]string{"Stat", "1%", "2.5%", "50%", "97.5%", "Avg", "Stdev", "Min"}, lines)
		}
		size := ""
		if d.Bytes > 0 {
			size = ", " + scaleFor("B", d.Bytes).with(d.Bytes) + " read"
		}
		sampled := ""
		if d.Samples > 0 {
			sampled = fmt.Sprintf(", sampled once per second: %d samples", d.Samples)
		}
		t.line(t.faint, "", "", fmt.Sprintf("%.0f %s in %.2fs%s; %s%s", d.Requests, t.a.unitOfWork(d.Scenario), d.Seconds, size, count(d.Windows, "window"), sampled))
	}
}

func tailStats(s Spread) []float64 {
	return []float64{s.P1, s.P2_5, s.P50, s.P97_5, s.Mean, s.Stdev, s.Min}
}

// eachWith shows figures in one unit, which is that of the typical one.
func eachWith(unit string, typical float64, vs []float64) []string {
	sc := scaleFor(unit, typical)
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = sc.with(v)
	}
	return out
}

// boxes are the frame's corners and lines: top, middle and bottom, each with
// left, joint and right; then the bar and the rule.
var (
	unicodeBox = []string{"┌┬┐", "├┼┤", "└┴┘", "│─"}
	asciiBox   = []string{"+++", "+++", "+++", "|-"}
)

// box writes a framed table, or a bare one where the frame does not fit.
func (t *textWriter) box(heads []string, lines [][]string) {
	widths := make([]int, len(heads))
	total := 1
	for i, h := range heads {
		widths[i] = runes.StringWidth(h)
		for _, l := range lines {
			widths[i] = max(widths[i], runes.StringWidth(t.glyphs(l[i])))
		}
		total += widths[i] + 3
	}
	if t.o.Width > 0 && total > t.o.Width {
		t.bare(heads, lines)
		return
	}
	frame := unicodeBox
	if t.o.ASCII {
		frame = asciiBox
	}
	bar, rule := []rune(frame[3])[0], string([]rune(frame[3])[1])
	edge := func(k int) {
		c := []rune(frame[k])
		t.b.WriteRune(c[0])
		for i, w := range widths {
			if i > 0 {
				t.b.WriteRune(c[1])
			}
			t.b.WriteString(strings.Repeat(rule, w+2))
		}
		t.b.WriteRune(c[2])
		t.b.WriteByte('\n')
	}
	row := func(cells []string) {
		t.b.WriteRune(bar)
		for i, c := range cells {
			c = t.glyphs(c)
			fmt.Fprintf(&t.b, " %s%s %c", c, strings.Repeat(" ", widths[i]-runes.StringWidth(c)), bar)
		}
		t.b.WriteByte('\n')
	}
	edge(0)
	row(heads)
	for _, l := range lines {
		edge(1)
		row(l)
	}
	edge(2)
}

// bare writes the same figures without a frame, split to the width.
func (t *textWriter) bare(heads []string, lines [][]string) {
	g := &textGrid{}
	g.lines = make([]gridLine, len(lines))
	for i, h := range heads {
		cells := make([]gridCell, len(lines))
		for k, l := range lines {
			cells[k] = text(t.glyphs(l[i]))
		}
		g.add(h, false, cells)
	}
	g.keys, g.ellipsis = 1, t.glyphs("…")
	t.b.WriteString(g.render(t.o.Width))
}

// plotWidth is the number of columns of the interval plot, and smallPlot that
// of a plot in a table; odd, so that no change has one of its own.
const (
	plotWidth = 41
	smallPlot = 21
)

// intervals plots the change of every judged row with its interval, all on
// one scale, around the line of no change.
func (t *textWriter) intervals() {
	var rows []*Row
	reach, names := 0.0, 0
	for i := range t.a.Rows {
		r := &t.a.Rows[i]
		if !r.bounded() {
			continue
		}
		rows = append(rows, r)
		reach = math.Max(reach, r.farthest())
		names = max(names, runes.StringWidth(r.plotName(len(t.a.Arms) > 2)))
	}
	if len(rows) == 0 || reach == 0 {
		return
	}
	reach = roundUp(reach)
	if t.o.Width > 0 {
		names = min(names, max(t.o.Width-plotWidth-len(gap), 12))
	}
	t.title("Change of each row, with its interval")
	left, right := showChange(-reach), showChange(reach)
	t.b.WriteString(strings.Repeat(" ", names+len(gap)) + left + strings.Repeat(" ", plotWidth/2-len(left)) + "0" +
		strings.Repeat(" ", plotWidth/2-len(right)) + right + "\n")
	for _, r := range rows {
		name := cut(r.plotName(len(t.a.Arms) > 2), names, t.glyphs("…"))
		t.b.WriteString(name + strings.Repeat(" ", names-runes.StringWidth(name)) + gap + t.paintOf(r).do(t.plot(r, reach, plotWidth)) + "\n")
	}
}

// bounded reports whether the row has an interval that can be drawn.
func (r *Row) bounded() bool {
	return r.Judged && r.Verdict.measured() && !math.IsInf(r.CI[1], 0) && !math.IsNaN(r.CI[1])
}

// farthest is the distance of the interval's farther end from no change.
func (r *Row) farthest() float64 {
	return math.Max(math.Abs(r.CI[0]-1), math.Abs(r.CI[1]-1))
}

func (r *Row) plotName(named bool) string {
	name := plain(r.Scenario) + " " + metricTitle(r.Metric)
	if named {
		name += " (" + plain(r.Head.Arm) + ")"
	}
	return name
}

// roundUp is the next round number: 1, 1.5, 2, 3, 4, 5 or 7 times a power of
// ten.
func roundUp(x float64) float64 {
	ten := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 1.5, 2, 3, 4, 5, 7} {
		if x <= f*ten*(1+1e-9) {
			return f * ten
		}
	}
	return 10 * ten
}

func (t *textWriter) plot(r *Row, reach float64, width int) string {
	axis, line, dot, zero := '┤', '─', '●', '│'
	open := '├'
	if t.o.ASCII {
		open, axis, line, dot, zero = '[', ']', '-', 'o', '|'
	}
	at := func(change float64) int {
		return min(max(int(math.Round((change/reach+1)/2*float64(width-1))), 0), width-1)
	}
	out := []rune(strings.Repeat(" ", width))
	out[width/2] = zero
	lo, hi := at(r.CI[0]-1), at(r.CI[1]-1)
	for i := lo; i <= hi; i++ {
		out[i] = line
	}
	out[lo], out[hi] = open, axis
	out[at(r.Change)] = dot
	return strings.TrimRight(string(out), " ")
}
