package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// killPatience is how long a killed tree may take to be gone. A process in an
// uninterruptible wait (a dead network file system) may never be.
const killPatience = 10 * time.Second

// Process is a command that was started, with everything that it started in turn.
type Process struct {
	name    string
	log     string
	offset  int64 // size of the log before the start
	stays   bool
	sup     *Supervisor
	os      *os.Process
	tree    *tree
	started time.Time
	done    chan struct{} // closed when nothing is left
	doomed  chan struct{} // closed when what is left is to be killed
	doom    sync.Once

	mu      sync.Mutex
	asked   bool  // we asked it to end
	verdict error // why we ended it, where that is to be told

	// Written before done is closed, read after.
	ended time.Time
	state *os.ProcessState
	err   error
}

// openFiles opens standard input, output and error.
func (p *Process) openFiles(c Cmd) (files []*os.File, err error) {
	stdin := c.Stdin
	if stdin == "" {
		stdin = os.DevNull
	}
	in, err := os.Open(stdin)
	if err != nil {
		return nil, err
	}
	files = append(files, in)
	// The child writes to the file itself: nobody has to copy its output
	// while something is measured, and no pipe can fill up.
	name := c.Log
	if name == "" {
		name = os.DevNull
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return files, err
	}
	files = append(files, out, out)
	if c.Log != "" {
		p.offset, err = out.Seek(0, io.SeekEnd)
	}
	return files, err
}

// streams are the files that the process gets, of those that openFiles opened.
func (c Cmd) streams(files []*os.File) []*os.File {
	out := slices.Clone(files)
	if c.Input != nil {
		out[0] = c.Input
	}
	if c.Output != nil {
		out[1] = c.Output
	}
	return out
}

// watch waits for the process and whatever stays in the background for it.
func (p *Process) watch() {
	state, err := p.os.Wait()
	// Now, and not when the rest is cleared away: whoever finds it dead may
	// ask it to end before that.
	p.ended = time.Now()
	asked := p.wasAsked()
	p.tree.rootEnded(state)
	if err == nil && p.stays && (state.Success() || asked) && p.background() {
		p.ended = time.Now()
		asked = p.wasAsked()
	}
	killErr := p.killAll()
	p.state = state
	p.err = errors.Join(p.howEnded(err, asked), killErr, p.tree.finish())
	p.sup.forget(p)
	close(p.done)
}

// howEnded is what there is to tell of the end; err is that of waiting for it.
func (p *Process) howEnded(err error, asked bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		return fmt.Errorf("wait for %s: %w", p.name, err)
	case p.verdict != nil:
		return p.verdict
	case !asked && (p.stays || !p.state.Success()):
		return p.exitError()
	}
	return nil
}

// background waits until nothing is left of a command whose first process has
// ended well or on demand, or until the rest is to be killed. It reports
// whether there was anything to wait for.
func (p *Process) background() (waited bool) {
	told := false
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		pids, err := p.tree.members()
		if err == nil && len(pids) == 0 {
			pids, err = p.tree.remaining()
		}
		if err != nil || len(pids) == 0 {
			return waited
		}
		waited = true
		if !told && p.tree.disbanded() {
			p.sup.dog.tell(fmt.Sprintf("gone %d", p.os.Pid)) // its number may soon be another's
			told = true
		}
		select {
		case <-p.doomed:
			return true
		case <-time.After(wait):
		}
	}
}

// wasAsked reports whether the process was asked to end.
func (p *Process) wasAsked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// exitError tells the end of a process that nobody asked for.
func (p *Process) exitError() *ExitError {
	code, sig := exitOf(p.state)
	return &ExitError{Name: p.name, PID: p.os.Pid, Code: code, Signal: sig,
		After: p.ended.Sub(p.started), Reason: p.tree.reason()}
}

