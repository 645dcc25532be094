//go:build !linux

package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// child is a process to be.
type child struct {
	path    string
	argv    []string
	dir     string
	env     []string
	cpus    []int // pinning is not available here: any entry is an error
	files   [3]*os.File
	timeout time.Duration // 0: none
}

// usage is how a process ended and what it used. Peak memory is not
// available on this system, so maxRSS stays zero and the metric is left out.
type usage struct {
	wall         time.Duration
	user, system time.Duration
	maxRSS       int64
	rssHidden    bool
	code         int
	signal       string
	timedOut     bool
}

// thread stands for the thread that starts children, which cannot be pinned here.
type thread struct{}

func (*thread) restore() error { return nil }

var errNoPinning = errors.New("pinning to CPUs is not available on this system: set pins to none")

// run runs the child to its end. A child that it left behind is not ended.
func (c *child) run(ctx context.Context, _ *thread) (usage, error) {
	if len(c.cpus) > 0 {
		return usage{}, errNoPinning
	}
	outer := ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	cmd := groupCommand(ctx, *c)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.files[0], c.files[1], c.files[2]
	start := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(start)}
	if cmd.ProcessState == nil {
		return u, fmt.Errorf("starting %s: %w", c.path, err)
	}
	if outer.Err() != nil {
		return u, context.Cause(outer)
	}
	u.user, u.system = cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime()
	u.code = cmd.ProcessState.ExitCode()
	u.timedOut = ctx.Err() != nil
	if !cmd.ProcessState.Exited() {
		u.signal = cmd.ProcessState.String()
	}
	return u, nil
}

// tracePeak is not available here.
func tracePeak(context.Context, child) (int64, error) {
	return 0, errors.New("the peak memory of a process cannot be read on this system")
}

// startPinned starts cmd.
func startPinned(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) > 0 {
		return errNoPinning
	}
	return cmd.Start()
}

// ownGroup leaves cmd as it is: only the process itself is ended with its
// context, not its children.
func ownGroup(*exec.Cmd) {}

// unnamedFile is a temporary file that is gone when its process ends.
func unnamedFile(name string) (*os.File, error) {
	f, err := os.CreateTemp("", "tandem-"+name)
	if err != nil {
		return nil, err
	}
	// Where an open file cannot be removed, the system's own cleaning has to.
	_ = os.Remove(f.Name())
	return f, nil
}
