package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"
)

// ours are the elements that the markdown of a report makes, and no others.
var ours = []string{"h3", "p", "strong", "ul", "li", "details", "summary", "pre", "table", "thead", "tbody", "tr", "th", "td"}

// rendered is what a GitHub-like renderer makes of a report: its elements, and
// the text of each table's cells, line by line.
type rendered struct {
	elements []string
	lines    [][]string
	text     string
}

func renderMarkdown(t *testing.T, doc []byte) rendered {
	t.Helper()
	// GitHub keeps harmless HTML, so the renderer keeps all: what is harmless
	// is what the test is about.
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	var b bytes.Buffer
	check(t, md.Convert(doc, &b))
	var out rendered
	cell := -1
	z := nethtml.NewTokenizer(&b)
	for kind := z.Next(); kind != nethtml.ErrorToken; kind = z.Next() {
		tok := z.Token()
		switch {
		case kind == nethtml.TextToken:
			tok.Data = strings.ReplaceAll(tok.Data, "\u200b", "") // no reader sees it
			out.text += tok.Data
			if cell >= 0 {
				line := out.lines[len(out.lines)-1]
				line[cell] += tok.Data
			}
		case kind == nethtml.StartTagToken || kind == nethtml.SelfClosingTagToken:
			out.elements = append(out.elements, tok.Data)
			switch tok.Data {
			case "tr":
				out.lines = append(out.lines, nil)
			case "td", "th":
				k := len(out.lines) - 1
				out.lines[k] = append(out.lines[k], "")
				cell = len(out.lines[k]) - 1
			}
		case tok.Data == "td" || tok.Data == "th":
			cell = -1
		}
	}
	return out
}

// Rendered, a report is made of our elements only, whatever the names hold; no
// name becomes a link, and every table has a line for each judged row, with
// the row's name as it is.
func TestMarkdownRendered(t *testing.T) {
	for name, a := range analyses() {
		got := renderMarkdown(t, render(t, "summary", a))
		for _, e := range got.elements {
			if !slices.Contains(ours, e) {
				t.Errorf("%s: <%s>", name, e)
			}
		}
		var want, shown []string
		absent := 0
		for _, s := range a.sections() {
			for _, e := range s.lines {
				if e.absent() != nil {
					absent++
					continue
				}
				for _, r := range e.rows() {
					if r.Judged {
						want = append(want, shorten(plain(r.Scenario), 80)+" "+metricTitle(r.Metric))
					}
				}
			}
		}
		for _, l := range got.lines {
			if len(l) != 7 {
				t.Errorf("%s: %d cells in %q", name, len(l), l)
			} else if l[0] != "Scenario" {
				shown = append(shown, l[0]+" "+l[1])
			}
		}
		slices.Sort(want)
		slices.Sort(shown)
		if !slices.Equal(shown, want) {
			t.Errorf("%s: rows %q, want %q", name, shown, want)
		}
		if absent > 0 && !strings.Contains(got.text, "Without a verdict") {
			t.Errorf("%s: nothing tells of the rows without a verdict", name)
		}
	}
}

// What a server printed cannot end the block that shows it.
func TestMarkdownOfOutputs(t *testing.T) {
	const printed = "</pre><script>alert(1)</script>\n\n# no heading\n```\n@user #12 https://evil.example <!-- x"
	w := newWorld("a")
	w.edit = failing("the server ended in mid-run: exit status 3\n  the end of its output:\n    " + strings.ReplaceAll(printed, "\n", "\n    "))
	a := analyze(t, w)
	got := renderMarkdown(t, render(t, "markdown", a))
	for _, e := range got.elements {
		if !slices.Contains(ours, e) {
			t.Errorf("<%s>", e)
		}
	}
	for l := range strings.Lines(printed) {
		if !strings.Contains(got.text, strings.TrimSpace(l)) {
			t.Errorf("%q is not shown in:\n%s", l, got.text)
		}
	}
	if n := strings.Count(got.text, "# no heading"); n != 1 {
		t.Errorf("the output is shown %d times", n)
	}
}
