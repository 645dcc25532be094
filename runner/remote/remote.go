// Package remote runs processes on another machine that ssh reaches: the
// hosts of a spec.
//
// runner dials a host once, before anything is measured, and then starts,
// watches, accounts for and stops processes there as package proc does here.
// It is package proc that does it there, too: [Dial] brings our own program
// to the host and runs it as an agent ([AgentMain]), and the two talk over
// the one connection of the system's ssh client. So the watchdog, the control
// groups, the pins and the CPU accounting are the same code on both machines,
// which must be of the same kind.
//
// Both ends expect a sign of life from the other every second. When there is
// none for [Silence], the agent ends whatever it has started and removes its
// files, and the run here ends with a [*LostError]: a link that is cut leaves
// nothing behind on either side.
package remote

import (
	"fmt"
	"time"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

// Silence is how long one end waits for a sign of life of the other.
const Silence = 10 * time.Second

// beat is the time between two signs of life.
const beat = time.Second

// chunk is how much of a file is sent at a time, in bytes: little enough for a
// slow link to let signs of life through in between.
const chunk = 256 << 10

// Facts is what an agent tells of its machine.
type Facts struct {
	Host     proc.Host
	CPUs     proc.CPUs // that may be used there
	Topology proc.Topology
	Environ  []string // of the login there, without anything secret
	Work     string   // an empty folder of this run's own
	Notes    []string // what that machine does not allow
}

// LostError says that the connection to a host broke, so that what happened
// there since is not known.
type LostError struct {
	Host string // as messages name it
	Why  string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the connection to %s was lost: %s; what runs there ends by itself within %v", e.Host, e.Why, Silence)
}

// The messages between the two ends. Errors travel as text.
type (
	// Empty is an argument or an answer without content.
	Empty struct{}

	// Command is a proc.Cmd on its way; Log is a name below the work folder.
	Command struct {
		Name   string
		Argv   []string
		Dir    string
		Env    []string
		CPUs   proc.CPUs
		Log    string
		Limits spec.Limits
	}

	// RunArgs asks for a command that runs to completion.
	RunArgs struct {
		Command Command
		Timeout time.Duration
	}

	// Started names a process.
	Started struct{ ID, PID int }

	// Ending is how a process ended; an empty text is an end on demand.
	Ending struct{ Text string }

	// StopArgs asks a process to end.
	StopArgs struct {
		ID  int
		How spec.Stop
	}

	// PinArgs names CPUs: those that a process is to be on, or those that are audited.
	PinArgs struct {
		ID   int
		CPUs proc.CPUs
	}

	// ReadyArgs asks to wait for a process. The fields are those of a proc.Probe.
	ReadyArgs struct {
		ID        int
		HTTP, TCP string
		Log       string
		Exec      *Command
		Port      int
		Timeout   time.Duration
	}

	// TailArgs asks for the end of a log.
	TailArgs struct{ ID, Lines int }

	// ReadArgs asks for a part of a log.
	ReadArgs struct {
		Name   string
		Offset int64
	}

	// CopyArgs asks for a copy of a folder.
	CopyArgs struct{ From, To string }

	// Part is a piece of an archive on its way to a folder.
	Part struct {
		Dir  string
		Data []byte
		Last bool
	}

	// AuditReading is a proc.Reading, with a clock that nothing sets.
	AuditReading struct {
		At      time.Duration // since the agent's start
		Reading proc.Reading
	}
)
