// Package proc starts, watches and ends the processes of a run, and reads
// what they cost.
//
// runner hands it commands: build steps that run to completion, and servers
// and services that stay. Out come processes that are known to be ready,
// that run on the CPUs that they were given, whose CPU time and memory can be
// read at the borders of a window, and of which nothing is left behind,
// however the run ends. It knows nothing of arms, blocks or load.
//
// Linux has all of it. Elsewhere what is missing is an error that wraps
// [errors.ErrUnsupported], never a zero.
package proc

import (
	"fmt"
	"os"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// Cmd is one command to start.
type Cmd struct {
	Name   string      // for errors and logs, "base#0"
	Argv   []string    // the program and its arguments; a program without "/" is looked for in Env's PATH
	Dir    string      // working folder; empty: ours
	Env    []string    // the whole environment as NAME=value, see [Environ]; nil: an empty one
	CPUs   CPUs        // CPUs that it may use from its first instruction on; empty: all that this process had at first
	Log    string      // file that both output streams are appended to; empty: they are discarded
	Stdin  string      // file that standard input reads; empty: the null device
	Limits spec.Limits // what the process and its children may use; zero values: no limit
	User   *User       // who runs it; nil: our own user

	// Input and Output, where they are set, are standard input and output in
	// place of Stdin and Log: the ends of pipes, say. Errors still go to Log.
	// The caller closes them after the start.
	Input, Output *os.File
}

// Result is how a command that ran to completion ended.
type Result struct {
	Code   int           // exit status; -1 where a signal ended it
	Signal string        // "KILL", where a signal ended it
	Wall   time.Duration // from before its start to its end
	Usage  Usage
	Tail   string // the end of its output
}

// Usage is what a process and everything that it started have cost so far.
type Usage struct {
	CPU        time.Duration // user and system time of the whole tree, ended children included
	Resolution time.Duration // how finely CPU is known; an ended child may make it coarser
	// MaxRSS is the peak of resident memory in bytes: the highest sum of the
	// peaks of the processes that were alive at a reading, or the peak of one
	// that has ended, if that is more. Pages that processes share count once
	// for each.
	MaxRSS int64
	// MaxRSSFloor is our own peak at the start, in bytes. A process inherits
	// the peak of its parent until it executes another program, and the kernel
	// keeps it for its end; so of a command that ended before any reading was
	// made, a MaxRSS up to here only says that it needed no more than that.
	MaxRSSFloor int64
	Processes   int // alive at this reading
}

// Options configures a Supervisor. The zero value is what a run wants.
type Options struct {
	Executable string        // program with WatchdogMain in its main; empty: our own
	NoCgroup   bool          // do not use control groups, even where they can be written
	Grace      time.Duration // time that Close leaves to processes between TERM and KILL; 0: 2 s
}

// ExitError says how a process ended that was not asked to.
type ExitError struct {
	Name   string
	PID    int
	Code   int           // exit status; -1 where a signal ended it
	Signal string        // "KILL", where one did
	After  time.Duration // since its start
	Reason string        // what is known beyond that, such as a memory limit
}

func (e *ExitError) Error() string {
	how := fmt.Sprintf("ended with exit status %d", e.Code)
	if e.Signal != "" {
		how = "was ended by signal " + e.Signal
	}
	if e.Reason != "" {
		how += " (" + e.Reason + ")"
	}
	return fmt.Sprintf("%s (pid %d) %s %s after its start", e.Name, e.PID, how, roundTime(e.After))
}

// roundTime leaves three digits or so of a duration, for people.
func roundTime(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
