package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// maxAnnotations is how many annotations a run may make, of all kinds. GitHub
// shows ten of a kind for a step and fifty for a job: those of other tools
// need room, too, and nobody reads more.
const maxAnnotations = 10

// writeGitHub writes workflow commands, which GitHub shows beside the spec's
// lines: an error for each failed gate, a warning for each that warned and
// for what qualifies the run.
func writeGitHub(w io.Writer, a *Analysis, _ RenderOptions) error {
	all := a.annotations()
	over := 0
	if len(all) > maxAnnotations {
		over = len(all) - (maxAnnotations - 1) // one is kept to say so
		all = all[:maxAnnotations-1]
	}
	if over > 0 {
		all = append(all, annotation{"warning", 0, "benchmark", fmt.Sprintf("%d more, which the report lists", over)})
	}
	for _, x := range all {
		props := "title=" + property(x.title)
		if x.line > 0 && a.Spec.Path != "" {
			props = fmt.Sprintf("file=%s,line=%d,%s", property(a.Spec.Path), x.line, props)
		}
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", x.kind, props, workflowData(x.message)); err != nil {
			return err
		}
	}
	return nil
}

type annotation struct {
	kind    string
	line    int // of the spec; 0: none
	title   string
	message string
}

// annotations lists all that there is to say, what matters most first.
func (a *Analysis) annotations() []annotation {
	var out []annotation
	add := func(level spec.Action, kind string) {
		for _, group := range a.gateGroups() {
			for _, g := range group.rest {
				if g.Level == level {
					out = append(out, annotation{kind, g.Line, "benchmark " + string(level) + ": " + g.Scenario, a.gateText(g)})
				}
			}
		}
	}
	add(spec.Fail, "error")
	if a.Partial != "" {
		out = append(out, annotation{"warning", 0, "partial run", a.Partial})
	}
	add(spec.Warn, "warning")
	for _, w := range a.allWarnings() {
		out = append(out, annotation{"warning", 0, "benchmark", w})
	}
	return out
}

// workflowData and property escape as GitHub's runner unescapes them, so that
// no text from outside can end a command and start another.
func workflowData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(plain(s))
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(workflowData(s))
}

// writeSummary is the markdown of a job summary, which has room for more than
// a comment.
func writeSummary(w io.Writer, a *Analysis, o RenderOptions) error {
	if o.Limit <= 0 {
		o.Limit = SummaryLimit
	}
	return writeMarkdown(w, a, o)
}
