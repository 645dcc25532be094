package report

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// A result whose arms are others, or stand in another order, is not judged.
func TestRegateRefuses(t *testing.T) {
	s := &spec.Spec{Baseline: "base", Alpha: 0.01, Arms: []spec.Arm{{Name: "a"}, {Name: "base"}, {Name: "b"}}}
	for _, c := range []struct {
		arms  string
		alpha float64
		want  string
	}{
		{"base a b", 0.01, ""},
		{"base b a", 0.01, ""},
		{"base a b", 0.05, ""}, // marks more, and is warned of
		{"a base b", 0.01, "its arms are"},
		{"base a", 0.01, "its arms are"},
		{"base a b c", 0.01, "its arms are"},
		{"base a a", 0.01, "its arms are"},
		{"x y z", 0.01, "its arms are"},
		{"", 0.01, "its arms are"},
		{"base a b", 1e-12, "judged at alpha 1e-12, and the spec asks for 0.01"},
	} {
		h := &journal.Header{}
		for _, name := range strings.Fields(c.arms) {
			h.Arms = append(h.Arms, journal.Arm{Name: name})
		}
		a := &Analysis{Header: h, Spec: &spec.Spec{Alpha: c.alpha}}
		err := a.Regate(s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q at %g: found error %v, expected %q", c.arms, c.alpha, err, c.want)
		}
	}
}

// Where entities are read first, as GitHub does, no name is mentioned and no
// issue is meant.
func TestEscapeBreaksMentions(t *testing.T) {
	for _, text := range []string{"@everyone", "a @octo/admins b", "#12", "octo/app#12", "GH-12 gh-7", "me@example.com", "@@x ##1"} {
		decoded := html.UnescapeString(EscapeMarkdown(text))
		if bad := regexp.MustCompile(`@\w|#\d|(?i)gh-\d`).FindString(decoded); bad != "" {
			t.Errorf("%q becomes %q, which holds %q", text, decoded, bad)
		}
	}
}
