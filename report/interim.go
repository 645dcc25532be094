package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Interim is what a run under way has come to: text for a terminal that shows
// it between blocks, and for a log.
type Interim struct{ a *Analysis }

// NewInterim takes the analysis of a journal without an end. Its verdicts are
// those of the moment: they count only at the looks that were planned.
func NewInterim(a *Analysis) Interim { return Interim{a} }

// Settled says how many judged rows are settled so far.
func (v Interim) Settled() string {
	counts := v.a.verdictCounts()
	judged := v.a.judgedRows()
	text := fmt.Sprintf("%d of %s settled so far", judged-counts[Unsure], count(judged, "row"))
	var parts []string
	for _, w := range []Verdict{Regressed, Improved, Same, New, Removed, Failed, Incomparable} {
		if counts[w] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[w], w))
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// Write writes the rows, each with its change, its interval on a scale that
// all share, and its verdict, in at most so many lines. What does not fit is
// counted: settled rows that did not move first.
func (v Interim) Write(w io.Writer, o RenderOptions, lines int) error {
	t := newTextWriter(v.a, o)
	t.line(nil, "", "  ", v.Settled())
	var rows []*Row
	reach := 0.0
	for i := range v.a.Rows {
		r := &v.a.Rows[i]
		if !r.Judged {
			continue
		}
		rows = append(rows, r)
		if r.bounded() {
			reach = math.Max(reach, math.Max(r.farthest(), math.Abs(r.Change)))
		}
	}
	if reach > 0 {
		reach = roundUp(reach)
	}
	if room := max(lines-4, 1); lines > 0 && len(rows) > room {
		rows = mostTelling(rows, room)
	}
	t.b.WriteByte('\n')
	t.b.WriteString(t.interim(rows, reach).render(o.Width))
	if over := v.a.judgedRows() - len(rows); over > 0 {
		t.line(t.faint, "", "", fmt.Sprintf("and %s more", count(over, "row")))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// mostTelling are the n rows that a reader waits for, in their order: those
// that moved, then those without figures, the unsure and the same.
func mostTelling(rows []*Row, n int) []*Row {
	rank := func(r *Row) int {
		switch {
		case r.Marked:
			return 0
		case !r.Verdict.measured():
			return 1
		case r.Verdict == Unsure:
			return 2
		}
		return 3
	}
	chosen := slices.Clone(rows)
	slices.SortStableFunc(chosen, func(x, y *Row) int { return cmp.Compare(rank(x), rank(y)) })
	chosen = chosen[:n]
	return slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool { return !slices.Contains(chosen, r) })
}

// interim lays the rows out.
func (t *textWriter) interim(rows []*Row, reach float64) *textGrid {
	g := &textGrid{}
	g.lines = make([]gridLine, len(rows))
	column := func(head string, right bool, cell func(*Row) gridCell) {
		cells := make([]gridCell, len(rows))
		for i, r := range rows {
			if r.Verdict.measured() {
				cells[i] = cell(r)
				cells[i].text = t.glyphs(cells[i].text)
			}
		}
		g.add(t.glyphs(head), right, cells)
	}
	names := make([]gridCell, len(rows))
	for i, r := range rows {
		names[i] = text(r.plotName(len(t.a.Arms) > 2))
		if !r.Verdict.measured() {
			g.lines[i].note, g.lines[i].paint = t.glyphs(join(string(r.Verdict), brief(r.Reason))), t.doubt
		}
	}
	g.add("Row", false, names)
	column("Change", true, func(r *Row) gridCell { return gridCell{showChange(r.Change), t.paintOf(r)} })
	column(plotScale(reach), false, func(r *Row) gridCell {
		if !r.bounded() || reach == 0 {
			return text("")
		}
		return gridCell{t.plot(r, reach, smallPlot), t.paintOf(r)}
	})
	column("Noise", true, func(r *Row) gridCell { return text(showNoise(r.Noise)) })
	column("Verdict", false, func(r *Row) gridCell { return gridCell{t.a.verdictWord(r), t.paintOf(r)} })
	g.keys, g.ellipsis = 1, t.glyphs("…")
	g.cutKey(t.o.Width)
	return g
}

// cutKey cuts the first column so that one table holds all columns, rather
// than several below each other: the view is to be low.
func (g *textGrid) cutKey(width int) {
	over := g.width() - width
	if width == 0 || over <= 0 {
		return
	}
	room := max(g.widths()[0]-over, 12)
	for i := range g.lines {
		key := &g.lines[i].cells[0]
		key.text = cut(key.text, room, g.ellipsis)
	}
}

// plotScale is the head of a plot: its ends, and no change in the middle.
func plotScale(reach float64) string {
	if reach == 0 {
		return "Interval"
	}
	left, right := showChange(-reach), showChange(reach)
	return left + strings.Repeat(" ", max(smallPlot/2-len(left), 1)) + "0" + strings.Repeat(" ", max(smallPlot/2-len(right), 1)) + right
}
