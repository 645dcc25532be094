package report

import (
	"slices"
)

// textGrid is the table of one section, with the columns that may be set
// apart where the terminal is narrow.
type textGrid struct {
	grid
	split int // first column of the second table
}

// grid lays out one section in the columns
//
//	Scenario  Base req/s  Head req/s  Head / base  Range  Noise  Busy  CPU per request  Verdict
func (t *textWriter) grid(s section) *textGrid {
	base, head := armTitle(t.a.Baseline), armTitle(s.head)
	g := &textGrid{}
	keys := g.addKeys(s)
	main := func(e entry) *Row { return e.main }
	sc := scaleFor(s.unit, columnValues(s.lines, bothValues, main)...)
	suffix := " " + metricTitle(s.metric)
	if s.unit != "1/s" {
		suffix = ""
		if sc.unit != "" {
			suffix = " (" + sc.unit + ")"
		}
	}
	g.add(base+suffix, false, cellsOf(s, main, func(r *Row) gridCell { return text(sc.number(r.Base.Value)) }))
	g.add(head+suffix, false, cellsOf(s, main, func(r *Row) gridCell { return text(sc.number(r.Head.Value)) }))
	g.add(head+" / "+lowerFirst(base, t.a.Baseline.Label), false, cellsOf(s, main, func(r *Row) gridCell {
		return gridCell{showRatio(r.Ratio) + " (" + showChange(r.Change) + ")" + r.mark(), t.paintOf(r)}
	}))
	g.add("Range", false, cellsOf(s, main, func(r *Row) gridCell { return text(showRange(r.Range)) }))
	g.add("Noise", false, cellsOf(s, main, func(r *Row) gridCell {
		if !r.Judged {
			return text("")
		}
		return text(showNoise(r.Noise))
	}))
	g.split = len(g.heads)
	g.addBusy(s)
	t.addCPU(g, s)
	g.add("Verdict", false, t.verdicts(s))
	for i, e := range s.lines {
		l := &g.lines[i]
		if r := e.absent(); r != nil {
			l.note, l.paint = t.glyphs(join(string(r.Verdict), plain(r.Reason))), t.doubt
		}
	}
	g.keys = keys
	for i := range g.heads {
		g.heads[i] = t.glyphs(g.heads[i])
	}
	for i := range g.lines {
		for k := range g.lines[i].cells {
			g.lines[i].cells[k].text = t.glyphs(g.lines[i].cells[k].text)
		}
	}
	return g
}

func (g *textGrid) addKeys(s section) int {
	g.lines = make([]gridLine, len(s.lines))
	if s.sweep == "" {
		cells := make([]gridCell, len(s.lines))
		for i, e := range s.lines {
			cells[i] = text(plain(e.scenario))
		}
		g.add("Scenario", false, cells)
		return 1
	}
	axes := s.lines[0].matrix
	for k, axis := range axes {
		cells := make([]gridCell, len(s.lines))
		for i, e := range s.lines {
			if k < len(e.matrix) {
				cells[i] = text(plain(e.matrix[k].Value))
			}
		}
		g.add(plain(axis.Name), true, cells)
	}
	return len(axes)
}

func (g *textGrid) add(head string, right bool, cells []gridCell) {
	g.heads = append(g.heads, head)
	g.right = append(g.right, right)
	for i := range g.lines {
		g.lines[i].cells = append(g.lines[i].cells, cells[i])
	}
}

// cellsOf makes a column of the rows that have figures.
func cellsOf(s section, pick func(entry) *Row, cell func(*Row) gridCell) []gridCell {
	out := make([]gridCell, len(s.lines))
	for i, e := range s.lines {
		r := pick(e)
		switch {
		case e.absent() != nil:
		case r == nil:
			out[i] = text("n/a")
		case !r.Verdict.measured() && r.Judged:
			out[i] = text(string(r.Verdict))
		default:
			out[i] = cell(r)
		}
	}
	return out
}

func (g *textGrid) addBusy(s section) {
	cells := make([]gridCell, len(s.lines))
	any := false
	for i, e := range s.lines {
		if e.absent() == nil && len(e.rows()) > 0 {
			cells[i] = text(busyPair(e.rows()[0]))
			any = any || cells[i].text != ""
		}
	}
	if any {
		g.add("Busy", false, cells)
	}
}

func (t *textWriter) addCPU(g *textGrid, s section) {
	cpu := func(e entry) *Row { return e.cpu }
	if !slices.ContainsFunc(s.lines, func(e entry) bool { return e.cpu != nil }) {
		return
	}
	sc := scaleFor("s", columnValues(s.lines, bothValues, cpu)...)
	g.add("CPU per request", false, cellsOf(s, cpu, func(r *Row) gridCell {
		return gridCell{sc.pair(r.Base.Value, r.Head.Value) + " (" + showRatio(r.Ratio) + ")" + r.mark(), t.paintOf(r)}
	}))
}

func (t *textWriter) verdicts(s section) []gridCell {
	out := make([]gridCell, len(s.lines))
	for i, e := range s.lines {
		if e.absent() != nil {
			continue
		}
		out[i] = text(e.verdict())
		for _, r := range e.rows() {
			if p := t.paintOf(r); p != nil && (out[i].paint == nil || r.Worse > 0) {
				out[i].paint = p
			}
		}
	}
	return out
}

func (g *textGrid) width() int {
	total := 0
	for _, w := range g.widths() {
		total += w + len(gap)
	}
	return total - len(gap)
}

// fit rearranges a grid that is too wide for one table: the verdict comes
// right behind the ratio and its noise, where a reader with a narrow terminal
// looks for it, and the rest goes to the tables below.
func (g *textGrid) fit() {
	first := []string{"Noise", "Verdict"}
	var front, back []int
	for i, h := range g.heads {
		switch {
		case i < g.split && h != "Range" && h != "Noise":
			front = append(front, i)
		case !slices.Contains(first, h):
			back = append(back, i)
		}
	}
	for _, h := range first {
		if i := slices.Index(g.heads, h); i >= 0 {
			front = append(front, i)
		}
	}
	g.reorder(append(front, back...))
}

func (g *textGrid) reorder(order []int) {
	heads, right := g.heads, g.right
	g.heads, g.right = nil, nil
	for _, i := range order {
		g.heads, g.right = append(g.heads, heads[i]), append(g.right, right[i])
	}
	for k := range g.lines {
		cells := g.lines[k].cells
		g.lines[k].cells = nil
		for _, i := range order {
			g.lines[k].cells = append(g.lines[k].cells, cells[i])
		}
	}
}
