package load

import (
	"errors"
	"fmt"

	"github.com/tandem-bench/tandem/spec"
)

// Options are what a driver needs besides its scenario.
type Options struct {
	Env    spec.Env // resolves ${env.NAME}; nil: no variable is set
	CPUs   []int    // the generator's CPUs; empty: it is not pinned
	Loops  int      // threads of the closed loop, each on a CPU of its own while there are enough; 0: one
	Shared bool     // servers run on CPUs, too, so that spinning there would rob them
	Temp   string   // folder for files that tools read; empty: the system's

	Wait     Wait // how the closed loop waits for responses
	Portable bool // use the net package's connections where the fast loop could serve
}

// Wait is how a closed loop waits for responses.
type Wait uint8

// The ways to wait. A generator that never sleeps spares the server the
// waking of a sleeping CPU at every response (BENCH.md has the figures), so
// figures taken in different ways cannot be compared with each other.
const (
	WaitAuto  Wait = iota // WaitPoll where the generator has CPUs of its own, else WaitSleep
	WaitPoll              // poll without sleeping
	WaitSleep             // sleep until something can be read
)

// polls reports whether the loop polls without sleeping.
func (o Options) polls() bool {
	switch o.Wait {
	case WaitPoll:
		return true
	case WaitSleep:
		return false
	default:
		return len(o.CPUs) > 0 && !o.Shared
	}
}

// New returns the driver of a scenario. An error says which part of the
// scenario no driver can carry out.
func New(s spec.Scenario, o Options) (Driver, error) {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	switch {
	case s.HTTP != nil && (s.HTTP.Rate > 0 || s.HTTP.Pacer != nil):
		return newRate(s, o)
	case s.HTTP != nil:
		return newHTTP(s, o)
	case s.Exec != nil:
		return newExec(s, o)
	case s.Command != nil:
		return newCommand(s, o)
	case s.WS != nil:
		return newWS(s, o)
	default:
		return nil, fmt.Errorf("scenario %s: %w", s.ID(), errors.New("it has no kind of load: expected one of http, ws, exec and command"))
	}
}
