package report

import (
	"fmt"
	"io"
	"math"
	"time"
)

// WriteComparison writes a comparison as text, markdown or JSON.
func WriteComparison(w io.Writer, format string, c *Comparison, o RenderOptions) error {
	switch format {
	case "text":
		return writeComparisonText(w, c, o)
	case "markdown":
		return writeComparisonMarkdown(w, c)
	case "json":
		return writeComparisonJSON(w, c)
	}
	return fmt.Errorf("unknown format %q for a comparison: expected text, markdown or json", format)
}

// sentences say what is compared, and what that is worth.
func (c *Comparison) sentences() []string {
	one := func(name string, a *Analysis) string {
		return fmt.Sprintf("%s: run %s of %s, %s", name, plain(a.Header.ID), a.Header.Started.UTC().Format("2006-01-02 15:04"), armLine(a.Arms[len(a.Arms)-1]))
	}
	out := []string{one("old", c.Old), one("new", c.New)}
	if c.SameBase {
		return append(out, fmt.Sprintf("two runs of different machine moments, compared by the ratios to their common baseline (%s): Welch's t test on block effects, at most %s would mark any row of unchanged code", c.Why, oneIn(c.Alpha)))
	}
	return append(out, "two runs of different machine moments without a common baseline ("+c.Why+"): shown without a verdict, since what differs may be the machine")
}

func (r *ComparedRow) verdictWord() string {
	if r.Verdict == "" {
		return "no verdict"
	}
	return string(r.Verdict)
}

func (r *ComparedRow) side(of *Row) string {
	if of == nil || math.IsNaN(of.Ratio) {
		return "n/a"
	}
	return showRatio(of.Ratio)
}

func (r *ComparedRow) change() string {
	if math.IsNaN(r.Ratio) {
		return "n/a"
	}
	return showRatio(r.Ratio) + " (" + showChange(r.Change) + ")"
}

func writeComparisonText(w io.Writer, c *Comparison, o RenderOptions) error {
	t := newTextWriter(c.New, o)
	for _, s := range c.sentences() {
		t.line(nil, "", "  ", s)
	}
	t.b.WriteByte('\n')
	g := &textGrid{}
	g.lines = make([]gridLine, len(c.Rows))
	column := func(head string, cell func(r *ComparedRow) gridCell) {
		cells := make([]gridCell, len(c.Rows))
		for i := range c.Rows {
			cells[i] = cell(&c.Rows[i])
			cells[i].text = t.glyphs(cells[i].text)
		}
		g.add(head, false, cells)
	}
	column("Scenario", func(r *ComparedRow) gridCell { return text(plain(r.Scenario)) })
	column("Metric", func(r *ComparedRow) gridCell { return text(metricTitle(r.Metric)) })
	column("Old ratio", func(r *ComparedRow) gridCell { return text(r.side(r.Old)) })
	column("New ratio", func(r *ComparedRow) gridCell { return text(r.side(r.New)) })
	column("New / old", func(r *ComparedRow) gridCell { return gridCell{r.change(), t.comparedPaint(r)} })
	column("Noise", func(r *ComparedRow) gridCell { return text(showNoise(r.Noise)) })
	column("Verdict", func(r *ComparedRow) gridCell { return gridCell{r.verdictWord(), t.comparedPaint(r)} })
	for i := range c.Rows {
		if r := &c.Rows[i]; math.IsNaN(r.Ratio) {
			g.lines[i].note, g.lines[i].paint = t.glyphs(join(r.verdictWord(), plain(r.Reason))), t.doubt
		}
	}
	g.keys, g.ellipsis = 2, t.glyphs("…")
	t.b.WriteString(g.render(o.Width))
	if len(c.Warnings) > 0 {
		t.title("Warnings")
		for _, s := range c.Warnings {
			t.line(t.doubt, "  ", "    ", s)
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *textWriter) comparedPaint(r *ComparedRow) painter {
	switch r.Verdict {
	case Regressed:
		return t.bad
	case Improved:
		return t.good
	}
	return nil
}

func writeComparisonMarkdown(w io.Writer, c *Comparison) error {
	m := &markdown{a: c.New}
	fmt.Fprintf(&m.b, "### %s: two runs compared\n\n", escape(c.New.Spec.Name))
	for _, s := range c.sentences() {
		m.item(s)
	}
	m.b.WriteByte('\n')
	m.row([]string{"Scenario", "Metric", "Old ratio", "New ratio", "New / old", "Noise", "Verdict"})
	m.b.WriteString("|---|---|--:|--:|--:|--:|---|\n")
	for i := range c.Rows {
		r := &c.Rows[i]
		word := r.verdictWord()
		if math.IsNaN(r.Ratio) {
			word = join(word, r.Reason)
		}
		word = escape(shorten(word, 200))
		if r.Verdict == Regressed || r.Verdict == Improved {
			word = "**" + word + "**"
		}
		m.row([]string{escape(shorten(r.Scenario, 80)), escape(metricTitle(r.Metric)), r.side(r.Old), r.side(r.New), r.change(), showNoise(r.Noise), word})
	}
	m.b.WriteByte('\n')
	for _, s := range c.Warnings {
		m.item("warning: " + s)
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

// The wire form of a comparison.
type (
	comparisonFile struct {
		Version  int             `json:"version"`
		Old      comparisonRun   `json:"old"`
		New      comparisonRun   `json:"new"`
		SameBase bool            `json:"same_baseline"`
		Why      string          `json:"why"`
		Alpha    float64         `json:"alpha"`
		Rows     []comparisonRow `json:"rows"`
		Warnings []string        `json:"warnings"`
	}
	comparisonRun struct {
		ID       string `json:"id"`
		Started  string `json:"started"`
		Revision string `json:"revision"`
	}
	comparisonRow struct {
		Scenario string    `json:"scenario"`
		Metric   string    `json:"metric"`
		Arm      string    `json:"arm"`
		Old      number    `json:"old_ratio"`
		New      number    `json:"new_ratio"`
		Ratio    number    `json:"ratio"`
		Change   number    `json:"change"`
		Worse    number    `json:"worse"`
		CI       [2]number `json:"ci"`
		Noise    number    `json:"noise"`
		P        number    `json:"p"`
		Verdict  *Verdict  `json:"verdict"`
		Reason   string    `json:"reason,omitempty"`
	}
)

func writeComparisonJSON(w io.Writer, c *Comparison) error {
	run := func(a *Analysis) comparisonRun {
		return comparisonRun{a.Header.ID, a.Header.Started.UTC().Format(time.RFC3339), a.Arms[len(a.Arms)-1].Revision}
	}
	ratio := func(r *Row) number {
		if r == nil {
			return number(math.NaN())
		}
		return number(r.Ratio)
	}
	doc := comparisonFile{ResultVersion, run(c.Old), run(c.New), c.SameBase, c.Why, c.Alpha, []comparisonRow{}, emptyNotNull(c.Warnings)}
	for i := range c.Rows {
		r := &c.Rows[i]
		out := comparisonRow{r.Scenario, r.Metric, r.Arm, ratio(r.Old), ratio(r.New), number(r.Ratio), number(r.Change), number(r.Worse),
			[2]number{number(r.CI[0]), number(r.CI[1])}, number(r.Noise), number(r.P), nil, r.Reason}
		if r.Verdict != "" {
			out.Verdict = &r.Verdict
		}
		doc.Rows = append(doc.Rows, out)
	}
	return encodeJSON(w, doc)
}
