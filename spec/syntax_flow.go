package spec

import (
	"fmt"
	"regexp"
	"strings"
)

// bracket is a { or [ of a file, and where it stands.
type bracket struct {
	r  byte
	at int
}

// brackets is what a scan of a file's brackets and quotes comes to. Places
// are byte offsets, -1 for none.
type brackets struct {
	open  bracket // the first that is never closed
	wrong int     // a closing one of the wrong kind
	extra int     // a closing one that closes nothing
	ref   int     // a ${ in brackets without quotes
	colon int     // a second ": " of a value in brackets
}

// scanBrackets reads a file as far as its brackets and quotes go.
func scanBrackets(text string) brackets {
	b := brackets{open: bracket{at: -1}, wrong: -1, extra: -1, ref: -1, colon: -1}
	s := bracketScan{text: text, b: &b}
	for s.i = 0; s.i < len(text); s.i++ {
		if s.step() {
			break
		}
	}
	if len(s.stack) > 0 && b.wrong < 0 {
		b.open = s.stack[0]
	}
	return b
}

type bracketScan struct {
	text   string
	b      *brackets
	i      int
	stack  []bracket
	quote  byte
	colons int // since the last comma or bracket
}

// step reads one character; true ends the scan.
func (s *bracketScan) step() bool {
	c := s.text[s.i]
	switch {
	case s.quote != 0:
		if c == '\\' && s.quote == '"' {
			s.i++
		} else if c == s.quote {
			s.quote = 0
		}
	case c == '#' && (s.i == 0 || strings.IndexByte(" \t\n", s.text[s.i-1]) >= 0):
		for s.i+1 < len(s.text) && s.text[s.i+1] != '\n' {
			s.i++
		}
	case (c == '"' || c == '\'') && opensToken(s.text, s.i):
		s.quote = c
	case c == '{' || c == '[':
		s.open(c)
	case c == '}' || c == ']':
		s.close(c)
	case len(s.stack) == 0:
	case c == ',':
		s.colons = 0
	case c == ':' && s.i+1 < len(s.text) && s.text[s.i+1] == ' ':
		if s.colons++; s.colons > 1 && s.b.colon < 0 {
			s.b.colon = s.i
		}
	case c == '\n':
		// A bracket of one line that the next line's key interrupts.
		return blockKey.MatchString(nextLine(s.text, s.i)) && !strings.Contains(s.text[s.stack[0].at:s.i], "\n")
	}
	return false
}

func (s *bracketScan) open(c byte) {
	switch {
	case len(s.stack) > 0 && c == '{' && s.text[s.i-1] == '$':
		if s.b.ref < 0 {
			s.b.ref = s.i - 1
		}
	case len(s.stack) == 0 && !opensToken(s.text, s.i):
		return
	}
	s.stack = append(s.stack, bracket{c, s.i})
	s.colons = 0
}

func (s *bracketScan) close(c byte) {
	s.colons = 0
	if len(s.stack) == 0 {
		if s.b.extra < 0 && s.i > 0 && strings.IndexByte("]}", s.text[s.i-1]) >= 0 {
			s.b.extra = s.i
		}
		return
	}
	last := s.stack[len(s.stack)-1]
	if c != closer(last.r) && s.b.wrong < 0 {
		s.b.wrong = s.i
	}
	s.stack = s.stack[:len(s.stack)-1]
}

func closer(open byte) byte {
	if open == '[' {
		return ']'
	}
	return '}'
}

// flow: something inside { } or [ ] that is not in quotes, or a bracket
// that is never closed.
func (x *syntaxFault) flow() (pos, int, string, string) {
	src := x.d.src
	b := scanBrackets(src.text)
	const quoteIt = "inside { } and [ ], put values that have any of , { } [ ] # or \": \" in quotes"
	switch {
	case b.ref >= 0:
		return src.at(b.ref), 2, "${...} inside { } or [ ] is not in quotes", "YAML reads its braces as its own; put the whole value in double quotes"
	case b.wrong >= 0:
		other := map[byte]string{'}': "]", ']': "}"}[src.text[b.wrong]]
		return src.at(b.wrong), 1, fmt.Sprintf("found %c, expected %s", src.text[b.wrong], other), "close brackets in the order in which they open"
	case b.colon >= 0:
		return src.at(b.colon), 1, "found a second \": \" in a value", quoteIt
	case b.open.at >= 0:
		return src.at(b.open.at), 1, fmt.Sprintf("the %c that opens here is never closed", b.open.r), fmt.Sprintf("add the %c", closer(b.open.r))
	}
	line := min(x.at()+1, len(src.lines))
	if x.line == 0 {
		line = 1
	}
	for n := line; n >= max(1, line-1); n-- {
		s := src.line(n)
		if i := strings.IndexAny(s, "{["); i >= 0 {
			return pos{n, runes(s[:i]) + 1}, 1, fmt.Sprintf("the %c that opens here does not come to its %c", s[i], closer(s[i])), "look for a missing comma; " + quoteIt
		}
	}
	p, width := x.text(line)
	return p, width, "not valid YAML: " + x.msg, "look for a missing comma or bracket"
}

var blockKey = regexp.MustCompile(`^ *[A-Za-z_][A-Za-z0-9_./-]*:( [^,]*)?$`)

func nextLine(text string, eol int) string {
	rest := text[eol+1:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	return strings.TrimRight(rest, "\r")
}

// opensToken reports whether a character stands where a value may start.
func opensToken(text string, i int) bool {
	before := strings.TrimRight(text[:i], " ")
	if before == "" {
		return true
	}
	switch before[len(before)-1] {
	case '\n', ',', '[', '{':
		return true
	case ':', '-', '?':
		return len(before) < i
	}
	return false
}
