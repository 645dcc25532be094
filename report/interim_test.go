package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
)

// underWay is a run of which some blocks are over.
func underWay(t *testing.T, blocks int, names ...string) *Analysis {
	t.Helper()
	w := newWorld(names...)
	w.blocks, w.judge = 20, []string{"rps"}
	w.speed = slower("head", names[len(names)-1], 0.08)
	w.edit = func(tr *journal.Trial) bool { return tr.Block < blocks }
	w.finish = func(j *journal.Run) { j.Header.Looks, j.Ends, j.End = []int{4, 8, 20}, j.Ends[:blocks], nil }
	return analyze(t, w)
}

func TestInterim(t *testing.T) {
	names := []string{"http/hello-world", "http/a-name-that-is-far-too-long-for-the-line-it-stands-in", "http/json-post"}
	for _, f := range []struct {
		name   string
		blocks int
		o      RenderOptions
	}{
		{"interim.1.text", 1, RenderOptions{Width: 79}},
		{"interim.3.text", 3, RenderOptions{Width: 79}},
		{"interim.8.text", 8, RenderOptions{Width: 79}},
		{"interim.8.ascii.text", 8, RenderOptions{Width: 119, ASCII: true}},
		{"interim.8.color.text", 8, RenderOptions{Width: 119, Color: true}},
	} {
		var b bytes.Buffer
		check(t, NewInterim(underWay(t, f.blocks, names...)).Write(&b, f.o, 20))
		golden(t, f.name, b.Bytes())
		for l := range strings.Lines(b.String()) {
			if !f.o.Color && runes.StringWidth(strings.TrimSuffix(l, "\n")) > f.o.Width {
				t.Errorf("%s: wider than %d: %s", f.name, f.o.Width, l)
			}
		}
	}
}

// The intervals narrow from block to block.
func TestInterimNarrows(t *testing.T) {
	width := func(blocks int) float64 {
		r := row(t, underWay(t, blocks, "a", "b"), "b", "rps")
		return r.CI[1] - r.CI[0]
	}
	if a, b, c := width(4), width(8), width(20); !(a > b && b > c) {
		t.Errorf("widths %v, %v, %v", a, b, c)
	}
}

// Of many rows those that a reader waits for are shown, and the rest counted.
func TestInterimOfManyRows(t *testing.T) {
	var names []string
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		names = append(names, "http/"+string(c))
	}
	var b bytes.Buffer
	check(t, NewInterim(underWay(t, 8, names...)).Write(&b, RenderOptions{Width: 79}, 10))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 10 || lines[9] != "and 20 rows more" {
		t.Errorf("%d lines:\n%s", len(lines), b.String())
	}
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "http/z req/s") && strings.Contains(l, "regressed") }) {
		t.Errorf("the row that moved is left out:\n%s", b.String())
	}
}
