package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// yaml.v3 says of an error only the line, and sometimes that of the
// construct around it. What follows finds the place and says it in words
// that help someone who writes a bench.yaml.

// syntaxCase explains one of yaml.v3's errors. explain returns the place,
// the width of the mark, a message and a hint.
type syntaxCase struct {
	contains string
	explain  func(x *syntaxFault) (p pos, width int, msg, hint string)
}

var syntaxCases = []syntaxCase{
	{"mapping values are not allowed", (*syntaxFault).colon},
	{"cannot start any token", (*syntaxFault).badStart},
	{"tab character", (*syntaxFault).badStart},
	{"did not find expected ',' or", (*syntaxFault).flow},
	{"did not find expected node content", (*syntaxFault).flow},
	{"unexpected end of stream", (*syntaxFault).openQuote},
	{"unexpected document indicator", (*syntaxFault).openQuote},
	{"unknown anchor", (*syntaxFault).anchor},
	{"did not find expected comment or line break", (*syntaxFault).block},
	{"unknown escape character", (*syntaxFault).escape},
	{"did not find expected hexdecimal number", (*syntaxFault).escape},
	{"could not find expected ':'", (*syntaxFault).noColon},
	{"did not find expected key", (*syntaxFault).indent},
	{"did not find expected '-' indicator", (*syntaxFault).indent},
	{"did not find expected <document start>", (*syntaxFault).indent},
	{"indentation indicator", (*syntaxFault).block},
	{"block sequence entries are not allowed", (*syntaxFault).dash},
	{"exceeded max depth", (*syntaxFault).depth},
	{"did not find expected alphabetic or numeric character", (*syntaxFault).star},
}

var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

// syntaxFault is an error of yaml.v3 and the file that it is about.
type syntaxFault struct {
	d    *decoder
	msg  string // without the line
	line int    // as reported; 0 where none is
}

// syntaxError reports that the file is not YAML.
func (d *decoder) syntaxError(err error) {
	x := &syntaxFault{d: d, msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(x.msg); m != nil {
		x.line, _ = strconv.Atoi(m[1])
		x.msg = x.msg[len(m[0]):]
	}
	for _, c := range syntaxCases {
		if strings.Contains(x.msg, c.contains) {
			p, width, msg, hint := c.explain(x)
			d.errorAt(p, width, kindSyntax, msg, hint)
			return
		}
	}
	p, width := x.text(x.at())
	d.errorAt(p, width, kindSyntax, "not valid YAML: "+x.msg, "")
}

// at is the reported line, or the first.
func (x *syntaxFault) at() int { return min(max(x.line, 1), max(1, len(x.d.src.lines))) }

// text is the place of what a line has after its indentation.
func (x *syntaxFault) text(line int) (pos, int) {
	s := x.d.src.line(line)
	trimmed := strings.TrimLeft(s, " \t")
	return pos{line, runes(s) - runes(trimmed) + 1}, max(1, runes(strings.TrimRight(trimmed, " ")))
}

// colon: a second ": " on a line, or a line that is indented too deep.
func (x *syntaxFault) colon() (pos, int, string, string) {
	line := x.at()
	s := x.d.src.line(line)
	first := strings.Index(s, ": ")
	if first >= 0 && x.glued(line) == 0 {
		if second := indexColon(s[first+2:]); second >= 0 {
			return pos{line, runes(s[:first+2+second]) + 1}, 1, "found a second \": \" on the line",
				"YAML reads \": \" as a key and a value; put the whole value in quotes: " + quotedValue(s, first)
		}
	}
	if above := x.glued(line); above > 0 {
		x.line = above
		return x.noColon()
	}
	p, width := x.text(line)
	return p, width, "this line is indented deeper than the one above, which has a value already",
		"indent it as far as the keys beside it"
}

// glued finds a line above of the form key:value, which YAML takes for the
// start of a text that goes on here; 0 where there is none.
func (x *syntaxFault) glued(line int) int {
	for n := line - 1; n > 0; n-- {
		s := strings.TrimSpace(x.d.src.line(n))
		switch {
		case s == "" || strings.HasPrefix(s, "#"):
		case gluedKey.MatchString(s):
			return n
		default:
			return 0
		}
	}
	return 0
}

var gluedKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*:[^ ]+$`)

// indexColon finds a colon that YAML takes for one after a key.
func indexColon(s string) int {
	if i := strings.Index(s, ": "); i >= 0 {
		return i
	}
	if strings.HasSuffix(s, ":") {
		return len(s) - 1
	}
	return -1
}

// quotedValue shows a line's value in single quotes, if it is short.
func quotedValue(s string, colon int) string {
	val := strings.TrimSpace(s[colon+2:])
	if len(val) > 60 {
		return "'...'"
	}
	return "'" + strings.ReplaceAll(val, "'", "''") + "'"
}

// badStart: a tab, or a value that starts with a character that YAML keeps
// for itself.
func (x *syntaxFault) badStart() (pos, int, string, string) {
	line := x.at()
	for n := line; n >= max(1, line-1); n-- {
		s := x.d.src.line(n)
		indent := s[:len(s)-len(strings.TrimLeft(s, " \t"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 {
			return pos{n, i + 1}, 1, "found a tab in the indentation", "YAML indents with spaces"
		}
		if loc := reserved.FindStringSubmatchIndex(s); loc != nil {
			c := s[loc[2]:loc[3]]
			return pos{n, runes(s[:loc[2]]) + 1}, 1, fmt.Sprintf("a value cannot start with %s", c), "put the value in quotes"
		}
		if i := strings.IndexByte(s, '\t'); i >= 0 {
			return pos{n, runes(s[:i]) + 1}, 1, "found a tab between a key and its value", "write a space"
		}
	}
	p, width := x.text(line)
	return p, width, "found a character that cannot start a value", "put the value in quotes"
}

var reserved = regexp.MustCompile("(?:^|[:,\\[{] *|- +)([@`%|>])")

