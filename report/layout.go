package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// armTitle is what an arm is called in a column head: its label as it is, or
// its name with a capital.
func armTitle(a journal.Arm) string {
	if a.Label != "" {
		return shorten(plain(a.Label), 24)
	}
	rs := []rune(plain(a.Name))
	if len(rs) > 0 {
		rs[0] = unicode.ToUpper(rs[0])
	}
	return shorten(string(rs), 24)
}

func (a *Analysis) arm(name string) journal.Arm {
	for _, arm := range a.Arms {
		if arm.Name == name {
			return arm
		}
	}
	return journal.Arm{Name: name}
}

// entry is the rows of one scenario and one candidate that share a line of
// the main table.
type entry struct {
	scenario string
	name     string
	matrix   []spec.Axis
	main     *Row // of the table's metric; nil where it was not measured
	cpu      *Row // cpu_per_request
}

// rows calls the line's rows in the order in which it shows them.
func (e entry) rows() []*Row { return compact(e.main, e.cpu) }

func compact(rows ...*Row) []*Row {
	return slices.DeleteFunc(rows, func(r *Row) bool { return r == nil })
}

// absent is the row that says why the line has no figures, if it has
// none.
func (e entry) absent() *Row {
	rows := e.rows()
	for _, r := range rows {
		if r.Verdict == "" || r.Verdict.measured() {
			return nil
		}
	}
	return rows[0]
}

// section is one table: one metric, one candidate, and either the scenarios
// without a matrix or the points of one.
type section struct {
	metric string
	unit   string
	head   journal.Arm // the candidate
	sweep  string      // the scenario whose matrix it shows; "" for the others
	lines  []entry
}

// sections arranges the judged rows in tables: throughput first, with CPU per
// request on the same line, then one table for each further metric.
func (a *Analysis) sections() []section {
	var out []section
	find := func(metric, unit string, head string, sweep string) *section {
		for i := range out {
			if s := &out[i]; s.metric == metric && s.head.Name == head && s.sweep == sweep {
				return s
			}
		}
		out = append(out, section{metric: metric, unit: unit, head: a.arm(head), sweep: sweep})
		return &out[len(out)-1]
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		sweep := ""
		if len(r.Matrix) > 0 {
			sweep = r.Name
		}
		metric, unit := a.tableOf(r)
		if metric == "" {
			continue
		}
		s := find(metric, unit, r.Head.Arm, sweep)
		k := slices.IndexFunc(s.lines, func(e entry) bool { return e.scenario == r.Scenario })
		if k < 0 {
			s.lines = append(s.lines, entry{scenario: r.Scenario, name: r.Name, matrix: r.Matrix})
			k = len(s.lines) - 1
		}
		if r.Metric == metric {
			s.lines[k].main = r
		} else {
			s.lines[k].cpu = r
		}
	}
	return out
}

// tableOf names the table that a row stands in: that of its own metric, but
// CPU per request stands beside the throughput of its scenario, if one of the
// two is judged.
func (a *Analysis) tableOf(r *Row) (metric, unit string) {
	t := a.throughput(r.Scenario, r.Head.Arm)
	beside := t != "" && (a.judges(r, t) || a.judges(r, "cpu_per_request"))
	switch {
	case r.Metric == "cpu_per_request" && beside:
		return t, "1/s"
	case r.Judged, r.Metric == t && beside:
		return r.Metric, r.Unit
	}
	return "", ""
}

// judges reports whether a metric is judged in the scenario of a row.
func (a *Analysis) judges(r *Row, metric string) bool {
	for i := range a.Rows { // a row is large: it is not copied
		if o := &a.Rows[i]; o.Scenario == r.Scenario && o.Head.Arm == r.Head.Arm && o.Metric == metric && o.Judged {
			return true
		}
	}
	return false
}

func (a *Analysis) throughput(scenario, head string) string {
	found := ""
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.Scenario == scenario && r.Head.Arm == head && (r.Metric == "rps" || r.Metric == "msgs") && (found == "" || r.Judged) {
			found = r.Metric
		}
	}
	return found
}

