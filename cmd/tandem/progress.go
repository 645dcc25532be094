package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/runner"
	"github.com/tandem-bench/tandem/runner/journal"
)

// progress shows where a run is: on a terminal the table so far and a line of
// status, which are written over; elsewhere a plain line for each new phase.
// The runner calls it between windows only, so nothing is computed or written
// while something is measured.
type progress struct {
	quiet  bool
	live   *liveView // nil where there is no terminal
	log    io.Writer
	blocks int    // that the table so far holds
	so     string // how many rows are settled so far
	now    func() time.Time
	looked time.Time     // when the last look ended
	took   time.Duration // by the last look
	last   string        // the last line of the log
}

func (a *app) newProgress(quiet bool) *progress {
	p := &progress{quiet: quiet, log: a.stderr, now: a.now}
	if isTerminal(a.stderr) {
		p.live = &liveView{w: a.stderr, size: func() (int, int) { return a.width(a.stderr), height(a.stderr) }, color: a.colored(a.stderr), ascii: a.asciiOnly()}
	}
	return p
}

// height is the number of lines of a terminal, 0 where it is not known.
func height(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if _, lines, err := term.GetSize(int(f.Fd())); err == nil {
			return lines
		}
	}
	return 0
}

func (p *progress) update(s runner.Status) {
	if p.quiet {
		return
	}
	if s.Run != nil && len(s.Run.Ends) > p.blocks {
		p.blocks = len(s.Run.Ends)
		p.look(s.Run)
	}
	if p.live != nil {
		p.live.draw(statusLine(s))
		return
	}
	// A log wants one line a block, not one a window.
	plain := plainLine(s, p.so)
	if plain == "" || plain == p.last {
		return
	}
	p.last = plain
	fmt.Fprintln(p.log, plain)
}

// lookShare bounds the share of a run's time that the live view may take: the
// judging of a very large table takes seconds.
const lookShare = 0.02

// look analyses what the finished blocks hold. It decides nothing: the stopping
// rule looks for itself, at the planned blocks only.
func (p *progress) look(run *journal.Run) {
	began := p.now()
	if lookShare*float64(began.Sub(p.looked)) < float64(p.took) {
		return // the view stays as it was for a block or more
	}
	a, err := report.Analyze(run, nil)
	p.looked = p.now()
	p.took = p.looked.Sub(began)
	if err != nil {
		return // the report at the end will say it
	}
	interim := report.NewInterim(a)
	p.so = interim.Settled()
	if p.live != nil {
		p.live.interim = &interim
	}
}

// finish clears what the live view wrote.
func (p *progress) finish() {
	if p.live != nil {
		p.live.clear()
	}
}

// liveView is a part of a terminal that is written over: a table, where there
// is one yet, and a line of status below it.
type liveView struct {
	w       io.Writer
	size    func() (columns, lines int)
	color   bool
	ascii   bool
	interim *report.Interim
	above   int // lines of the view above the one that the cursor is in
}

func (v *liveView) draw(status string) {
	columns, lines := v.size()
	var b bytes.Buffer
	v.home(&b)
	if v.interim != nil && (lines == 0 || lines > 8) {
		o := report.RenderOptions{Width: max(columns-1, 0), Color: v.color, ASCII: v.ascii}
		var table bytes.Buffer
		err := v.interim.Write(&table, o, lines-3)
		// What has left the screen at the top could not be written over.
		if tall := bytes.Count(table.Bytes(), []byte{'\n'}) + 1; err == nil && (lines == 0 || tall < lines) {
			b.Write(table.Bytes())
			b.WriteByte('\n')
			v.above = tall
		}
	}
	if columns > 1 {
		status = runewidth.Truncate(status, columns-1, "~")
	}
	b.WriteString(status)
	v.w.Write(b.Bytes()) // one write, so that no half of it is seen
}

// home goes back to the view's first line and clears all below.
func (v *liveView) home(b *bytes.Buffer) {
	b.WriteByte('\r')
	if v.above > 0 {
		fmt.Fprintf(b, "\x1b[%dA", v.above)
	}
	b.WriteString("\x1b[J")
	v.above = 0
}

func (v *liveView) clear() {
	var b bytes.Buffer
	v.home(&b)
	v.w.Write(b.Bytes())
}

// statusLine is the whole status: phase, block, scenario and time left.
func statusLine(s runner.Status) string {
	parts := []string{string(s.Phase)}
	if s.Block > 0 {
		parts = append([]string{fmt.Sprintf("block %d of at most %d", s.Block, s.Blocks)}, parts...)
	}
	if s.Scenario != "" {
		parts = append(parts, s.Scenario)
	}
	if s.Detail != "" {
		parts = append(parts, s.Detail)
	}
	line := strings.Join(parts, ", ")
	if s.Left > 0 {
		line += fmt.Sprintf(", at most %s left", roundTime(s.Left))
	}
	return line
}

// plainLine is what a log gets of a status: builds, and the start of each
// block with what has come of those before; "" for the rest.
func plainLine(s runner.Status, so string) string {
	switch {
	case s.Phase == runner.Building:
		return "build, " + s.Detail
	case s.Block == 0 && s.Phase == runner.Starting:
		return "start, " + s.Detail
	case s.Block > 0 && s.Phase == runner.Starting:
		line := fmt.Sprintf("block %d of at most %d", s.Block, s.Blocks)
		if s.Left > 0 {
			line += fmt.Sprintf(", at most %s left", roundTime(s.Left))
		}
		if so != "" {
			line += "; " + so
		}
		return line
	}
	return ""
}

func roundTime(d time.Duration) string {
	if d >= time.Minute {
		text := d.Round(10 * time.Second).String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		return text
	}
	return d.Round(time.Second).String()
}
