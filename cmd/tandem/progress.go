package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/tandem-bench/tandem/runner"
)

// progress shows where a run is: one line that is written over on a
// terminal, a plain line for each new phase elsewhere. The runner calls it
// between windows only.
type progress struct {
	app   *app
	quiet bool
	tty   bool
	last  string // the last line, without what changes all the time
	wrote bool   // a line on the terminal needs to be cleared
}

func (a *app) newProgress(quiet bool) *progress {
	return &progress{app: a, quiet: quiet, tty: isTerminal(a.stderr)}
}

func (p *progress) update(s runner.Status) {
	if p.quiet {
		return
	}
	if p.tty {
		width := p.app.width(p.app.stderr)
		line := statusLine(s)
		if width > 1 {
			line = runewidth.Truncate(line, width-1, "~")
		}
		fmt.Fprintf(p.app.stderr, "\r\x1b[K%s", line)
		p.wrote = true
		return
	}
	// A log wants one line a block, not one a window.
	plain := plainLine(s)
	if plain == "" || plain == p.last {
		return
	}
	p.last = plain
	fmt.Fprintln(p.app.stderr, plain)
}

// finish clears the line.
func (p *progress) finish() {
	if p.wrote {
		fmt.Fprint(p.app.stderr, "\r\x1b[K")
	}
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
// block; "" for the rest.
func plainLine(s runner.Status) string {
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
