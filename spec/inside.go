package spec

import (
	"strings"
	"unicode/utf8"
)

// inside finds the place in the file of a byte of a scalar's text. YAML
// does not say where the bytes of a scalar came from, so the scalar is read
// again, byte by byte; where that does not reproduce its text (a folded
// line, a rare escape), exact is false.
func (d *decoder) inside(n *node, at int) (p pos, exact bool) {
	if at > len(n.text) {
		return n.pos, false
	}
	start := d.src.offset(n.pos)
	raw := d.src.text[start:]
	// A node that has an anchor starts at the anchor.
	if strings.HasPrefix(raw, "&") {
		skip := strings.IndexAny(raw, " \t\r\n")
		if skip < 0 {
			return n.pos, false
		}
		trimmed := strings.TrimLeft(raw[skip:], " \t")
		start += len(raw) - len(trimmed)
		raw = trimmed
	}
	var off int
	switch n.style {
	case plainStyle:
		if !strings.HasPrefix(raw, n.text) {
			return n.pos, false
		}
		off = at
	case singleStyle, doubleStyle:
		off, exact = quotedOffset(raw, n.text, at)
		if !exact {
			return n.pos, false
		}
	default:
		off, exact = blockOffset(raw, n.text, at)
		if !exact {
			return n.pos, false
		}
	}
	return d.src.at(start + off), true
}

// quotedOffset maps a byte of a quoted scalar's text to its byte in raw,
// which starts with the quote.
func quotedOffset(raw, text string, at int) (int, bool) {
	if raw == "" {
		return 0, false
	}
	q := raw[0]
	off := -1
	j := 0 // in text
	i := 1 // in raw
	for i < len(raw) {
		if j == at && off < 0 {
			off = i
		}
		if raw[i] == q {
			if q == '\'' && i+1 < len(raw) && raw[i+1] == '\'' {
				if j >= len(text) || text[j] != '\'' {
					return 0, false
				}
				i, j = i+2, j+1
				continue
			}
			break
		}
		size, val := 1, raw[i:i+1]
		if q == '"' && raw[i] == '\\' {
			size, val = escape(raw[i:])
		}
		if size == 0 || val == "\n" && size == 1 || !strings.HasPrefix(text[j:], val) {
			return 0, false
		}
		i, j = i+size, j+len(val)
	}
	return off, off >= 0 && j == len(text)
}

// escape reads the common escapes of a double-quoted scalar.
func escape(raw string) (size int, val string) {
	if len(raw) < 2 {
		return 0, ""
	}
	switch raw[1] {
	case 'n':
		return 2, "\n"
	case 't':
		return 2, "\t"
	case 'r':
		return 2, "\r"
	case '0':
		return 2, "\x00"
	case '"', '\\', '/', ' ':
		return 2, raw[1:2]
	}
	return 0, ""
}

// blockOffset maps a byte of a literal block's text to its byte in raw,
// which starts with the | or >.
func blockOffset(raw, text string, at int) (int, bool) {
	eol := strings.IndexByte(raw, '\n')
	if eol < 0 {
		return 0, false
	}
	i := eol + 1
	first := raw[i:]
	indent := len(first) - len(strings.TrimLeft(first, " "))
	for line := range strings.SplitAfterSeq(text, "\n") {
		body := strings.TrimSuffix(line, "\n")
		rest := raw[min(i, len(raw)):]
		lead := indent
		if body == "" {
			lead = min(indent, len(rest)-len(strings.TrimLeft(rest, " ")))
		}
		if len(rest) < lead || !strings.HasPrefix(rest[lead:], body) {
			return 0, false
		}
		if at <= len(body) {
			return i + lead + at, true
		}
		at -= len(line)
		next := strings.IndexByte(rest, '\n')
		if next < 0 {
			return 0, false
		}
		i += next + 1
	}
	return 0, false
}

// tagError refuses an explicit tag such as !!str or !ok.
func (d *decoder) tagError(n *node, tag string) {
	d.errorAt(n.pos, utf8.RuneCountInString(tag), kindSyntax, "found the tag "+quote(tag)+"; a spec has no tags", "quote a value that starts with !")
}
