package proc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Supervisor starts processes and sees to it that none outlives it: each gets
// a process group and, where control groups can be written, one of those;
// daemons are adopted by us instead of by init (PR_SET_CHILD_SUBREAPER); and
// a watchdog kills what is left when we die ourselves, in whatever way. So it
// is safe, if less polite, to exit without Close.
//
// One supervisor serves a whole run. Make it before [PinSelf], since its
// unpinned processes get the CPUs that this process had when it was made. Its
// methods may be called from several goroutines.
type Supervisor struct {
	opt  Options
	id   string // of this supervisor, in the environment of all its processes
	dog  *watchdog
	jobs chan func()   // run one after the other on the thread that starts processes
	quit chan struct{} // closed when that thread is to end
	plat platform

	mu     sync.Mutex
	notes  []string
	procs  map[*Process]bool // started and not yet gone
	count  int
	closed bool

	closing  sync.Once
	closeErr error
}

// markName is the variable in the environment of every process started here.
// Its value finds daemons that left their process group.
const markName = "TANDEM_PROCESS"

// New prepares this process to be a parent: it adopts orphans from now on,
// and a watchdog runs. Main must call [WatchdogMain] first thing.
func New(o Options) (*Supervisor, error) {
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	b := make([]byte, 8)
	rand.Read(b) // never fails since Go 1.24
	s := &Supervisor{opt: o, id: hex.EncodeToString(b), jobs: make(chan func()), quit: make(chan struct{}), procs: map[*Process]bool{}}
	var err error
	if s.dog, err = startWatchdog(o.Executable); err != nil {
		return nil, err
	}
	if err := s.setup(); err != nil {
		return nil, errors.Join(err, s.dog.dismiss())
	}
	if err := s.dog.tell("mark " + s.mark("")); err != nil {
		return nil, errors.Join(err, s.dog.dismiss())
	}
	go s.spawner()
	return s, nil
}

// Notes says in plain words what this machine does not allow and what
// follows from it, once each.
func (s *Supervisor) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// note adds a note, unless it is there already.
func (s *Supervisor) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// mark is the environment entry of the process with this number, or what the
// entries of all processes of this supervisor begin with.
func (s *Supervisor) mark(n string) string {
	return markName + "=" + s.id + "." + n
}

// spawner runs jobs on one thread that lives as long as the supervisor. The
// kernel kills a child with a parent-death signal when the thread that forked
// it ends, which an ordinary goroutine's thread may do at any time; and the
// affinity of a thread is what its children start with. The runtime starts no
// new thread from a locked one, so nothing else inherits that affinity.
func (s *Supervisor) spawner() {
	runtime.LockOSThread()
	if onMainThread() {
		// The affinity of the main thread is taken for that of the process,
		// by ourselves and by others. While this one is locked to it,
		// another goroutine cannot be.
		other := make(chan struct{})
		go func() {
			close(other)
			s.spawner()
		}()
		<-other
		runtime.UnlockOSThread()
		return
	}
	for {
		select {
		case job := <-s.jobs:
			job()
		case <-s.quit:
			return // without unlocking: the thread ends as well
		}
	}
}

// onThread runs f on the spawner's thread and waits for it.
func (s *Supervisor) onThread(f func() error) error {
	done := make(chan error, 1)
	select {
	case s.jobs <- func() { done <- f() }:
		return <-done
	case <-s.quit:
		return errClosed
	}
}

var errClosed = errors.New("the supervisor is closed")

// Start starts a command that stays, such as a server. When ctx ends, the
// process and everything that it started are killed. A command whose first
// process ends with status 0 and leaves others behind is taken for one that
// went into the background, and lives as long as they do.
func (s *Supervisor) Start(ctx context.Context, c Cmd) (*Process, error) {
	return s.start(ctx, c, true)
}

// Run runs a command to completion, then ends whatever it left running. The
// error is nil for exit status 0, an [*ExitError] for another end, and says
// so where ctx ended first; the Result is filled in all three cases.
func (s *Supervisor) Run(ctx context.Context, c Cmd) (Result, error) {
	p, err := s.start(ctx, c, false)
	if err != nil {
		return Result{Code: -1}, err
	}
	<-p.Done()
	r := Result{Wall: p.ended.Sub(p.started), Tail: p.Tail(20), Code: -1}
	if p.state != nil {
		r.Code, r.Signal = exitOf(p.state)
	}
	r.Usage, err = p.Usage()
	if p.err != nil {
		return r, p.err
	}
	return r, err
}

