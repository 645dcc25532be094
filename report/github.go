package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// maxAnnotations is how many annotations of one kind GitHub shows for a step.
const maxAnnotations = 10

// writeGitHub writes workflow commands, which GitHub shows beside the spec's
// lines: an error for each failed gate, a warning for each that warned and
// for what qualifies the run.
func writeGitHub(w io.Writer, a *Analysis, _ RenderOptions) error {
	g := &githubWriter{w: w, file: a.Spec.Path, count: map[string]int{}}
	if a.Partial != "" {
		g.say("warning", 0, "partial run", a.Partial)
	}
	for _, level := range []spec.Action{spec.Fail, spec.Warn} {
		kind := "error"
		if level == spec.Warn {
			kind = "warning"
		}
		for _, group := range a.gateGroups() {
			for _, r := range group.rest {
				if r.Level == level {
					g.say(kind, r.Line, "benchmark "+string(level)+": "+r.Scenario, a.gateText(r))
				}
			}
		}
	}
	for _, warning := range a.allWarnings() {
		g.say("warning", 0, "benchmark", warning)
	}
	g.rest()
	return g.err
}

type githubWriter struct {
	w     io.Writer
	file  string
	count map[string]int
	err   error
}

func (g *githubWriter) say(kind string, line int, title, message string) {
	if g.count[kind]++; g.count[kind] >= maxAnnotations {
		return // one is kept for the number of those that are not shown
	}
	g.write(kind, line, title, message)
}

// rest says how many annotations of each kind were left out.
func (g *githubWriter) rest() {
	for _, kind := range sortedKeys(g.count) {
		if over := g.count[kind] - (maxAnnotations - 1); over > 0 {
			g.write(kind, 0, "benchmark", fmt.Sprintf("%d more, which the report lists", over))
		}
	}
}

func (g *githubWriter) write(kind string, line int, title, message string) {
	props := "title=" + property(title)
	if line > 0 && g.file != "" {
		props = fmt.Sprintf("file=%s,line=%d,%s", property(g.file), line, props)
	}
	if _, err := fmt.Fprintf(g.w, "::%s %s::%s\n", kind, props, workflowData(message)); err != nil && g.err == nil {
		g.err = err
	}
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
