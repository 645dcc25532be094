package report

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// grid is a table of text: columns under heads, the first keys columns
// naming the line.
type grid struct {
	heads []string
	right []bool // columns aligned to the right
	keys  int
	lines []gridLine

	ellipsis string // one column wide, in the place of what was cut out
}

type gridLine struct {
	cells []gridCell
	note  string // in place of the cells beyond the keys: why there are none
	paint painter
}

type gridCell struct {
	text  string
	paint painter
}

// painter colours a text; nil leaves it.
type painter func(string) string

func (p painter) do(s string) string {
	if p == nil {
		return s
	}
	return p(s)
}

func text(s string) gridCell { return gridCell{text: s} }

const gap = "  "

// runes measures columns the same way whatever the reader's locale says.
var runes = &runewidth.Condition{StrictEmojiNeutral: true}

// render writes the grid in tables no wider than width (0: any), repeating
// the key columns in each. Only where a single column beside the keys is
// still too wide are the keys cut short, in the middle.
func (g *grid) render(width int) string {
	widths := g.widths()
	if width > 0 {
		g.fit(widths, width)
	}
	var b strings.Builder
	for start := g.keys; start < len(g.heads) || start == g.keys; {
		end, total := start, 0
		for k := range g.keys {
			total += widths[k] + len(gap)
		}
		for end < len(g.heads) {
			w := widths[end]
			if end > start {
				w += len(gap)
			}
			if width > 0 && end > start && total+w > width {
				break
			}
			total += w
			end++
		}
		if start > g.keys {
			b.WriteByte('\n')
		}
		g.write(&b, widths, start, end, width)
		if end == start || !g.hasCells() {
			break
		}
		start = end
	}
	return b.String()
}

// hasCells reports whether any line has more than a note.
func (g *grid) hasCells() bool {
	return slices.ContainsFunc(g.lines, func(l gridLine) bool { return l.note == "" })
}

func (g *grid) widths() []int {
	widths := make([]int, len(g.heads))
	for i, h := range g.heads {
		widths[i] = runes.StringWidth(h)
		for _, l := range g.lines {
			if i < len(l.cells) {
				widths[i] = max(widths[i], runes.StringWidth(l.cells[i].text))
			}
		}
	}
	return widths
}

// leastKeys is the room that the key columns always have.
const leastKeys = 18

// fit makes room for the key columns and one other beside them: an other
// column that leaves them too little is cut, and then the first key is.
func (g *grid) fit(widths []int, width int) {
	widest, keys := 0, 0
	for i := range widths {
		if i < g.keys {
			keys += widths[i] + len(gap)
			continue
		}
		widths[i] = min(widths[i], max(width-leastKeys, 8))
		widest = max(widest, widths[i])
	}
	if over := keys + widest - width; over > 0 && g.keys > 0 {
		widths[0] = max(widths[0]-over, 8)
	}
}

// write writes the key columns and those from start to end.
func (g *grid) write(b *strings.Builder, widths []int, start, end, width int) {
	g.writeCells(b, widths, start, end, func(i int) gridCell { return text(g.heads[i]) })
	b.WriteByte('\n')
	for _, l := range g.lines {
		switch {
		case l.note == "":
			g.writeCells(b, widths, start, end, func(i int) gridCell { return l.cells[i] })
			b.WriteByte('\n')
		case start == g.keys: // it is said in the first table, once
			g.writeNote(b, widths, l, width)
		}
	}
}

func (g *grid) writeCells(b *strings.Builder, widths []int, start, end int, cell func(i int) gridCell) {
	var line strings.Builder
	for i := range end {
		if i >= g.keys && i < start {
			continue
		}
		c := cell(i)
		t := cut(c.text, widths[i], g.ellipsis)
		pad := strings.Repeat(" ", widths[i]-runes.StringWidth(t))
		if g.right[i] {
			line.WriteString(pad)
		}
		line.WriteString(c.paint.do(t))
		if !g.right[i] {
			line.WriteString(pad)
		}
		line.WriteString(gap)
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
}

// writeNote writes a line that has a reason in place of its figures.
func (g *grid) writeNote(b *strings.Builder, widths []int, l gridLine, width int) {
	used := 0
	for k := range g.keys {
		used += widths[k] + len(gap)
	}
	var keys strings.Builder
	g.writeCells(&keys, widths, g.keys, g.keys, func(i int) gridCell { return l.cells[i] })
	b.WriteString(keys.String() + strings.Repeat(" ", max(used-runes.StringWidth(keys.String()), 0)))
	for i, t := range wrap(l.note, max(width-used, 20), width > 0) {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", used))
		}
		b.WriteString(l.paint.do(t))
		b.WriteByte('\n')
	}
}

// shorten cuts the middle out of a text that is wider than width.
func shorten(s string, width int) string { return cut(s, width, "…") }

// cut replaces the middle of a text that is wider than width by an ellipsis
// of one column: both ends of a scenario's name tell it from its neighbours.
func cut(s string, width int, ellipsis string) string {
	if runes.StringWidth(s) <= width {
		return s
	}
	tail := (width - 1) / 2
	head := runes.Truncate(s, width-1-tail, "")
	rs := []rune(s)
	end := len(rs)
	for used := 0; end > 0; end-- {
		w := runes.RuneWidth(rs[end-1])
		if used+w > tail {
			break
		}
		used += w
	}
	return head + ellipsis + string(rs[end:])
}

// wrap breaks a text into lines no wider than width, at spaces where there
// are any.
func wrap(s string, width int, on bool) []string {
	if !on {
		return []string{s}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		for runes.StringWidth(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			head := runes.Truncate(word, width, "")
			if head == "" {
				break
			}
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case runes.StringWidth(line)+1+runes.StringWidth(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}
