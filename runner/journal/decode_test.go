package journal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Wherever a journal is divided among CPUs, its lines are the same.
func TestPartsOfAJournal(t *testing.T) {
	long := `{"check":{"block":0,"scenario":"` + strings.Repeat("x", 1<<18) + `"}}`
	for name, text := range map[string]string{
		"whole":      "{\"resume\":{\"block\":1}}\n{\"end\":{}}\n\n{\"resume\":{\"block\":2}}\n",
		"torn":       "{\"resume\":{\"block\":1}}\n{\"resu",
		"no line":    "{\"resu",
		"empty":      "",
		"long lines": long + "\n" + long + "\n" + long,
	} {
		r, size := strings.NewReader(text), int64(len(text))
		want, err := decodePart(r, size, 0, size)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text, "\n"); got != len(want.lines) {
			t.Errorf("%s: found %d lines, expected %d", name, len(want.lines), got)
		}
		if torn := text != "" && !strings.HasSuffix(text, "\n"); torn != want.torn {
			t.Errorf("%s: torn is %v", name, want.torn)
		}
		for at := int64(1); at < size; at += max(1, size/97) {
			first, err1 := decodePart(r, size, 0, at)
			second, err2 := decodePart(r, size, at, size)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			texts := func(all ...decoded) (lines []string) {
				for _, d := range all {
					for _, l := range d.lines {
						lines = append(lines, cmp.Diff(nil, l.Check)+cmp.Diff(nil, l.Resume))
					}
				}
				return lines
			}
			if diff := cmp.Diff(texts(want), texts(first, second)); diff != "" {
				t.Fatalf("%s, divided at %d: %s", name, at, diff)
			}
			if torn := first.torn || second.torn; torn != want.torn {
				t.Errorf("%s, divided at %d: torn is %v", name, at, torn)
			}
		}
	}
}
