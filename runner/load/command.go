package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// commandDriver measures processes: each sample is one process, started,
// waited for and checked. It serves command-line tools and builds.
//
// Targets take turns a process at a time, in the schedule's order, so that
// the machine's drift hits all of them alike; the modes of [spec.Interleave]
// do not change that. The guard discards nothing here: a process lasts so
// long that some steal always falls into it.
type commandDriver struct {
	name   string
	p      *spec.Process
	expect *spec.Expect
	o      Options
}

func newCommand(s spec.Scenario, o Options) (Driver, error) {
	if s.Command == nil {
		return nil, fmt.Errorf("scenario %s: no command to run", s.ID())
	}
	return &commandDriver{name: s.ID(), p: s.Command, expect: s.Expect, o: o}, nil
}

// Interleaves is true: processes of the targets alternate.
func (d *commandDriver) Interleaves() bool { return true }

// captures reports whether standard output is looked at. Where it is not, it
// goes to the null device, which some tools notice and then do less work.
func (d *commandDriver) captures() bool { return d.p.Compare || d.expect != nil }

// Check runs the command once, with its steps before and after. Status is
// the exit status; Body is the standard output, empty where the scenario
// leaves output uncompared. A wrong exit status is an error.
func (d *commandDriver) Check(ctx context.Context, t Target) (*Response, error) {
	c, err := d.open(ctx, t)
	if err != nil {
		return nil, err
	}
	defer c.close(ctx)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var th thread
	defer th.restore()
	r, err := c.sample(ctx, &th)
	if err != nil {
		return nil, err
	}
	if r.failure != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, r.failure)
	}
	body, err := c.stdout.bytes()
	if err != nil {
		return nil, err
	}
	return &Response{Status: r.code, Body: body, Elapsed: r.wall}, c.close(ctx)
}

// Open resolves the commands of all targets and measures what starting an
// empty process costs.
func (d *commandDriver) Open(ctx context.Context, targets []Target) (Load, error) {
	l := &commandLoad{d: d}
	for _, t := range targets {
		c, err := d.open(ctx, t)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.copies = append(l.copies, c)
	}
	var err error
	if l.overhead, err = spawnOverhead(ctx, d.p.Run.Shell != "", d.p.Timeout); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// commandCopy is the command of one target, resolved, with its files open.
type commandCopy struct {
	d       *commandDriver
	t       Target
	child   child
	prepare *step
	cleanup *step
	stdin   *os.File
	stdout  *capture
	stderr  *capture
	dirty   bool // a process ran since the last cleanup
}

func (d *commandDriver) open(ctx context.Context, t Target) (_ *commandCopy, err error) {
	c := &commandCopy{d: d, t: t}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", t.Name, err), c.close(ctx))
		}
	}()
	env, err := environ(t.Env, d.p.Env, t.Vars, d.o.Env)
	if err != nil {
		return nil, err
	}
	argv, err := d.p.Run.Resolve(t.Vars, d.o.Env)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(t.Dir, d.p.Dir)
	path, err := lookPath(argv, dir, env)
	if err != nil {
		return nil, err
	}
	if c.prepare, err = newStep("prepare", d.p.Prepare, t, env, d.o.Env); err != nil {
		return nil, err
	}
	if c.cleanup, err = newStep("cleanup", d.p.Cleanup, t, env, d.o.Env); err != nil {
		return nil, err
	}
	in := os.DevNull
	if d.p.Stdin != "" {
		in = d.p.Stdin
	}
	if c.stdin, err = os.Open(in); err != nil {
		return nil, err
	}
	if c.stdout, err = newCapture("stdout", d.captures()); err != nil {
		return nil, err
	}
	if c.stderr, err = newCapture("stderr", true); err != nil {
		return nil, err
	}
	c.child = child{
		path: path, argv: argv, dir: dir, env: env, cpus: t.CPUs, timeout: d.p.Timeout,
		files: [3]*os.File{c.stdin, c.stdout.file, c.stderr.file},
	}
	return c, nil
}

// close runs the cleanup step if a process ran since the last one, and closes
// the files. It may be called more than once.
func (c *commandCopy) close(ctx context.Context) error {
	var err error
	if c.dirty {
		c.dirty = false
		// The cleanup step runs though the run was interrupted.
		err = c.cleanup.run(context.WithoutCancel(ctx))
	}
	if c.stdin != nil {
		c.stdin.Close()
		c.stdin = nil
	}
	c.stdout.close()
	c.stderr.close()
	return err
}

// processResult is what one process used, and whether it counts.
type processResult struct {
	usage
	failure *failure
}

// rewind makes the copy's files as they were before the first process.
func (c *commandCopy) rewind() error {
	if c.d.p.Stdin != "" {
		if _, err := c.stdin.Seek(0, 0); err != nil {
			return fmt.Errorf("stdin of %s: %w", c.t.Name, err)
		}
	}
	return errors.Join(c.stdout.reset(), c.stderr.reset())
}

// sample runs one process. An error means that it could not be run at all.
func (c *commandCopy) sample(ctx context.Context, th *thread) (processResult, error) {
	c.dirty = true
	if err := c.prepare.run(ctx); err != nil {
		return processResult{}, fmt.Errorf("%s: %w", c.t.Name, err)
	}
	if err := c.rewind(); err != nil {
		return processResult{}, err
	}
	u, err := c.child.run(ctx, th)
	if err != nil {
		return processResult{}, fmt.Errorf("%s: %w", c.t.Name, err)
	}
	r := processResult{usage: u}
	r.failure, err = c.judge(u)
	return r, err
}

// judge checks how a process ended and what it printed, but not against
// other processes.
func (c *commandCopy) judge(u usage) (*failure, error) {
	switch {
	case u.timedOut:
		return failf(Timeout, "no end after %v: killed%s", c.d.p.Timeout, c.stderr.hint()), nil
	case u.signal != "":
		return failf(Other, "ended by %s%s", u.signal, c.stderr.hint()), nil
	case u.code != c.d.p.Exit:
		return failf(Status, "exit status %d, expected %d%s", u.code, c.d.p.Exit, c.stderr.hint()), nil
	}
	if c.d.expect == nil {
		return nil, nil
	}
	body, err := c.stdout.bytes()
	if err != nil {
		return nil, err
	}
	ok, err := c.d.expect.Eval(u.code, body, nil)
	if err != nil {
		return failf(Body, "expect %s: %v", c.d.expect.Source, err), nil
	}
	if !ok {
		return failf(Body, "expect %s: not so for exit status %d and stdout %.80q", c.d.expect.Source, u.code, body), nil
	}
	return nil, nil
}

// spawnOverhead is the median wall time of a process that does nothing,
// started the way in which the scenario's are.
func spawnOverhead(ctx context.Context, shell bool, timeout time.Duration) (time.Duration, error) {
	argv := []string{"true"}
	if shell {
		argv = []string{"sh", "-c", ":"}
	}
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	path, err := lookPath(argv, "", env)
	if err != nil {
		return 0, nil // a system without it: nothing to compare with
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var th thread
	c := child{path: path, argv: argv, env: env, timeout: timeout, files: [3]*os.File{null, null, null}}
	walls := make([]time.Duration, overheadSamples)
	for i := range walls {
		u, err := c.run(ctx, &th)
		if err != nil {
			return 0, fmt.Errorf("measuring what a process costs: %w", err)
		}
		walls[i] = u.wall
	}
	return median(walls), nil
}
