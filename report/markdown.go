package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CommentLimit is the size of a comment on GitHub, in characters, and
// SummaryLimit that of a job summary, in bytes.
const (
	CommentLimit = 65536
	SummaryLimit = 1 << 20
)

// writeMarkdown renders for a comment or a job summary: what moved first,
// the rest folded. Where the whole is too long, rows that did not move are
// cut first, and the report says how many.
func writeMarkdown(w io.Writer, a *Analysis, o RenderOptions) error {
	limit := o.Limit
	if limit <= 0 {
		limit = CommentLimit
	}
	m := &markdown{a: a, rest: 1 << 30, shown: 1 << 30, most: 4 * limit, notes: a.allWarnings()}
	m.sort()
	doc := m.document()
	for utf8.RuneCountInString(doc) > limit || (o.Limit > 0 && len(doc) > limit) {
		if m.rest > 0 {
			m.rest = min(m.rest, len(a.Rows)) / 2
		} else if m.shown > 1 {
			m.shown = min(m.shown, len(a.Rows)+len(a.Gates)+len(a.Warnings)) / 2
		} else {
			doc = truncate(doc, limit)
			break
		}
		doc = m.document()
	}
	_, err := io.WriteString(w, doc)
	return err
}

func truncate(doc string, limit int) string {
	const tail = "\n\n(cut: the report is longer than its limit)\n"
	for len(doc) > max(limit-len(tail), 0) {
		_, n := utf8.DecodeLastRuneInString(doc)
		doc = doc[:len(doc)-n]
	}
	return doc + tail
}

type markdown struct {
	a     *Analysis
	b     strings.Builder
	rest  int // rows that did not move, at most
	shown int // moved rows, gates and warnings, at most, each
	most  int // bytes beyond which the document is too long, whatever follows
	notes []string

	moved, absent, still []lineOf
	told                 map[rowKey]string // reasons of the absent lines
}

// sort tells the lines apart by where they are shown.
func (m *markdown) sort() {
	m.told = m.a.toldReasons()
	for _, s := range m.a.sections() {
		for _, e := range s.lines {
			l := lineOf{s, e}
			switch {
			case e.absent() != nil:
				m.absent = append(m.absent, l)
			case e.marked():
				m.moved = append(m.moved, l)
			default:
				m.still = append(m.still, l)
			}
		}
	}
}

// tooLong ends a list in a document that will not be used as it is: a result
// from elsewhere can have thousands of long texts.
func (m *markdown) tooLong() bool { return m.b.Len() > m.most }

func (m *markdown) document() string {
	m.b.Reset()
	m.heading()
	m.table(m.moved, m.shown)
	m.broken(m.absent)
	m.gates()
	m.warnings()
	m.outputs()
	if len(m.still) > 0 {
		m.fold(restTitle(m.still), func() { m.table(m.still, m.rest) })
	}
	m.fold("How and where it was measured", func() {
		for _, l := range m.a.environmentLines() {
			m.item(l)
		}
	})
	return m.b.String()
}

type lineOf struct {
	section section
	entry   entry
}

// restTitle counts the rows that are folded.
func restTitle(lines []lineOf) string {
	counts, total := map[Verdict]int{}, 0
	for _, l := range lines {
		for _, r := range l.entry.rows() {
			if r.Judged {
				counts[r.Verdict]++
				total++
			}
		}
	}
	var parts []string
	for _, v := range sortedKeys(counts) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
	}
	return fmt.Sprintf("%s not marked: %s", count(total, "row"), strings.Join(parts, ", "))
}

func (e entry) marked() bool {
	for _, r := range e.rows() {
		if r.Marked {
			return true
		}
	}
	return false
}

func (m *markdown) heading() {
	name := m.a.Spec.Name
	if name == "" {
		name = "benchmark"
	}
	fmt.Fprintf(&m.b, "### %s: %s\n\n", escape(name), m.headline())
	if m.a.Partial != "" {
		fmt.Fprintf(&m.b, "**Partial run:** %s\n\n", escape(brief(m.a.Partial)))
	}
	if m.a.Header.Same {
		m.b.WriteString("Same-code run: every candidate is the baseline again, so any mark is a false alarm.\n\n")
	}
}

