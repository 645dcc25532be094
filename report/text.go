package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"

	"github.com/tandem-bench/tandem/spec"
)

// writeText renders for a terminal or a log.
func writeText(w io.Writer, a *Analysis, o RenderOptions) error {
	t := newTextWriter(a, o)
	t.head()
	for _, s := range a.sections() {
		t.section(s)
	}
	t.legend()
	t.moved()
	t.details()
	t.gates()
	t.warnings()
	t.outputs()
	t.environment()
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (o RenderOptions) painter(attrs ...color.Attribute) painter {
	if !o.Color {
		return nil
	}
	c := color.New(attrs...)
	// The caller has decided: the library's own look at stdout does not count.
	c.EnableColor()
	return func(s string) string { return c.Sprint(s) }
}

type textWriter struct {
	a *Analysis
	o RenderOptions
	b strings.Builder

	bad, good, doubt, strong, faint painter
}

func newTextWriter(a *Analysis, o RenderOptions) *textWriter {
	return &textWriter{a: a, o: o, bad: o.painter(color.FgRed, color.Bold), good: o.painter(color.FgGreen, color.Bold),
		doubt: o.painter(color.FgYellow), strong: o.painter(color.Bold), faint: o.painter(color.Faint)}
}

// asciiNames are the renderer's own characters beyond ASCII.
var asciiNames = strings.NewReplacer("µ", "u", "±", "+/-", "…", "~", "✗", "!", "✓", "+", "–", "-")

func (t *textWriter) glyphs(s string) string {
	if !t.o.ASCII {
		return s
	}
	return asciiNames.Replace(s)
}

// line writes a text, wrapped, with first before its first line and rest,
// which is as wide or wider, before the others. first may be coloured.
func (t *textWriter) line(p painter, first, rest, s string) {
	s = t.glyphs(s)
	for i, l := range wrap(s, max(t.o.Width-runes.StringWidth(rest), 20), t.o.Width > 0) {
		if i == 0 {
			t.b.WriteString(first)
		} else {
			t.b.WriteString(rest)
		}
		t.b.WriteString(p.do(l))
		t.b.WriteByte('\n')
	}
}

func (t *textWriter) title(s string) {
	t.b.WriteByte('\n')
	t.line(t.strong, "", "", s)
}

func (t *textWriter) head() {
	name := plain(t.a.Spec.Name)
	if name == "" {
		name = "benchmark"
	}
	t.line(t.strong, "", "  ", name)
	if t.a.Partial != "" {
		t.line(t.doubt, "", "  ", "partial run: "+brief(t.a.Partial))
	}
	if t.a.Header.Same {
		t.line(nil, "", "  ", "same-code run: every candidate is the baseline again, so any mark is a false alarm")
	}
}

func (t *textWriter) section(s section) {
	switch {
	case s.sweep != "":
		t.title(fmt.Sprintf("%s: %s", plain(s.sweep), metricTitle(s.metric)))
	case s.metric != "rps":
		t.title(metricTitle(s.metric))
	case len(t.a.Arms) > 2:
		t.title(fmt.Sprintf("%s against %s", armTitle(s.head), armTitle(t.a.Baseline)))
	default:
		t.b.WriteByte('\n')
	}
	if s.metric != "rps" && len(t.a.Arms) > 2 {
		t.line(nil, "", "", fmt.Sprintf("%s against %s", armTitle(s.head), armTitle(t.a.Baseline)))
	}
	g := t.grid(s, false)
	if t.o.Width > 0 && g.width() > t.o.Width {
		g = t.grid(s, true)
	}
	t.b.WriteString(g.render(t.o.Width))
}

// mark is the sign behind a ratio that moved.
func (r *Row) mark() string {
	switch {
	case !r.Marked:
		return ""
	case r.Worse > 0:
		return " ✗"
	}
	return " ✓"
}

func (t *textWriter) paintOf(r *Row) painter {
	switch {
	case r == nil || !r.Marked:
		return nil
	case r.Worse > 0:
		return t.bad
	}
	return t.good
}

// legend explains the signs and words that the tables use, and no others.
func (t *textWriter) legend() {
	var marked, unsure, far, same bool
	for i := range t.a.Rows {
		r := &t.a.Rows[i]
		marked = marked || r.Marked
		same = same || r.Verdict == Same
		if r.Judged && r.Verdict == Unsure {
			unsure = true
			far = far || t.a.outOfReach(r)
		}
	}
	var parts []string
	if marked {
		parts = append(parts, "✗ moved for the worse, ✓ for the better.")
	}
	if same {
		parts = append(parts, fmt.Sprintf("same: the interval lies within ±%.3g%%.", 100*t.a.Spec.Margin))
	}
	if unsure {
		parts = append(parts, "unsure: neither moved nor shown to be the same; +N is about how many more blocks would settle it.")
	}
	if far {
		parts = append(parts, fmt.Sprintf("out of reach: not even %d times this plan's blocks would; a quieter machine or a wider margin may.", reachable))
	}
	if len(parts) > 0 {
		t.b.WriteByte('\n')
		t.line(t.faint, "", "", strings.Join(parts, " "))
	}
}

// maxMoved bounds the list of moved rows; the tables hold them all.
const maxMoved = 20

func (t *textWriter) moved() {
	rows := t.a.moved()
	if len(rows) == 0 {
		return
	}
	t.title("Moved")
	for i, r := range rows {
		if i == maxMoved {
			t.line(nil, "  ", "  ", fmt.Sprintf("and %d more", len(rows)-i))
			break
		}
		t.line(nil, "  "+t.paintOf(r).do(fmt.Sprintf("%-9s", r.Verdict))+"  ", "             ", r.sentence(len(t.a.Arms) > 2))
	}
}

// sentence tells a judged row in words.
func (r *Row) sentence(named bool) string {
	who := ""
	if named {
		who = " (" + plain(r.Head.Arm) + ")"
	}
	return fmt.Sprintf("%s%s %s %s (%.3f to %.3f at %g%%), noise %s, %s, %d blocks", plain(r.Scenario), who, metricTitle(r.Metric),
		showChange(r.Change), r.CI[0], r.CI[1], 100*r.Confidence, showNoise(r.Noise), showP(r.P), r.Blocks)
}

func (t *textWriter) gates() {
	groups := t.a.gateGroups()
	if len(groups) == 0 {
		return
	}
	t.title("Gates")
	told := t.a.toldReasons()
	for _, g := range groups {
		for _, r := range g.rest {
			t.gate(r, told)
		}
		if g.passed > 0 {
			t.line(nil, "  "+t.good.do("pass")+"  ", "        ", fmt.Sprintf("%s (%s)", plain(t.a.thresholdText(g.first)), g.passedText()))
		}
	}
}

func (t *textWriter) gate(g GateResult, told map[rowKey]string) {
	p := t.good
	switch g.Level {
	case spec.Fail:
		p = t.bad
	case spec.Warn:
		p = t.doubt
	}
	t.line(nil, "  "+p.do(fmt.Sprintf("%-4s", g.Level))+"  ", "        ", t.a.gateLine(g, told))
}

// gateLine tells one gate's result on one row, below a table that gives the
// reasons of the rows without figures.
func (a *Analysis) gateLine(g GateResult, told map[rowKey]string) string {
	if g.Threshold < 0 && g.Reason == told[rowKey{scenario: g.Scenario, arm: g.Arm}] {
		g.Reason = ""
	}
	return a.gateText(g)
}

// toldReasons are the reasons that the tables give in the place of figures, by
// scenario and candidate.
func (a *Analysis) toldReasons() map[rowKey]string {
	told := map[rowKey]string{}
	for _, s := range a.sections() {
		for _, e := range s.lines {
			if r := e.absent(); r != nil {
				told[rowKey{scenario: e.scenario, arm: s.head.Name}] = r.Reason
			}
		}
	}
	return told
}

// gateText tells one gate's result on one row.
func (a *Analysis) gateText(g GateResult) string {
	var b strings.Builder
	if g.Scenario == "" {
		b.WriteString("the benchmark") // a gate of the whole run
	}
	b.WriteString(plain(g.Scenario))
	if g.Metric != "" {
		b.WriteString(" " + metricTitle(g.Metric))
	}
	if len(a.Arms) > 2 && g.Arm != "" {
		b.WriteString(" (" + plain(g.Arm) + ")")
	}
	b.WriteString(": ")
	if g.Message != "" && g.Level != spec.Pass && g.Policy == "" {
		b.WriteString(plain(g.Message) + "; ")
	}
	what := g.Source
	if what == "" {
		what = g.Policy
	}
	b.WriteString(join(plain(what), brief(g.Reason)))
	if g.Policy != "" {
		fmt.Fprintf(&b, " (policy %s: %s)", g.Policy, g.Level)
	}
	return b.String()
}

func (a *Analysis) thresholdText(g GateResult) string {
	if g.Threshold < 0 || g.Threshold >= len(a.Spec.Thresholds) {
		return g.Source
	}
	th := a.Spec.Thresholds[g.Threshold]
	where := th.Metric
	if th.Scenario != "" && th.Scenario != "*" {
		where += " of " + th.Scenario
	}
	var parts []string
	if th.Fail != nil {
		parts = append(parts, "fail: "+th.Fail.Source)
	}
	if th.Warn != nil {
		parts = append(parts, "warn: "+th.Warn.Source)
	}
	return where + ", " + strings.Join(parts, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
