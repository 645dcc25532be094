package comment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/report"
)

// Source says where a comment comes from. All of it is known from GitHub's
// API and the trusted checkout, nothing from the result.
type Source struct {
	Key     string // of the spec and job: Key
	Head    string // the commit that was measured, in hex
	Run     int64  // the workflow run that measured
	Attempt int
	RunURL  string
	Spec    string // the trusted spec's path
}

// Key makes the key by which a comment is found again: the same for the same
// parts, which name the spec and the job, and for no others.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Marker is the first line of a comment, invisible to readers, by which it is
// found again. It alone proves nothing, since anybody can write it: the
// comment's author must be right, too.
type Marker struct {
	Key     string
	Head    string
	Run     int64
	Attempt int
	Stale   string // the head that has outdated the comment; "" where none
}

func (m Marker) String() string {
	stale := ""
	if m.Stale != "" {
		stale = " stale=" + m.Stale
	}
	return fmt.Sprintf("<!-- tandem key=%s head=%s run=%d attempt=%d%s -->", m.Key, m.Head, m.Run, m.Attempt, stale)
}

var markerLine = regexp.MustCompile(`^<!-- tandem key=([0-9a-f]{16}) head=([0-9a-f]{4,64}) run=([0-9]{1,18}) attempt=([0-9]{1,9})(?: stale=([0-9a-f]{4,64}))? -->\r?\n`)

// ParseMarker reads the marker of a comment's text.
func ParseMarker(body string) (Marker, bool) {
	m := markerLine.FindStringSubmatch(body)
	if m == nil {
		return Marker{}, false
	}
	run, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil {
		return Marker{}, false
	}
	attempt, err := strconv.Atoi(m[4])
	if err != nil {
		return Marker{}, false
	}
	return Marker{Key: m[1], Head: m[2], Run: run, Attempt: attempt, Stale: m[5]}, true
}

// Newer reports whether a comment with the marker m says more recent things
// than one from s would: it is of the same head, and of a later run or attempt.
func (m Marker) Newer(s Source) bool {
	return m.Head == s.Head && (m.Run > s.Run || m.Run == s.Run && m.Attempt > s.Attempt)
}

// Render makes the text of the comment. The analysis is judged and gated
// already, by the trusted spec.
func Render(a *report.Analysis, s Source) (string, error) {
	head, tail := s.marker(), s.tail()
	// Closing tags and a count of characters that is not quite GitHub's.
	const reserve = 1024
	var b bytes.Buffer
	limit := report.CommentLimit - len(head) - len(tail) - reserve
	if err := report.Write(&b, "markdown", a, report.RenderOptions{Limit: limit}); err != nil {
		return "", err
	}
	return head + closed(b.String()) + tail, nil
}

// closed ends the sections that a cut has left open: what follows would be
// hidden in them.
func closed(doc string) string {
	for _, tag := range []string{"pre", "details"} {
		open := strings.Count(doc, "<"+tag+">") - strings.Count(doc, "</"+tag+">")
		doc += strings.Repeat("\n</"+tag+">\n", max(open, 0))
	}
	return doc
}

// RenderProblem makes the text of a comment where a run gave no result that
// could be shown. why is of Tandem's own making, and may quote names.
func RenderProblem(why string, s Source) string {
	return s.marker() + "### benchmark: no result\n\n" + report.EscapeMarkdown(why) + "\n\n" + s.tail()
}

func (s Source) marker() string {
	return Marker{Key: s.Key, Head: s.Head, Run: s.Run, Attempt: s.Attempt}.String() + "\n"
}

// tail says what was measured and by what it was gated.
func (s Source) tail() string {
	run := fmt.Sprintf("run %d", s.Run)
	if s.RunURL != "" {
		run = fmt.Sprintf("[%s](%s)", run, s.RunURL)
	}
	return fmt.Sprintf("<sub>Commit %s, %s. Judged and gated by this repository's own %s; the figures are those that the run reported.</sub>\n",
		Short(s.Head), run, report.EscapeMarkdown(s.Spec))
}

// Short abbreviates a commit as git does.
func Short(commit string) string { return commit[:min(len(commit), 7)] }

// Stale marks a comment as outdated by a new head. The text stays, below a
// line that says of which commit it is. A comment of that head, or marked
// already, stays as it is.
func Stale(body, head string) string {
	m, ok := ParseMarker(body)
	if !ok || m.Head == head || m.Stale == head {
		return body
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	if m.Stale != "" {
		_, rest, _ = strings.Cut(rest, "\n\n") // the line of an earlier head
	}
	m.Stale = head
	line := fmt.Sprintf("> **Outdated:** this is of commit %s; the pull request is at %s now, which is not measured yet.", Short(m.Head), Short(head))
	return m.String() + "\n" + line + "\n\n" + strings.TrimLeft(rest, "\n")
}

// When says for which results a comment is first written. Once there, it is
// kept true whatever comes.
type When string

const (
	Always    When = "always"
	Changed   When = "changed"   // a row moved, appeared, vanished or failed, or a gate did not pass
	Regressed When = "regressed" // a row regressed, or a gate failed
)

// Wants reports whether a result is worth a first comment.
func (w When) Wants(a *report.Analysis) bool {
	if w == Always {
		return true
	}
	worse := a.Outcome == report.GateFailed
	changed := worse || a.Outcome != report.Passed
	for _, r := range a.Rows {
		if !r.Judged {
			continue
		}
		worse = worse || r.Verdict == report.Regressed
		changed = changed || (r.Verdict != report.Same && r.Verdict != report.Unsure)
	}
	if w == Regressed {
		return worse
	}
	return changed
}