// obey kills the process when ctx ends.
func (p *Process) obey(ctx context.Context) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.mu.Lock()
		if p.verdict == nil && !p.asked {
			p.verdict = p.cutShort(ctx)
		}
		p.mu.Unlock()
		p.end(syscall.SIGKILL, 0) // what could not be killed is in Err
	}
}

// cutShort says that ctx ended before the process did.
func (p *Process) cutShort(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s (pid %d) was still running after %s and was killed: %w",
			p.name, p.os.Pid, roundTime(time.Since(p.started)), context.Cause(ctx))
	}
	return fmt.Errorf("%s (pid %d) was killed: %w", p.name, p.os.Pid, context.Cause(ctx))
}

// Name is the command's name.
func (p *Process) Name() string { return p.name }

// PID is the number of the process that was started, the first of its tree.
func (p *Process) PID() int { return p.os.Pid }

// Done is closed when the process has ended and nothing of it is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says in words how the process ended: nil while it runs and where it was
// asked to end by Stop or Close; an [*ExitError] where it ended by itself.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Tail is the end of what the process has written to its log so far.
func (p *Process) Tail(lines int) string {
	if p.log == "" {
		return ""
	}
	return tailFile(p.log, p.offset, lines)
}

// Stop asks the whole process group to end, with the signal that the spec
// names, kills what is left when the time is up, and waits until nothing is.
// It returns nil if the process had ended before. An error names what is left.
func (p *Process) Stop(how spec.Stop) error {
	name := how.Signal
	if name == "" {
		name = "TERM"
	}
	sig := signalNamed(name)
	if sig == 0 {
		return fmt.Errorf("stop %s: found signal %q, expected TERM, INT, QUIT, HUP, KILL, USR1 or USR2", p.name, name)
	}
	timeout := how.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	return p.end(sig, timeout)
}

// end sends a signal to the group, waits, and kills.
func (p *Process) end(sig syscall.Signal, patience time.Duration) error {
	select {
	case <-p.done:
		return p.leftover()
	default:
	}
	p.mu.Lock()
	p.asked = true
	p.mu.Unlock()
	p.tree.usage() // its peak of memory cannot be read once it has ended
	if sig != syscall.SIGKILL && p.tree.signal(sig) {
		t := time.NewTimer(patience)
		defer t.Stop()
		select {
		case <-p.done:
			return p.leftover()
		case <-t.C:
		}
	}
	p.doom.Do(func() { close(p.doomed) })
	p.tree.kill()
	t := time.NewTimer(killPatience + time.Second)
	defer t.Stop()
	select {
	case <-p.done:
		return p.leftover()
	case <-t.C:
		return p.stuck()
	}
}

// leftover is the part of Err that tells of processes that could not be ended.
func (p *Process) leftover() error {
	var s *stuckError
	if errors.As(p.err, &s) {
		return s
	}
	return nil
}

// stuckError names processes that outlived a KILL.
type stuckError struct{ text string }

func (e *stuckError) Error() string { return e.text }

// killAll kills what is left of the tree and waits for it to be gone.
func (p *Process) killAll() error {
	deadline := time.Now().Add(killPatience)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		pids, err := p.tree.remaining()
		if err == nil && len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(err, p.stuck())
		}
		p.tree.kill()
		time.Sleep(wait)
	}
}

// stuck names what is left.
func (p *Process) stuck() error {
	pids, _ := p.tree.remaining()
	text := p.name + " did not end after KILL"
	for _, pid := range pids {
		text += fmt.Sprintf("; pid %d is left: %s", pid, describe(pid))
	}
	return &stuckError{text}
}

// Usage reads what the whole tree has cost since its start; after its end,
// what it had cost by then. On Linux it takes some ten microseconds for each
// process, so it may be read at the borders of a window.
func (p *Process) Usage() (Usage, error) {
	u, err := p.tree.usage()
	if err != nil {
		return u, fmt.Errorf("read the CPU time of %s: %w", p.name, err)
	}
	return u, nil
}
