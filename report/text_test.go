package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// No line is wider than the terminal, at any width that people use, and none
// has spaces at its end.
func TestTextFitsTheTerminal(t *testing.T) {
	for name, a := range analyses() {
		for _, width := range []int{60, 72, 80, 100, 120, 200} {
			for _, detail := range []bool{false, true} {
				if detail && name == "many" {
					continue
				}
				var b bytes.Buffer
				check(t, Write(&b, "text", a, RenderOptions{Width: width, Detail: detail}))
				for _, line := range strings.Split(b.String(), "\n") {
					if w := runes.StringWidth(line); w > width {
						t.Errorf("%s at %d: %d columns: %s", name, width, w, line)
					}
					if strings.TrimRight(line, " ") != line {
						t.Errorf("%s at %d: spaces at the end: %q", name, width, line)
					}
				}
			}
		}
	}
}

// Colour adds escape sequences and changes nothing else; without it there is
// none, whatever the names hold.
func TestColorIsOnlyAdded(t *testing.T) {
	sequence := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, a := range analyses() {
		var plain, coloured bytes.Buffer
		check(t, Write(&plain, "text", a, RenderOptions{Width: 100}))
		check(t, Write(&coloured, "text", a, RenderOptions{Width: 100, Color: true}))
		if strings.ContainsRune(plain.String(), '\x1b') {
			t.Errorf("%s: an escape sequence without colour", name)
		}
		if got := sequence.ReplaceAllString(coloured.String(), ""); got != plain.String() {
			t.Errorf("%s: colour changes the text", name)
		}
		if !sequence.MatchString(coloured.String()) {
			t.Errorf("%s: no colour", name)
		}
	}
}

// In ASCII nothing of the renderer's own is beyond it.
func TestASCII(t *testing.T) {
	for name, a := range analyses() {
		if name == "hostile" {
			continue // its names are not ASCII, and stay as they are
		}
		var b bytes.Buffer
		check(t, Write(&b, "text", a, RenderOptions{Width: 80, ASCII: true, Detail: name != "many"}))
		for _, r := range b.String() {
			if r > unicode.MaxASCII {
				t.Fatalf("%s: %q", name, r)
			}
		}
	}
}

func TestWriteRefusesUnknownFormats(t *testing.T) {
	err := Write(&bytes.Buffer{}, "pdf", analyses()["one"], RenderOptions{})
	if err == nil || !strings.Contains(err.Error(), `"pdf"`) || !strings.Contains(err.Error(), "markdown") {
		t.Errorf("%v", err)
	}
}

// A comment stays within its limit, and says what was cut: rows that did not
// move go first.
func TestMarkdownLimit(t *testing.T) {
	a := analyses()["many"]
	for _, limit := range []int{CommentLimit, 20000, 5000, 1000, 200} {
		var b bytes.Buffer
		check(t, Write(&b, "markdown", a, RenderOptions{Limit: limit}))
		doc := b.String()
		if b.Len() > limit || !utf8.ValidString(doc) {
			t.Errorf("limit %d: %d bytes", limit, b.Len())
		}
		if limit >= 1000 && !strings.Contains(doc, "**regressed**") {
			t.Errorf("limit %d: the row that moved is cut", limit)
		}
		if limit < 30000 && !strings.Contains(doc, "left out") && !strings.Contains(doc, "cut:") {
			t.Errorf("limit %d: nothing says that rows are cut:\n%s", limit, doc)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("\x1b[31m\u202e\n\u2028 x")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range plain(s) {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("%q holds %q", plain(s), r)
			}
		}
	})
}

func FuzzEscape(f *testing.F) {
	f.Add("a|b <i> @x #1 https://x www.x.y GH-1 :tada: ![x](y)")
	f.Fuzz(func(t *testing.T, s string) {
		// Entities apart, nothing is left that markdown, HTML or GitHub obeys.
		left := regexp.MustCompile(`&#[0-9]+;`).ReplaceAllString(escape(s), "\x01")
		if strings.ContainsAny(left, special+"\n") {
			t.Errorf("%q", left)
		}
		for _, bad := range []string{"://", "www.", "gh-"} {
			if strings.Contains(strings.ToLower(left), bad) {
				t.Errorf("%q holds %s", left, bad)
			}
		}
	})
}

// Cutting and wrapping never exceed the width, nor lose a word.
func FuzzWrap(f *testing.F) {
	f.Add("a long text with words and 日本語 in it", 12)
	f.Fuzz(func(t *testing.T, s string, width int) {
		s = plain(s)
		if width < 4 || width > 200 || !utf8.ValidString(s) {
			return
		}
		var words []string
		for _, l := range wrap(s, width, true) {
			if w := runes.StringWidth(l); w > width {
				t.Errorf("%d columns of %d: %q", w, width, l)
			}
			words = append(words, strings.Fields(l)...)
		}
		if got := strings.Join(words, ""); got != strings.Join(strings.Fields(s), "") {
			t.Errorf("%q became %q", s, got)
		}
		if w := runes.StringWidth(cut(s, width, "~")); w > width {
			t.Errorf("cut to %d columns of %d", w, width)
		}
	})
}
