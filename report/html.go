package report

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

//go:embed html/report.html
var htmlTemplate string

//go:embed html/report.css
var htmlCSS string

//go:embed html/report.js
var htmlJS string

// maxCharted bounds the scenarios that get pictures, so that the page of a
// very large table still opens at once. Moved ones come first.
const maxCharted = 150

// maxNameInTable is the width of a name in the table of results; its section
// has the whole.
const maxNameInTable = 80

// page is all that the template shows.
type page struct {
	Name, Outcome, OutcomeClass, When, ID, Tool string
	Partial                                     string
	Same, Many                                  bool
	Headline, Promise, Confidence               string
	Base, Head                                  string
	Scale                                       []scaleMark
	Rows                                        []pageRow
	Gates                                       []pageGate
	Warnings                                    []string
	Outputs                                     []pageOutput
	Sweeps, Timeline                            []figure
	Scenarios                                   []pageScenario
	LeftOut                                     string
	Machine                                     pageTable
	Plan, Environment                           []keyValue
	Source, SpecPath                            string
	Legend                                      template.HTML
	CSS                                         template.CSS
	JS                                          template.JS
}

type (
	scaleMark struct{ At, Label string }
	figure    struct {
		Chart   template.HTML
		Caption string
	}
	keyValue   struct{ Key, Value string }
	pageGate   struct{ Level, Text string }
	pageOutput struct{ What, Text string }
	pageTable  struct {
		Caption string
		Heads   []string
		Lines   [][]string
	}
	pageScenario struct {
		ID, Name, Verdicts string
		Open               bool
		Notes              []string
		Charts             []figure
		Tables             []pageTable
	}
)

// writeHTML writes one self-contained page: nothing is fetched, it reads
// without JavaScript, and every picture's figures stand in a table.
func writeHTML(w io.Writer, a *Analysis, _ RenderOptions) error {
	t, err := template.New("report").Parse(htmlTemplate)
	if err != nil {
		return fmt.Errorf("report template: %w", err)
	}
	return t.Execute(w, newPage(a))
}

func newPage(a *Analysis) *page {
	p := &page{
		Name: plain(a.Spec.Name), Outcome: strings.ReplaceAll(string(a.Outcome), "_", " "), OutcomeClass: outcomeClass(a.Outcome),
		When: fmt.Sprintf("%s to %s UTC", a.Header.Started.UTC().Format("2006-01-02 15:04:05"), a.Finished.UTC().Format("15:04:05")),
		ID:   plain(a.Header.ID), Tool: plain(a.Header.Tool), Partial: brief(a.Partial), Same: a.Header.Same, Many: len(a.Arms) > 2,
		Headline: a.headline(), Promise: sentenceCase(a.promiseLine()), Base: armTitle(a.Baseline), Head: "Candidate",
		Warnings: a.allWarnings(), Source: a.Spec.Source, SpecPath: plain(a.Spec.Path),
		Legend: a.legend(), CSS: template.CSS(htmlCSS), JS: template.JS(htmlJS), //nolint:gosec // both are files of ours
	}
	if p.Name == "" {
		p.Name = "benchmark"
	}
	if !p.Many {
		p.Head = armTitle(a.Arms[1])
	}
	charted := a.charted()
	a.addRows(p, charted)
	told := a.toldReasons()
	for _, g := range a.gateGroups() {
		for _, r := range g.rest {
			p.Gates = append(p.Gates, pageGate{string(r.Level), a.gateLine(r, told)})
		}
		if g.passed > 0 {
			p.Gates = append(p.Gates, pageGate{"pass", fmt.Sprintf("%s (%s)", plain(a.thresholdText(g.first)), g.passedText())})
		}
	}
	if a.run != nil {
		for _, s := range a.sweeps() {
			p.Sweeps = append(p.Sweeps, a.sweepFigure(s))
		}
		for i, scenario := range charted {
			p.Scenarios = append(p.Scenarios, a.pageScenario(scenario, i))
		}
		if n := len(a.scenarios()) - len(charted); n > 0 {
			p.LeftOut = fmt.Sprintf("%s more without pictures, to keep the page small; their figures are in the table above, and all trials in the journal.", count(n, "scenario"))
		}
		a.addMachine(p)
	}
	for _, o := range a.outputs() {
		p.Outputs = append(p.Outputs, pageOutput{o.what, strings.Join(o.lines, "\n")})
	}
	a.addEnvironment(p)
	return p
}

func sentenceCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// headline is the outcome in a few words.
func (a *Analysis) headline() string {
	counts := a.verdictCounts()
	var parts []string
	for _, v := range []Verdict{Regressed, Improved, Same, Unsure, Failed, Incomparable, New, Removed} {
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	return fmt.Sprintf("%s: %s.", count(a.judgedRows(), "judged row"), strings.Join(parts, ", "))
}

func (a *Analysis) judgedRows() int {
	n := 0
	for _, r := range a.Rows {
		if r.Judged {
			n++
		}
	}
	return n
}

func outcomeClass(o Outcome) string {
	if o == Undecided {
		return "unsure-tag"
	}
	return string(o)
}

// legend is the key of the arms' colours.
func (a *Analysis) legend() template.HTML {
	var b strings.Builder
	for i, arm := range a.Arms {
		fmt.Fprintf(&b, `<span class="key k%d"></span>%s`, i%6, html.EscapeString(armTitle(arm)))
	}
	return template.HTML(b.String()) //nolint:gosec // numbers and escaped labels only
}

// charted are the scenarios that get pictures: all, or the moved ones and then
// the first others.
func (a *Analysis) charted() []string {
	all := a.scenarios()
	if len(all) <= maxCharted {
		return all
	}
	moved := map[string]bool{}
	for _, r := range a.Rows {
		moved[r.Scenario] = moved[r.Scenario] || r.Marked
	}
	room := maxCharted
	for _, s := range all {
		if moved[s] {
			room--
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		if moved[s] {
			return false
		}
		room--
		return room < 0
	})
}

// pageRow is one line of the table of results, with its place in the plot.
type pageRow struct {
	Scenario, Metric, Arm, Link          string
	BaseValue, HeadValue, Ratio, Noise   string
	P, Blocks, Word, Class, Label, Sort  string
	Absent, Marked, HasCI, Warned        bool
	Reason, Verdict                      string
	BandLeft, BandWidth, CILeft, CIWidth string
	Dot                                  string
}

// addRows adds the judged rows, all plotted on one scale of log ratios.
func (a *Analysis) addRows(p *page, charted []string) {
	reach := a.reach()
	for _, at := range []float64{-1, 0, 1} {
		p.Scale = append(p.Scale, scaleMark{place(at*reach, reach), showRatio(math.Exp(at * reach))})
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		if !r.Judged {
			continue
		}
		if r.Verdict.measured() {
			p.Confidence = fmt.Sprintf("%g%%", 100*r.Confidence)
		}
		row := a.pageRow(r, reach)
		if k := slices.Index(charted, r.Scenario); k >= 0 && a.run != nil {
			row.Link = scenarioID(k)
		}
		p.Rows = append(p.Rows, row)
	}
}

// reach is the largest log ratio that the plot shows: what the dots need, and
// the intervals and noise as far as they do not squeeze the dots.
func (a *Analysis) reach() float64 {
	dots, ends := 0.0, 0.0
	for _, r := range a.Rows {
		if !r.Judged || !r.Verdict.measured() {
			continue
		}
		dots = math.Max(dots, math.Abs(math.Log(r.Ratio)))
		for _, e := range []float64{math.Log(r.CI[0]), math.Log(r.CI[1]), math.Log1p(r.Noise)} {
			if !math.IsInf(e, 0) && !math.IsNaN(e) {
				ends = math.Max(ends, math.Abs(e))
			}
		}
	}
	return roundUp(math.Max(math.Min(ends, math.Max(3*dots, 0.05)), math.Max(dots, 0.01)))
}

// place is where a log ratio lies, in percent of the plot's width.
func place(logRatio, reach float64) string {
	return num(50 + 50*math.Max(-1, math.Min(1, logRatio/reach)))
}

func (a *Analysis) pageRow(r *Row, reach float64) pageRow {
	out := pageRow{
		Scenario: shorten(plain(r.Scenario), maxNameInTable), Metric: metricTitle(r.Metric), Arm: armTitle(a.arm(r.Head.Arm)),
		Word: a.verdictWord(r), Class: r.class(), Marked: r.Marked, Warned: len(r.Warnings) > 0,
	}
	if !r.Verdict.measured() {
		out.Absent, out.Verdict, out.Reason = true, string(r.Verdict), brief(r.Reason)
		return out
	}
	sc := scaleFor(r.Unit, r.Base.Value, r.Head.Value)
	out.BaseValue, out.HeadValue = sc.with(r.Base.Value), sc.with(r.Head.Value)
	out.Ratio = showRatio(r.Ratio) + " (" + showChange(r.Change) + ")"
	out.P, out.Blocks, out.Sort = strings.TrimPrefix(strings.TrimPrefix(showP(r.P), "p "), "= "), fmt.Sprint(r.Blocks), float(r.Ratio)
	out.Label = fmt.Sprintf("ratio %.3f, interval %.3f to %.3f, noise %s", r.Ratio, r.CI[0], r.CI[1], showNoise(r.Noise))
	out.Dot = place(math.Log(r.Ratio), reach)
	if !math.IsInf(r.Noise, 0) && !math.IsNaN(r.Noise) {
		out.Noise = showNoise(r.Noise)
		out.BandLeft, out.BandWidth = span(math.Log(math.Max(1-r.Noise, 1e-9)), math.Log1p(r.Noise), reach)
	}
	if r.CI[0] > 0 && !math.IsInf(r.CI[1], 0) {
		out.HasCI = true
		out.CILeft, out.CIWidth = span(math.Log(r.CI[0]), math.Log(r.CI[1]), reach)
	}
	return out
}

// span is a stretch of the plot: where it begins, and how wide it is.
func span(lo, hi, reach float64) (left, width string) {
	at := func(v float64) float64 { return 50 + 50*math.Max(-1, math.Min(1, v/reach)) }
	return num(at(lo)), num(at(hi) - at(lo))
}

// class is the colour of a row: that of a mark, or of a missing verdict.
func (r *Row) class() string {
	switch {
	case r.Marked && r.Worse > 0:
		return "regressed"
	case r.Marked:
		return "improved"
	case !r.Verdict.measured():
		return string(r.Verdict)
	}
	return "plain"
}

// addEnvironment tells the plan and the machine.
func (a *Analysis) addEnvironment(p *page) {
	plan, h := a.Spec.Plan, a.Header
	p.Plan = []keyValue{
		{"blocks", fmt.Sprintf("%d counted, %d to %d planned", len(a.blocks()), plan.Blocks.Min, plan.Blocks.Max)},
		{"copies of each arm", fmt.Sprint(h.Copies)},
		{"window, warm-up", fmt.Sprintf("%v, %v", plan.Window, plan.Warmup)},
		{"interleaving", string(plan.Interleave) + turnText(plan)},
		{"looks", "after " + ints(a.Promise.Looks) + " blocks"},
		{"seed", fmt.Sprint(h.Seed)},
		{"alpha, margin", fmt.Sprintf("%g, ±%.3g%%", a.Spec.Alpha, 100*a.Spec.Margin)},
		{"first look that can mark", a.Promise.firstLook()},
	}
	if plan.Budget > 0 {
		p.Plan = append(p.Plan, keyValue{"budget", plan.Budget.String()})
	}
	for _, arm := range a.Arms {
		p.Environment = append(p.Environment, keyValue{armTitle(arm), armLine(arm)})
	}
	for _, s := range a.Services {
		name, what, _ := strings.Cut(serviceLine(s), ": ")
		p.Environment = append(p.Environment, keyValue{name, what})
	}
	p.Environment = append(p.Environment, keyValue{"machine", hostLine(h, a.Audit)}, keyValue{"measured", a.planLine()})
	if l := a.absoluteLine(); l != "" {
		p.Environment = append(p.Environment, keyValue{"absolute figures", l})
	}
}

func (p Promise) firstLook() string {
	if p.MinBlocks == 0 {
		return "none"
	}
	return fmt.Sprintf("after %d blocks", p.MinBlocks)
}

func turnText(p spec.Plan) string {
	if p.Interleave == spec.Turns {
		return fmt.Sprintf(" of %v", p.Turn)
	}
	return ""
}
