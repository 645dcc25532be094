package spec

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// maxAnnotations is how many annotations a step of a GitHub workflow may
// make of one kind; what is over it is dropped in silence there, so it is
// counted here.
const maxAnnotations = 10

// writeGitHub writes workflow commands that GitHub shows as annotations:
// errors first, ten at most, and then a plain line that counts the rest.
func writeGitHub(w io.Writer, diags []Diagnostic) error {
	b := bufio.NewWriter(w)
	ordered := slices.Clone(diags)
	slices.SortStableFunc(ordered, func(a, b Diagnostic) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	for i, d := range ordered {
		if i == maxAnnotations {
			fmt.Fprintf(b, "and %d more; tandem validate shows all\n", len(ordered)-i)
			break
		}
		fmt.Fprintf(b, "::%s file=%s", d.Severity, githubProperty(filepath.ToSlash(d.File)))
		if d.Line > 0 {
			fmt.Fprintf(b, ",line=%d,col=%d", d.Line, d.Column)
			if d.EndColumn > d.Column {
				fmt.Fprintf(b, ",endColumn=%d", d.EndColumn)
			}
		}
		msg := d.Message
		if d.Hint != "" {
			msg += "\n" + d.Hint
		}
		fmt.Fprintf(b, ",title=%s::%s\n", githubProperty("bench.yaml: "+d.Kind), githubData(msg))
	}
	return b.Flush()
}

// githubData escapes the message of a workflow command, so that no text of
// a spec can start a command of its own.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// githubProperty escapes a property of a workflow command.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(s))
}
