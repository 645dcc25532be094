package report

import "slices"

// textGrid is the table of one section.
type textGrid struct{ grid }

// grid lays out one section in the columns
//
//	Scenario  Base req/s  Head req/s  Head / base  Range  Noise  Busy  CPU per request  Verdict
//
// Where that is too wide for the terminal, narrow puts what decides first, so
// that it stands in the first of several tables, and gives each metric a
// verdict of its own.
func (t *textWriter) grid(s section, narrow bool) *textGrid {
	g := &textGrid{}
	keys := g.addKeys(s)
	t.addValues(g, s)
	main := func(e entry) *Row { return e.main }
	rng := cellsOf(s, main, func(r *Row) gridCell { return text(showRange(r.Range)) })
	noise := cellsOf(s, main, func(r *Row) gridCell {
		if !r.Judged {
			return text("")
		}
		return text(showNoise(r.Noise))
	})
	if narrow {
		g.add("Noise", false, noise)
		g.add("Verdict", false, t.verdicts(s, func(e entry) []*Row { return compact(e.main) }))
		if t.addCPU(g, s) {
			g.add("Verdict", false, t.verdicts(s, func(e entry) []*Row { return compact(e.cpu) }))
		}
		g.add("Range", false, rng)
		g.addBusy(s)
	} else {
		g.add("Range", false, rng)
		g.add("Noise", false, noise)
		g.addBusy(s)
		t.addCPU(g, s)
		g.add("Verdict", false, t.verdicts(s, entry.rows))
	}
	for i, e := range s.lines {
		l := &g.lines[i]
		if r := e.absent(); r != nil {
			l.note, l.paint = t.glyphs(join(string(r.Verdict), brief(r.Reason))), t.doubt
		}
	}
	g.keys, g.ellipsis = keys, t.glyphs("…")
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

// addValues adds the values of both sides in one unit, and their ratio.
func (t *textWriter) addValues(g *textGrid, s section) {
	base, head := armTitle(t.a.Baseline), armTitle(s.head)
	main := func(e entry) *Row { return e.main }
	sc := scaleFor(s.unit, columnValues(s.lines, bothValues, main)...)
	suffix := ""
	switch {
	case s.unit == "1/s":
		suffix = " " + metricTitle(s.metric)
	case sc.unit != "":
		suffix = " (" + sc.unit + ")"
	}
	g.add(base+suffix, false, cellsOf(s, main, func(r *Row) gridCell { return text(sc.number(r.Base.Value)) }))
	g.add(head+suffix, false, cellsOf(s, main, func(r *Row) gridCell { return text(sc.number(r.Head.Value)) }))
	g.add(head+" / "+lowerFirst(base, t.a.Baseline.Label), false, cellsOf(s, main, func(r *Row) gridCell {
		return gridCell{showRatio(r.Ratio) + " (" + showChange(r.Change) + ")" + r.mark(), t.paintOf(r)}
	}))
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

// addCPU adds the column of CPU per request, if any line has it.
func (t *textWriter) addCPU(g *textGrid, s section) bool {
	cpu := func(e entry) *Row { return e.cpu }
	if !slices.ContainsFunc(s.lines, func(e entry) bool { return e.cpu != nil }) {
		return false
	}
	sc := scaleFor("s", columnValues(s.lines, bothValues, cpu)...)
	g.add("CPU per request", false, cellsOf(s, cpu, func(r *Row) gridCell {
		return gridCell{sc.pair(r.Base.Value, r.Head.Value) + " (" + showRatio(r.Ratio) + ")" + r.mark(), t.paintOf(r)}
	}))
	return true
}

// verdicts makes a column of the verdicts of some rows of each line.
func (t *textWriter) verdicts(s section, pick func(entry) []*Row) []gridCell {
	out := make([]gridCell, len(s.lines))
	for i, e := range s.lines {
		if e.absent() != nil {
			continue
		}
		rows := pick(e)
		out[i] = text(t.a.verdictWords(rows))
		for _, r := range rows {
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
