package spec

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// WriteText writes diagnostics for people: each with its place, its source
// line and a mark under what it is about.
//
//	bench.yaml:12:3: plan: unknown key "widnow" [unknown-key]
//	   12 |   widnow: 1s
//	      |   ^~~~~~
//	      = did you mean "window"?
func WriteText(w io.Writer, diags []Diagnostic) error {
	return WriteTextStyled(w, diags, func(_, s string) string { return s })
}

// WriteTextStyled is WriteText with a hook for colour: paint is called with
// a role ("place", "error", "warning", "mark", "hint" or "gutter") and the
// text to paint.
func WriteTextStyled(w io.Writer, diags []Diagnostic, paint func(role, s string) string) error {
	b := bufio.NewWriter(w)
	for _, d := range diags {
		word := ""
		if d.Severity == Warning {
			word = paint("warning", "warning: ")
		}
		role := string(d.Severity)
		fmt.Fprintf(b, "%s %s%s %s\n", paint("place", d.place()+":"), word, paint(role, d.Message), paint("gutter", "["+d.Kind+"]"))
		gutter := d.excerpt(b, paint)
		if d.Hint != "" {
			fmt.Fprintf(b, "%s %s\n", paint("gutter", gutter+"="), paint("hint", d.Hint))
		}
	}
	return b.Flush()
}

// place is file:line:column, as far as they are known.
func (d Diagnostic) place() string {
	if d.Line == 0 {
		return d.File
	}
	return fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
}

// maxExcerpt is how many columns of a source line are shown.
const maxExcerpt = 110

// excerpt writes the source line with the mark, and returns the gutter that
// a hint below goes on with.
func (d Diagnostic) excerpt(w io.Writer, paint func(role, s string) string) string {
	number := fmt.Sprintf("%5d ", d.Line)
	blank := strings.Repeat(" ", len(number))
	if d.Line == 0 || d.Text == "" {
		return blank
	}
	line, lead, width := window([]rune(d.Text), d.Column-1, max(1, d.EndColumn-d.Column))
	mark := "^" + strings.Repeat("~", max(0, width-1))
	fmt.Fprintf(w, "%s%s\n", paint("gutter", number+"| "), line)
	fmt.Fprintf(w, "%s%s%s\n", paint("gutter", blank+"| "), strings.Repeat(" ", lead), paint("mark", mark))
	return blank
}

// window cuts a line to what fits around runes [at, at+n), and returns it
// with the columns before the mark and the columns that the mark takes, in
// cells of a terminal: a tab is one cell, a wide character two.
func window(line []rune, at, n int) (text string, lead, width int) {
	at = min(at, len(line))
	n = min(n, max(1, len(line)-at))
	from := 0
	if at > maxExcerpt/2 && len(line) > maxExcerpt {
		from = at - maxExcerpt/3
	}
	to := min(len(line), from+maxExcerpt)
	n = max(1, min(n, to-at))
	prefix, suffix := "", ""
	if from > 0 {
		prefix = "…"
	}
	if to < len(line) {
		suffix = "…"
	}
	shown := prefix + clean(line[from:to]) + suffix
	return strings.TrimRight(shown, " "), cells(prefix) + cells(clean(line[from:at])), cells(clean(line[at:min(at+n, len(line))]))
}

// clean replaces what would move the cursor of a terminal.
func clean(r []rune) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == '\ufeff' {
			return '\ufffd'
		}
		return r
	}, string(r))
}

// cells is the width of a text in a terminal, whatever the locale is.
func cells(s string) int {
	c := runewidth.Condition{EastAsianWidth: false}
	return c.StringWidth(s)
}