// openQuote: a quote that is never closed.
func (x *syntaxFault) openQuote() (pos, int, string, string) {
	line := x.at()
	if x.line > len(x.d.src.lines) || x.line >= len(x.d.src.lines)-1 {
		line = 1
	}
	for n := line; n <= len(x.d.src.lines); n++ {
		s := x.d.src.line(n)
		if i := unclosedQuote(s); i >= 0 {
			return openQuoteAt(x.d.src, n, i)
		}
	}
	p, width := x.text(line)
	return p, width, "a quoted value is never closed", ""
}

func openQuoteAt(src *source, line, i int) (pos, int, string, string) {
	s := src.line(line)
	return pos{line, runes(s[:i]) + 1}, 1, fmt.Sprintf("the quote %c that opens here is not closed on its line", s[i]), "close it, or use the other kind of quotes around the value"
}

// unclosedQuote finds a quote on a line that opens a value and does not
// close on the line.
func unclosedQuote(s string) int {
	for i := 0; i < len(s); i++ {
		q := s[i]
		if q != '"' && q != '\'' || !opensToken(s, i) {
			continue
		}
		j := i + 1
		for j < len(s) && s[j] != q {
			if q == '"' && s[j] == '\\' {
				j++
			}
			j++
		}
		if j >= len(s) {
			return i
		}
		i = j
	}
	return -1
}

// anchor: an alias without its anchor.
func (x *syntaxFault) anchor() (pos, int, string, string) {
	_, rest, _ := strings.Cut(x.msg, "'")
	name, _, _ := strings.Cut(rest, "'")
	hint := "a value that starts with * is an alias; put it in quotes if it is none"
	var anchors []string
	for _, m := range anchorRule.FindAllStringSubmatch(x.d.src.text, -1) {
		anchors = append(anchors, m[1])
	}
	if near := Nearest(name, anchors); near != "" {
		hint = fmt.Sprintf("did you mean *%s?", near)
	}
	loc := regexp.MustCompile(`\*` + regexp.QuoteMeta(name) + `(?:[^A-Za-z0-9_-]|$)`).FindStringIndex(x.d.src.text)
	if loc == nil {
		return pos{1, 1}, 1, fmt.Sprintf("there is no anchor &%s", name), hint
	}
	return x.d.src.at(loc[0]), runes(name) + 1, fmt.Sprintf("there is no anchor &%s", name), hint
}

var anchorRule = regexp.MustCompile(`(?:^|[ \t\[{,])&([A-Za-z0-9_-]+)`)

// star: a lone * or &.
func (x *syntaxFault) star() (pos, int, string, string) {
	line := x.at()
	s := x.d.src.line(line)
	if loc := loneStar.FindStringSubmatchIndex(s); loc != nil {
		return pos{line, runes(s[:loc[2]]) + 1}, 1, fmt.Sprintf("a value cannot start with %s", s[loc[2]:loc[3]]), starHint(s[loc[2]:loc[3]])
	}
	p, width := x.text(line)
	return p, width, "a value cannot start with * or &", "put the value in quotes"
}

func starHint(c string) string {
	if c == "*" {
		return "put the value in quotes: '*'"
	}
	return "put the whole value in quotes"
}

var loneStar = regexp.MustCompile(`(?:^|[\s:,\[{])([*&])(?:[^A-Za-z0-9_-]|$)`)

// block: a value that starts with > or |.
func (x *syntaxFault) block() (pos, int, string, string) {
	for _, line := range []int{x.at(), x.at() + 1} {
		s := x.d.src.line(line)
		if loc := bang.FindStringSubmatchIndex(s); loc != nil {
			return pos{line, runes(s[:loc[2]]) + 1}, 1, "a value cannot start with !", "put the value in quotes"
		}
		if loc := blockMark.FindStringSubmatchIndex(s); loc != nil {
			return pos{line, runes(s[:loc[2]]) + 1}, 1, fmt.Sprintf("%s starts a block of text, and the block starts on the next line", s[loc[2]:loc[3]]),
				"put the value in quotes if it is meant to start with " + s[loc[2]:loc[3]]
		}
	}
	p, width := x.text(x.at())
	return p, width, "expected the end of the line after > or |", ""
}

