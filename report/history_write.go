package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"
)

//go:embed html/history.html
var historyTemplate string

// WriteHistory writes a trend as html, text or json.
func WriteHistory(w io.Writer, format string, t *Trend, o RenderOptions) error {
	switch format {
	case "html":
		return writeHistoryHTML(w, t)
	case "text":
		return writeHistoryText(w, t, o)
	case "json":
		return writeHistoryJSON(w, t)
	}
	return fmt.Errorf("unknown format %q for a history: expected html, text or json", format)
}

func (t *Trend) name() string {
	if t.Name == "" {
		return "benchmark"
	}
	return plain(t.Name)
}

func (r *TrendRow) show(what string, v float64) string {
	if what == "ratio" {
		return showRatio(v)
	}
	return scaleFor(r.Unit, v).with(v)
}

func writeHistoryText(w io.Writer, t *Trend, o RenderOptions) error {
	tw := newTextWriter(nil, o)
	tw.line(nil, "", "", fmt.Sprintf("%s: history of %s", t.name(), count(len(t.Runs), "run")))
	changes := t.changed()
	if len(changes) == 0 {
		tw.line(nil, "", "", "no row changed its level")
	}
	g := &textGrid{}
	g.lines = make([]gridLine, len(changes))
	column := func(head string, cell func(c trendChange) string) {
		cells := make([]gridCell, len(changes))
		for i, c := range changes {
			cells[i] = text(tw.glyphs(cell(c)))
		}
		g.add(head, false, cells)
	}
	run := func(c trendChange) TrendRun { return t.Runs[c.row.Points[c.At].Run] }
	column("Scenario", func(c trendChange) string { return plain(c.row.Scenario) })
	column("Metric", func(c trendChange) string { return metricTitle(c.row.Metric) })
	column("Figure", func(c trendChange) string { return c.what })
	column("Since", func(c trendChange) string { return run(c).Started.UTC().Format(time.DateOnly) })
	column("Revision", func(c trendChange) string { return shortRevision(plain(run(c).Revision)) })
	column("Before", func(c trendChange) string { return c.row.show(c.what, c.Before) })
	column("After", func(c trendChange) string { return c.row.show(c.what, c.After) })
	column("Change", func(c trendChange) string { return showChange(c.After/c.Before - 1) })
	g.keys, g.ellipsis = 2, tw.glyphs("…")
	if len(changes) > 0 {
		tw.b.WriteByte('\n')
		tw.b.WriteString(g.render(o.Width))
	}
	_, err := io.WriteString(w, tw.b.String())
	return err
}

type (
	historyPage struct {
		Name, Count, When string
		Changes           []historyChange
		Rows              []historyRow
		CSS               template.CSS
	}
	historyChange struct {
		Scenario, Metric, What, Since, Revision, Before, After, Change, Class, Link string
	}
	historyRow struct {
		ID, Title string
		Charts    []figure
		Table     pageTable
	}
)

func writeHistoryHTML(w io.Writer, t *Trend) error {
	tmpl, err := template.New("history").Parse(historyTemplate)
	if err != nil {
		return fmt.Errorf("history template: %w", err)
	}
	p := historyPage{Name: t.name(), Count: count(len(t.Runs), "run"), CSS: template.CSS(htmlCSS)} //nolint:gosec // a file of ours
	p.When = t.Runs[0].Started.UTC().Format(time.DateOnly) + " to " + t.Runs[len(t.Runs)-1].Started.UTC().Format(time.DateOnly)
	ids := map[*TrendRow]string{}
	for i := range t.Rows {
		r := &t.Rows[i]
		ids[r] = fmt.Sprintf("r%d", i)
		p.Rows = append(p.Rows, t.historyRow(r, ids[r]))
	}
	for _, c := range t.changed() {
		run := t.Runs[c.row.Points[c.At].Run]
		class := "regressed"
		if c.Worse < 0 {
			class = "improved"
		}
		p.Changes = append(p.Changes, historyChange{plain(c.row.Scenario), metricTitle(c.row.Metric), c.what, run.Started.UTC().Format("2006-01-02 15:04"),
			shortRevision(plain(run.Revision)), c.row.show(c.what, c.Before), c.row.show(c.what, c.After), showChange(c.After/c.Before - 1), class, ids[c.row]})
	}
	return tmpl.Execute(w, p)
}

func (t *Trend) historyRow(r *TrendRow, id string) historyRow {
	out := historyRow{ID: id, Title: plain(r.Scenario) + ", " + metricTitle(r.Metric) + " of " + plain(r.Arm)}
	out.Table.Heads = []string{"run", "revision", "ratio", "interval", "value", "verdict"}
	values := make([]float64, len(r.Points))
	for i, p := range r.Points {
		values[i] = p.Value
	}
	sc := scaleFor(r.Unit, values...)
	for _, p := range r.Points {
		run := t.Runs[p.Run]
		out.Table.Lines = append(out.Table.Lines, []string{run.Started.UTC().Format("2006-01-02 15:04"), shortRevision(plain(run.Revision)),
			showRatio(p.Ratio), fmt.Sprintf("%.3f to %.3f", p.CI[0], p.CI[1]), sc.with(p.Value), string(p.Verdict)})
	}
	if len(r.Points) > 0 {
		out.Charts = []figure{t.trendChart(r, "ratio", r.Ratio), t.trendChart(r, "value", r.Value)}
	}
	return out
}