// start starts a command; stays is false for one that runs to completion.
func (s *Supervisor) start(ctx context.Context, c Cmd, stays bool) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, context.Cause(ctx))
	}
	s.mu.Lock()
	s.count++
	n, closed := s.count, s.closed
	s.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("start %s: %w", c.Name, errClosed)
	}
	p := &Process{name: c.Name, log: c.Log, sup: s, stays: stays, done: make(chan struct{}), doomed: make(chan struct{})}
	files, err := p.openFiles(c)
	defer closeAll(files)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	if err := s.launch(p, c, n, files); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	if err := s.track(p); err != nil {
		return nil, err
	}
	go p.watch()
	go p.obey(ctx)
	return p, nil
}

// launch makes the process.
func (s *Supervisor) launch(p *Process, c Cmd, n int, files []*os.File) error {
	path, err := findProgram(c)
	if err != nil {
		return err
	}
	mark := s.mark(fmt.Sprint(n))
	if p.tree, err = s.newTree(mark, n, c.Limits); err != nil {
		return err
	}
	env := append(withoutEnv(c.Env, markName), mark)
	err = s.onThread(func() error {
		p.started = time.Now()
		return s.fork(p, c, path, &os.ProcAttr{Dir: c.Dir, Env: env, Files: c.streams(files)})
	})
	if err != nil {
		return errors.Join(explainStart(c, path, err), p.tree.remove())
	}
	return nil
}

// track registers a process with the watchdog and for Close. If that cannot
// be, the process is killed: nothing unwatched may run.
func (s *Supervisor) track(p *Process) error {
	err := s.dog.tell(fmt.Sprintf("group %d", p.os.Pid))
	s.mu.Lock()
	if s.closed && err == nil {
		err = errClosed
	}
	if err == nil {
		s.procs[p] = true
	}
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	p.tree.kill()
	p.os.Wait()
	return fmt.Errorf("start %s: %w", p.name, errors.Join(err, p.tree.remove()))
}

// forget is track's opposite, once nothing of the process is left.
func (s *Supervisor) forget(p *Process) {
	s.mu.Lock()
	delete(s.procs, p)
	s.mu.Unlock()
	s.dog.tell(fmt.Sprintf("gone %d", p.os.Pid)) // a dead watchdog needs no telling
}

// Close ends everything that still runs, TERM first, and waits until it is
// gone. Every call waits and returns the same. An error names what is left.
func (s *Supervisor) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Supervisor) close() error {
	s.mu.Lock()
	s.closed = true
	left := slices.Collect(maps.Keys(s.procs))
	s.mu.Unlock()

	errs := make([]error, len(left))
	var wg sync.WaitGroup
	for i, p := range left {
		wg.Go(func() { errs[i] = p.end(syscall.SIGTERM, s.opt.Grace) })
	}
	wg.Wait()
	close(s.quit)
	return errors.Join(errors.Join(errs...), s.teardown(), s.dog.dismiss())
}

// findProgram resolves the program of a command as execvp(3) would within
// the command's own folder and PATH, not ours.
func findProgram(c Cmd) (string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", errors.New("the command is empty")
	}
	name := c.Argv[0]
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	path := lookupEnv(c.Env, "PATH")
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		full := dir + "/" + name
		at := full
		if !strings.HasPrefix(at, "/") && c.Dir != "" {
			at = c.Dir + "/" + full
		}
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && executable(at) {
			return full, nil
		}
	}
	return "", fmt.Errorf("program %q was not found in PATH (%s)", name, path)
}

// explainStart says why a program could not be started. The kernel's error is
// the same whether the folder, the program or its interpreter is missing.
func explainStart(c Cmd, path string, err error) error {
	if c.Dir != "" {
		if info, e := os.Stat(c.Dir); e != nil || !info.IsDir() {
			return fmt.Errorf("working folder %s does not exist", c.Dir)
		}
	}
	at := path
	if !strings.HasPrefix(at, "/") && c.Dir != "" {
		at = c.Dir + "/" + path
	}
	if _, e := os.Stat(at); errors.Is(err, os.ErrNotExist) && e == nil {
		return fmt.Errorf("%s exists, but the interpreter in its first line or the loader that it needs does not: %w", path, err)
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return fmt.Errorf("%s is not a program of this machine, or a script without a #! line: %w", path, err)
	}
	return err
}

func lookupEnv(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v // the last one counts
		}
	}
	return value
}

func withoutEnv(env []string, name string) []string {
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			out = append(out, e)
		}
	}
	return out
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
