package main

import (
	"bytes"
	crand "crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/tandem-bench/tandem/report"
)

// onActions says whether this is a step of GitHub Actions, or of a runner
// that speaks its language.
func (a *app) onActions() bool {
	v, _ := a.env("GITHUB_ACTIONS")
	return v == "true"
}

// guardStreams keeps what is printed from being obeyed: a runner takes lines
// of a step's output for commands, and what Tandem prints can quote a server's
// last words, a name, or a line of a spec that a pull request brought. Only
// what is written to commands is meant to be obeyed.
func (a *app) guardStreams() {
	a.commands = a.stderr
	if !a.onActions() {
		return
	}
	for _, stream := range []*io.Writer{&a.stdout, &a.stderr} {
		if f, ok := (*stream).(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				continue // a file is no log, and keeps its bytes
			}
		}
		*stream = &guard{w: *stream, start: true}
	}
}

// product is where a report in the format goes. Workflow commands are made
// to be obeyed, and escape what they quote themselves.
func (a *app) product(format string) io.Writer {
	if g, ok := a.stdout.(*guard); ok && format == "github" {
		return g.w
	}
	return a.stdout
}

// guard breaks up what a runner would take for a command: "::" at the start
// of a line, and "##[" anywhere in it.
type guard struct {
	mu     sync.Mutex
	w      io.Writer
	start  bool // nothing but blanks so far in this line
	colon  bool // the line begins with one colon so far
	hashes int  // number signs in a row, just before
}

func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b bytes.Buffer
	b.Grow(len(p) + 8)
	for _, c := range p {
		if g.colon && c == ':' || g.hashes >= 2 && c == '[' {
			b.WriteByte(' ')
		}
		g.step(c)
		b.WriteByte(c)
	}
	if _, err := g.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// step follows where in its line a byte stands. Bytes beyond ASCII count as
// blanks, since some are to the runner.
func (g *guard) step(c byte) {
	if c == '#' {
		g.hashes++
	} else {
		g.hashes = 0
	}
	switch {
	case c == '\n' || c == '\r':
		g.start, g.colon = true, false
	case c == ':' && g.start:
		g.start, g.colon = false, true
	case c <= ' ' || c >= 0x80:
		g.colon = false
	default:
		g.start, g.colon = false, false
	}
}

// quiet stops the runner from obeying anything that this step prints, until
// the returned function is called: what runs as a child of this process can
// open its output, too, past any guard. Only who knows the token can end it.
func (a *app) quiet() (resume func()) {
	if !a.onActions() {
		return func() {}
	}
	token := randomWord()
	fmt.Fprintf(a.commands, "::stop-commands::%s\n", token)
	return func() { fmt.Fprintf(a.commands, "::%s::\n", token) }
}

func randomWord() string {
	var b [16]byte
	crand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// publish hands a judged run to the CI service that this is a step of:
// annotations (unless they are what was printed), a job summary, and outputs
// for later steps. What fails here is said, and changes no verdict. A shard is
// no table of its own, and says nothing before it is joined with the others.
func (a *app) publish(analysis *report.Analysis, result, printed string) {
	if !a.onActions() || analysis.Header.Shard != "" {
		return
	}
	if printed != "github" {
		a.complain("writing annotations", report.Write(a.commands, "github", analysis, report.RenderOptions{}))
	}
	a.complain("writing the job summary", a.summarizeRun(analysis))
	counts := map[report.Verdict]int{}
	for _, r := range analysis.Rows {
		if r.Judged {
			counts[r.Verdict]++
		}
	}
	a.complain("writing the step's outputs", a.setOutputs([]output{
		{"outcome", string(analysis.Outcome)},
		{"regressed", fmt.Sprint(counts[report.Regressed])},
		{"improved", fmt.Sprint(counts[report.Improved])},
		{"unsure", fmt.Sprint(counts[report.Unsure])},
		{"failed", fmt.Sprint(counts[report.Failed] + counts[report.Incomparable])},
		{"result", result},
	}))
}

// publishFailure says in the job summary and the outputs why there is no
// table at all.
func (a *app) publishFailure(why error) {
	if !a.onActions() {
		return
	}
	a.complain("writing the job summary", a.noteSummary("Nothing could be measured: "+why.Error()))
	a.complain("writing the step's outputs", a.setOutputs([]output{{"outcome", string(report.NotMeasured)}}))
}

func (a *app) complain(doing string, err error) {
	if err != nil {
		fmt.Fprintf(a.stderr, "tandem: %s: %v\n", doing, err)
	}
}

// summaryHeadroom is kept free of the runner's limit, which drops a longer
// summary whole: other tools of the step may write, too.
const summaryHeadroom = 64 << 10

func (a *app) summarizeRun(analysis *report.Analysis) error {
	return a.addSummary(func(w io.Writer, limit int) error {
		return report.Write(w, "summary", analysis, report.RenderOptions{Limit: limit})
	})
}

// addSummary adds to the job summary what write makes, which has limit bytes
// at most; nothing where there is no summary.
func (a *app) addSummary(write func(w io.Writer, limit int) error) error {
	path, _ := a.env("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	limit := report.SummaryLimit - summaryHeadroom - int(min(info.Size(), report.SummaryLimit))
	if limit < 4<<10 {
		return fmt.Errorf("the step's summary has %d bytes already, so there is no room for more", info.Size())
	}
	var b bytes.Buffer
	if err := write(&b, limit-2); err != nil {
		return err
	}
	if _, err := f.WriteString("\n" + b.String() + "\n"); err != nil {
		return err
	}
	return f.Close()
}

// output is one output of a step.
type output struct{ name, value string }

// setOutputs sets outputs of the step. Each value stands between delimiters
// that nobody can foresee, so that none can end early and set another.
func (a *app) setOutputs(outputs []output) error {
	path, _ := a.env("GITHUB_OUTPUT")
	if path == "" {
		return nil
	}
	var b strings.Builder
	for _, o := range outputs {
		end := "tandem_" + randomWord()
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.name, end, o.value, end)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(b.String()); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
