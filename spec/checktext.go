package spec

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const bom = "\ufeff"

// checkText refuses what is no text before YAML sees it. A byte order mark
// at the start is dropped, and CRLF line ends are fine: both are what
// editors on Windows write.
func (d *decoder) checkText() bool {
	text := d.src.text
	switch {
	case len(text) > maxBytes:
		d.errorAt(pos{}, 1, kindLimit, fmt.Sprintf("the file is larger than %d KiB, the most that a spec may be", maxBytes>>10), "")
		return false
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		d.errorAt(pos{1, 1}, 1, kindSyntax, "the file is UTF-16; expected UTF-8", "save it as UTF-8")
		return false
	}
	if rest, ok := strings.CutPrefix(text, bom); ok {
		d.src = newSource(d.src.name, rest)
	}
	return d.checkRunes() && d.checkTokens()
}

// checkRunes finds the first character that a spec may not have.
func (d *decoder) checkRunes() bool {
	text := d.src.text
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		msg, hint := "", ""
		switch {
		case r == utf8.RuneError && size == 1:
			msg, hint = fmt.Sprintf("the byte 0x%02x is not valid UTF-8", c), "save the file as UTF-8"
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
		case c == '\r':
			msg, hint = "a carriage return without a line feed", "save the file with LF or CRLF line ends"
		case r < ' ' || r == 0x7f:
			msg, hint = fmt.Sprintf("the control character 0x%02x is not allowed", c), "remove it"
		case r == '\u0085', r == '\u2028', r == '\u2029', r == '\ufeff':
			msg, hint = fmt.Sprintf("the invisible character %U is not allowed", r), "remove it"
		}
		if msg != "" {
			d.errorAt(d.src.at(i), 1, kindSyntax, msg, hint)
			return false
		}
		i += size
	}
	return true
}

// checkTokens bounds what the YAML reader has to build: memory goes with
// the number of nodes, and a node takes one of these characters.
func (d *decoder) checkTokens() bool {
	n := 0
	for _, c := range []byte(d.src.text) {
		switch c {
		case ',', '[', '{', ':', '-', '?', '\n', '*', '&', '!':
			n++
		}
	}
	if n > maxTokens {
		d.errorAt(pos{}, 1, kindLimit, fmt.Sprintf("the file has more than %d entries, the most that a spec may have", maxTokens), "a matrix writes many scenarios in a few lines")
		return false
	}
	return true
}