// trendChart draws one figure over the runs, the levels found, and the
// intervals where it has them.
func (t *Trend) trendChart(r *TrendRow, what string, changes []ChangePoint) figure {
	var ys []float64
	var ps []point
	for _, p := range r.Points {
		v := p.Value
		if what == "ratio" {
			v = p.Ratio
			ys = append(ys, 1)
			if p.CI[0] > 0 && !math.IsInf(p.CI[1], 0) && !math.IsNaN(p.CI[1]) {
				ys = append(ys, p.CI[0], p.CI[1])
			}
		}
		ys = append(ys, v)
		ps = append(ps, point{float64(p.Run), v})
	}
	label := unitLabel(r.Unit, ys)
	if what == "ratio" {
		label = func(v float64) string { return fmt.Sprintf("%.4gx", v) }
	}
	c := newChart(t.runAxis(), linearAxis(ys, 5, label))
	if what == "ratio" {
		c.level("one", 1)
		for _, p := range r.Points {
			if p.CI[0] > 0 && !math.IsInf(p.CI[1], 0) {
				c.line("mid ci s1", []point{{float64(p.Run), p.CI[0]}, {float64(p.Run), p.CI[1]}})
			}
		}
	}
	from := 0
	for i := range len(changes) + 1 {
		to, level := len(ps), math.NaN()
		switch {
		case i < len(changes):
			to, level = changes[i].At, changes[i].Before
		case len(changes) > 0:
			level = changes[len(changes)-1].After
		}
		if !math.IsNaN(level) {
			c.line("mid s0", []point{{ps[from].x - 0.4, level}, {ps[to-1].x + 0.4, level}})
		}
		from = to
	}
	c.dots("small s1", ps)
	caption := map[string]string{"ratio": "Ratio to the baseline of its run", "value": "Value"}[what]
	if n := len(changes); n > 0 {
		caption += fmt.Sprintf(", with %s of level", count(n, "change"))
	}
	return figure{c.done(caption + " over " + count(len(ps), "run")), caption}
}

func (t *Trend) runAxis() axis {
	n := len(t.Runs)
	x := axis{lo: -0.6, hi: float64(n) - 0.4}
	step := max(1, (n+3)/4)
	for i := 0; i < n; i += step {
		x.ticks = append(x.ticks, tick{float64(i), t.Runs[i].Started.UTC().Format("06-01-02")})
	}
	return x
}

// The wire form of a history.
type (
	historyFile struct {
		Version int          `json:"version"`
		Name    string       `json:"name"`
		Method  string       `json:"method"`
		Runs    []historyRun `json:"runs"`
		Rows    []historyOf  `json:"rows"`
	}
	historyRun struct {
		ID       string  `json:"id"`
		Started  string  `json:"started"`
		Revision string  `json:"revision"`
		Machine  string  `json:"machine"`
		Outcome  Outcome `json:"outcome"`
	}
	historyOf struct {
		Scenario string         `json:"scenario"`
		Metric   string         `json:"metric"`
		Unit     string         `json:"unit"`
		Better   string         `json:"better"`
		Arm      string         `json:"arm"`
		Points   []historyPoint `json:"points"`
		Ratio    []historyCut   `json:"ratio_changes"`
		Value    []historyCut   `json:"value_changes"`
	}
	historyPoint struct {
		Run     int       `json:"run"`
		Ratio   number    `json:"ratio"`
		CI      [2]number `json:"ci"`
		Value   number    `json:"value"`
		Verdict Verdict   `json:"verdict"`
	}
	historyCut struct {
		Run    int    `json:"run"` // the first of the new level
		Before number `json:"before"`
		After  number `json:"after"`
		Worse  number `json:"worse"`
	}
)

func writeHistoryJSON(w io.Writer, t *Trend) error {
	doc := historyFile{ResultVersion, t.Name, "optimal partitioning of the logarithms, squared error", []historyRun{}, []historyOf{}}
	for _, r := range t.Runs {
		doc.Runs = append(doc.Runs, historyRun{r.ID, r.Started.UTC().Format(time.RFC3339), r.Revision, r.Machine, r.Outcome})
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		row := historyOf{r.Scenario, r.Metric, r.Unit, r.Better, r.Arm, []historyPoint{}, r.cuts(r.Ratio), r.cuts(r.Value)}
		for _, p := range r.Points {
			row.Points = append(row.Points, historyPoint{p.Run, number(p.Ratio), [2]number{number(p.CI[0]), number(p.CI[1])}, number(p.Value), p.Verdict})
		}
		doc.Rows = append(doc.Rows, row)
	}
	return encodeJSON(w, doc)
}

func (r *TrendRow) cuts(cs []ChangePoint) []historyCut {
	out := []historyCut{}
	for _, c := range cs {
		out = append(out, historyCut{r.Points[c.At].Run, number(c.Before), number(c.After), number(c.Worse)})
	}
	return out
}
