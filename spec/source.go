package spec

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// source is the text of a spec, addressable by line and column.
type source struct {
	name  string // the file as it was named
	text  string
	lines []int // byte offset at which each line starts
}

func newSource(name, text string) *source {
	s := &source{name: name, text: text, lines: []int{0}}
	for i := 0; i < len(text); i++ {
		// YAML breaks lines at \n, \r\n and a lone \r.
		if text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// line returns line n (from 1) without its line break; "" where there is none.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.text)
	if n < len(s.lines) {
		end = s.lines[n]
	}
	return strings.TrimRight(s.text[s.lines[n-1]:end], "\r\n")
}

// pos is a place in a source: line and column from 1, the column in runes.
type pos struct{ line, col int }

func (p pos) before(q pos) bool { return p.line < q.line || p.line == q.line && p.col < q.col }

// offset is the byte offset of p, clamped to its line.
func (s *source) offset(p pos) int {
	if p.line < 1 || p.line > len(s.lines) {
		return len(s.text)
	}
	at := s.lines[p.line-1]
	rest := s.line(p.line)
	for c := 1; c < p.col && rest != ""; c++ {
		_, n := utf8.DecodeRuneInString(rest)
		at, rest = at+n, rest[n:]
	}
	return at
}

// clamp moves a place that is beyond the text, as the ends of an empty
// document are, to the end of a line.
func (s *source) clamp(p pos) pos {
	if p.line < 1 {
		return p
	}
	p.line = min(p.line, len(s.lines))
	p.col = max(1, min(p.col, utf8.RuneCountInString(s.line(p.line))+1))
	return p
}

// at is the place of a byte offset.
func (s *source) at(offset int) pos {
	i := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > offset }) - 1
	return pos{i + 1, utf8.RuneCountInString(s.text[s.lines[i]:offset]) + 1}
}