// headline is the outcome in a few words.
func (m *markdown) headline() string {
	counts := m.a.verdictCounts()
	var parts []string
	for _, v := range []Verdict{Regressed, Improved, Failed, Incomparable, New, Removed} {
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	if counts[Regressed]+counts[Improved] == 0 {
		parts = append([]string{"nothing moved"}, parts...)
	}
	return fmt.Sprintf("%s (%s)", strings.Join(parts, ", "), strings.ReplaceAll(string(m.a.Outcome), "_", " "))
}

func (a *Analysis) verdictCounts() map[Verdict]int {
	out := map[Verdict]int{}
	for _, r := range a.Rows {
		if r.Judged {
			out[r.Verdict]++
		}
	}
	return out
}

func (m *markdown) table(lines []lineOf, limit int) {
	if len(lines) == 0 {
		return
	}
	cut := 0
	if len(lines) > limit {
		cut, lines = len(lines)-limit, lines[:limit]
	}
	many := len(m.a.Arms) > 2
	if len(lines) > 0 {
		head := []string{"Scenario", "Metric", escape(armTitle(m.a.Baseline)), "Candidate", "Ratio", "Noise", "Verdict"}
		if !many {
			head[3] = escape(armTitle(m.a.Arms[1]))
		}
		m.row(head)
		m.b.WriteString("|---|---|--:|--:|--:|--:|---|\n")
	}
	for _, l := range lines {
		if m.tooLong() {
			break
		}
		for _, r := range l.entry.rows() {
			if r.Judged {
				m.judged(r, many)
			}
		}
	}
	if cut > 0 {
		fmt.Fprintf(&m.b, "\n%s left out here: the report would be too long. result.json has them all.\n", count(cut, "row"))
	}
	m.b.WriteByte('\n')
}

func (m *markdown) judged(r *Row, many bool) {
	sc := scaleFor(r.Unit, r.Base.Value, r.Head.Value)
	head := sc.with(r.Head.Value)
	if many {
		head = escape(armTitle(m.a.arm(r.Head.Arm))) + ": " + head
	}
	ratio := showRatio(r.Ratio) + " (" + showChange(r.Change) + ")"
	verdict := m.a.verdictWord(r)
	if r.Marked {
		ratio, verdict = "**"+ratio+"**", "**"+verdict+"**"
	}
	if len(r.Warnings) > 0 {
		verdict += " (warning)"
	}
	m.row([]string{escape(shorten(r.Scenario, 80)), escape(metricTitle(r.Metric)), sc.with(r.Base.Value), head, ratio, showNoise(r.Noise), verdict})
}

func (m *markdown) row(cells []string) {
	m.b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func (m *markdown) broken(lines []lineOf) {
	if len(lines) == 0 {
		return
	}
	m.b.WriteString("**Without a verdict**\n\n")
	for i, l := range lines {
		if i == m.shown || m.tooLong() {
			m.item(fmt.Sprintf("and %d more", len(lines)-i))
			break
		}
		r := l.entry.absent()
		who := ""
		if len(m.a.Arms) > 2 {
			who = " (" + r.Head.Arm + ")"
		}
		m.item(fmt.Sprintf("%s%s: %s", r.Scenario, who, join(string(r.Verdict), brief(r.Reason))))
	}
	m.b.WriteByte('\n')
}

func (m *markdown) gates() {
	if len(m.a.Gates) == 0 {
		return
	}
	m.b.WriteString("**Gates**\n\n")
	var rest []GateResult
	passed := 0
	for _, g := range m.a.gateGroups() {
		rest = append(rest, g.rest...)
		passed += g.passed
	}
	for i, g := range rest {
		if i == m.shown || m.tooLong() {
			m.item(fmt.Sprintf("and %d more", len(rest)-i))
			break
		}
		m.item(string(g.Level) + ": " + m.a.gateLine(g, m.told))
	}
	if passed > 0 {
		m.item(fmt.Sprintf("pass: %s", count(passed, "row")))
	}
	m.b.WriteByte('\n')
}

func (m *markdown) warnings() {
	if len(m.notes) == 0 {
		return
	}
	m.b.WriteString("**Warnings**\n\n")
	for i, w := range m.notes {
		if i == m.shown || m.tooLong() {
			m.item(fmt.Sprintf("and %d more", len(m.notes)-i))
			break
		}
		m.item(w)
	}
	m.b.WriteByte('\n')
}

// maxItem is the longest text of one line: a server's last words can be long.
const maxItem = 2000

func (m *markdown) item(s string) { m.b.WriteString("- " + escape(shorten(s, maxItem)) + "\n") }

func (m *markdown) fold(summary string, body func()) {
	fmt.Fprintf(&m.b, "<details><summary>%s</summary>\n\n", escape(summary))
	body()
	m.b.WriteString("\n</details>\n\n")
}

// special are the characters that mean something in GitHub's markdown,
// anywhere in a line. They are written as entities, since a backslash does
// not keep GitHub from linking mentions and issues.
const special = "@#<>&|`\\\"*_[]()~!$"

// EscapeMarkdown makes a text from outside mean only itself in a comment or a
// summary, on one line.
func EscapeMarkdown(s string) string { return escape(s) }

// escape makes a text from outside mean only itself in markdown: no markup,
// mention, reference, link, emoji or HTML.
func escape(s string) string {
	rs := []rune(plain(s))
	var b strings.Builder
	for i, r := range rs {
		// A colon makes a scheme or an emoji where something follows at once;
		// a bare address becomes a link without any mark, and GH-1 an issue.
		joins := r == ':' && i+1 < len(rs) && rs[i+1] != ' '
		www := r == '.' && i >= 3 && strings.EqualFold(string(rs[i-3:i]), "www")
		issue := r == '-' && i >= 2 && strings.EqualFold(string(rs[i-2:i]), "gh")
		if joins || www || issue || strings.ContainsRune(special, r) {
			b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
			// GitHub looks for mentions and issues once entities are characters
			// again: a space of no width keeps the mark from the name.
			if (r == '@' || r == '#' || issue) && i+1 < len(rs) && rs[i+1] != ' ' {
				b.WriteString("&#8203;")
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