var bang = regexp.MustCompile(`(?:[:,\[{] *|- +)(!)[^ ]* +[|>]`)

var blockMark = regexp.MustCompile(`(?:[:,\[{] *|- +)([|>])`)

// escape: a backslash in double quotes.
func (x *syntaxFault) escape() (pos, int, string, string) {
	for n := x.at(); n <= len(x.d.src.lines); n++ {
		s := x.d.src.line(n)
		if loc := badEscape.FindStringIndex(s); loc != nil {
			return pos{n, runes(s[:loc[0]]) + 1}, 2, fmt.Sprintf("%s means nothing in double quotes", s[loc[0]:loc[1]]), "single quotes keep backslashes as they are"
		}
	}
	p, width := x.text(x.at())
	return p, width, "a backslash means nothing here in double quotes", "single quotes keep backslashes as they are"
}

var badEscape = regexp.MustCompile(`\\[^0abtnvfre "/\\N_LPxuU\t]|\\x[^0-9a-fA-F]|\\x.[^0-9a-fA-F]`)

// noColon: a line that is neither a key nor part of anything.
func (x *syntaxFault) noColon() (pos, int, string, string) {
	line := x.at()
	p, width := x.text(line)
	s := strings.TrimSpace(x.d.src.line(line))
	hint := "if it goes on from the line above, indent it deeper or put the whole value in quotes"
	if i := strings.IndexByte(s, ':'); i > 0 && i+1 < len(s) {
		hint = fmt.Sprintf("write a space after the colon: %s: %s", s[:i], s[i+1:])
	} else if i := strings.IndexByte(s, '='); i > 0 {
		hint = fmt.Sprintf("write %s: %s", strings.TrimSpace(s[:i]), strings.TrimSpace(s[i+1:]))
	}
	return p, width, "expected KEY: VALUE, found " + quote(s), hint
}

// indent: a line whose indentation fits nothing above it.
func (x *syntaxFault) indent() (pos, int, string, string) {
	b := scanBrackets(x.d.src.text)
	if b.extra >= 0 {
		return x.d.src.at(b.extra), 1, fmt.Sprintf("the %c here closes nothing", x.d.src.text[b.extra]), "remove it"
	}
	line := x.firstBad()
	p, width := x.text(line)
	s := strings.TrimSpace(x.d.src.line(line))
	if i := unclosedQuote(x.d.src.line(line)); i >= 0 {
		return openQuoteAt(x.d.src, line, i)
	}
	switch {
	case strings.HasPrefix(s, "\"") || strings.HasPrefix(s, "'"):
		return p, width, "did not expect a quoted value here", "check its indentation, and the quotes of the line above"
	case strings.HasPrefix(s, "-"):
		return p, width, "this entry of a list lines up with nothing above it", "indent all dashes of a list alike"
	case afterQuote.MatchString(s):
		loc := afterQuote.FindStringIndex(x.d.src.line(line))
		if loc != nil {
			return pos{line, runes(x.d.src.line(line)[:loc[1]-1]) + 1}, 1, "did not expect anything after the closing quote",
				"put the whole value in one pair of quotes; inside single quotes, '' stands for one"
		}
	}
	return p, width, "this line is indented like nothing above it", "indent it as far as the keys beside it"
}

var afterQuote = regexp.MustCompile(`: +(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*') *[^ #,}\]]`)

// maxProbe bounds the files that are parsed again to find a line.
const maxProbe = 64 << 10

// firstBad finds the line at which the file stops being YAML: the one after
// the longest run of lines that parses.
func (x *syntaxFault) firstBad() int {
	src := x.d.src
	n := len(src.lines)
	if len(src.text) > maxProbe {
		return min(x.at()+1, n)
	}
	good := func(lines int) bool {
		end := len(src.text)
		if lines < n {
			end = src.lines[lines]
		}
		return parsesYAML(src.text[:end]) == nil
	}
	low, high := 0, n // low lines parse, high lines do not
	for high-low > 1 {
		if mid := (low + high) / 2; good(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	// Prefixes that end inside brackets or quotes do not parse either.
	for k := low + 1; k <= min(low+20, n-1); k++ {
		if good(k) {
			low = k
		}
	}
	for low+1 < n && strings.TrimSpace(src.line(low+1)) == "" {
		low++
	}
	return min(low+1, n)
}

// dash: a list that starts on the line of its key.
func (x *syntaxFault) dash() (pos, int, string, string) {
	line := x.at()
	s := x.d.src.line(line)
	if i := strings.Index(s, ": - "); i >= 0 {
		return pos{line, runes(s[:i+2]) + 1}, 1, "a list with dashes cannot start on the line of its key", "put each dash on a line of its own, or write [a, b]"
	}
	p, width := x.text(line)
	return p, width, "a list is not expected here", "check the indentation of the dash"
}

func (x *syntaxFault) depth() (pos, int, string, string) {
	return pos{}, 1, fmt.Sprintf("nested deeper than %d levels", maxDepth), ""
}