// reachable is how many times the blocks of its plan a row may take to be
// settled before the number of blocks is no advice any more.
const reachable = 10

// outOfReach reports whether no plan of a like size would settle the row.
func (a *Analysis) outOfReach(r *Row) bool {
	most := reachable * a.Spec.Plan.Blocks.Max
	return r.Verdict == Unsure && r.Reason == "" && most > 0 && (r.MoreBlocks == 0 || r.Blocks+r.MoreBlocks > most)
}

// verdictWord is the verdict with its estimate of what would settle it.
func (a *Analysis) verdictWord(r *Row) string {
	switch {
	case r == nil || r.Verdict == "":
		return ""
	case a.outOfReach(r):
		return "unsure, out of reach"
	case r.Verdict == Unsure && r.MoreBlocks > 0:
		return fmt.Sprintf("unsure, +%d", r.MoreBlocks)
	}
	return string(r.Verdict)
}

// verdictWords joins the verdicts of a line: one word where they agree.
func (a *Analysis) verdictWords(rows []*Row) string {
	var words []string
	for _, r := range rows {
		if w := a.verdictWord(r); w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(slices.Compact(words), " / ")
}

func columnValues(lines []entry, of func(*Row) []float64, pick func(entry) *Row) []float64 {
	var out []float64
	for _, e := range lines {
		if r := pick(e); r != nil {
			out = append(out, of(r)...)
		}
	}
	return out
}

func bothValues(r *Row) []float64 { return []float64{r.Base.Value, r.Head.Value} }

// busyPair shows how busy the servers of both sides were.
func busyPair(r *Row) string {
	b, okB := r.Base.Metrics["busy"]
	h, okH := r.Head.Metrics["busy"]
	if !okB && !okH {
		return ""
	}
	one := func(v float64, ok bool) string {
		if !ok {
			return "n/a"
		}
		return fmt.Sprintf("%.0f%%", math.Round(100*v))
	}
	return one(b, okB) + " / " + one(h, okH)
}

// moved are the marked rows, the worst first.
func (a *Analysis) moved() []*Row {
	var out []*Row
	for i := range a.Rows {
		if a.Rows[i].Marked {
			out = append(out, &a.Rows[i])
		}
	}
	slices.SortStableFunc(out, func(x, y *Row) int {
		switch {
		case x.Worse > y.Worse:
			return -1
		case x.Worse < y.Worse:
			return 1
		}
		return 0
	})
	return out
}

// gateGroup is one threshold with what it came to.
type gateGroup struct {
	first   GateResult
	passed  int
	unknown int          // of the passed: the noise is not known yet, and the policy lets that pass
	rest    []GateResult // warned, failed, undecided, or decided by a policy
}

// passedText says how many rows a threshold passed.
func (g gateGroup) passedText() string {
	s := count(g.passed, "row")
	if g.unknown > 0 {
		s += fmt.Sprintf(", of which the noise of %d is not known yet after so few blocks", g.unknown)
	}
	return s
}

// gateGroups folds the rows that a threshold passed into one line, and the
// rows of one scenario that a policy decided for the same reason.
func (a *Analysis) gateGroups() []gateGroup {
	var out []gateGroup
	for _, g := range a.Gates {
		k := slices.IndexFunc(out, func(o gateGroup) bool { return o.first.Threshold == g.Threshold })
		if k < 0 {
			out = append(out, gateGroup{first: g})
			k = len(out) - 1
		}
		if g.Level == spec.Pass && g.Threshold >= 0 {
			out[k].passed++
			out[k].unknown += map[bool]int{true: 1}[g.Policy != ""]
			continue
		}
		if g.Threshold < 0 {
			same := func(o GateResult) bool {
				return o.Scenario == g.Scenario && o.Arm == g.Arm && o.Policy == g.Policy && o.Level == g.Level && o.Reason == g.Reason
			}
			if i := slices.IndexFunc(out[k].rest, same); i >= 0 {
				out[k].rest[i].Metric = "" // of all its metrics
				continue
			}
		}
		out[k].rest = append(out[k].rest, g)
	}
	return out
}
