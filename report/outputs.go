package report

import (
	"fmt"
	"slices"
	"strings"
)

// The bounds of the outputs that a report holds, of the lines of each, and of
// the columns of each line; the run's logs have them all.
const (
	maxOutputs     = 3
	maxOutputLines = 20
	maxOutputLine  = 400
)

// output is what a program printed before it failed.
type output struct {
	what  string   // the failure, in one line
	lines []string // harmless, and with their indentation
}

// outputs are the reasons of more than one line, each text once: tables and
// gates show their first lines only.
func (a *Analysis) outputs() []output {
	reasons := []string{a.Partial}
	for _, r := range a.Rows {
		reasons = append(reasons, r.DropReasons...)
		if len(r.DropReasons) == 0 {
			reasons = append(reasons, r.Reason)
		}
	}
	var out []output
	for _, s := range reasons {
		o := newOutput(s)
		same := func(x output) bool { return slices.Equal(x.lines, o.lines) }
		if len(o.lines) > 0 && !slices.ContainsFunc(out, same) {
			out = append(out, o)
		}
	}
	return out
}

func newOutput(reason string) output {
	first, rest, _ := strings.Cut(strings.TrimSpace(reason), "\n")
	o := output{what: shorten(plain(first), maxOutputLine)}
	if strings.TrimSpace(rest) == "" {
		return o
	}
	lines := strings.Split(strings.TrimRight(rest, "\n"), "\n")
	if over := len(lines) - maxOutputLines; over > 0 {
		lines = append(lines[:maxOutputLines:maxOutputLines], fmt.Sprintf("(%s more)", count(over, "line")))
	}
	margin := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	for _, l := range lines {
		o.lines = append(o.lines, shorten(plain(strings.TrimPrefix(l, strings.Repeat(" ", margin))), maxOutputLine))
	}
	return o
}

// outputs writes them below the warnings, as they were printed.
func (t *textWriter) outputs() {
	all := t.a.outputs()
	if len(all) == 0 {
		return
	}
	t.title("Failed")
	for i, o := range all {
		if i == maxOutputs {
			t.line(nil, "  ", "    ", fmt.Sprintf("and %d more: see logs/ of the run", len(all)-i))
			break
		}
		t.line(t.doubt, "  ", "    ", o.what)
		for _, l := range o.lines {
			t.verbatim("    ", l)
		}
	}
}

// verbatim writes a line that keeps its spaces; what does not fit goes on in
// the next line.
func (t *textWriter) verbatim(margin, s string) {
	room := t.o.Width - len(margin)
	for t.o.Width > 0 && runes.StringWidth(s) > max(room, 8) {
		head := runes.Truncate(s, max(room, 8), "")
		t.b.WriteString(margin + strings.TrimRight(head, " ") + "\n")
		s = s[len(head):]
	}
	t.b.WriteString(strings.TrimRight(margin+s, " ") + "\n")
}

// outputs writes them as preformatted text, in which nothing is markup.
func (m *markdown) outputs() {
	all := m.a.outputs()
	for i, o := range all {
		if i == min(maxOutputs, m.shown) {
			m.item(fmt.Sprintf("and %d more failures", len(all)-i))
			break
		}
		m.fold(o.what, func() {
			m.b.WriteString("<pre>\n")
			for _, l := range o.lines {
				m.b.WriteString(escape(l) + "\n")
			}
			m.b.WriteString("</pre>\n")
		})
	}
}
