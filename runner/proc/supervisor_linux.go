package proc

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// platform is the part of a Supervisor that only Linux has.
type platform struct {
	cgroup   *cgroup // nil where none can be written
	cpus     CPUs    // what this process could use when the supervisor was made
	children bool    // the kernel lists children per thread
	chld     chan os.Signal
	stopped  sync.WaitGroup
}

// setup makes this process adopt orphans and looks what the machine allows.
func (s *Supervisor) setup() error {
	cpus, err := Available()
	if err != nil {
		return err
	}
	s.plat.cpus = cpus
	s.plat.children = hasChildrenFiles()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	if s.opt.NoCgroup {
		err = errors.New("they are turned off")
	} else {
		err = s.setupCgroup()
	}
	if err != nil {
		s.note("control groups cannot be used (%v): the CPU time of processes that ended inside a server is known to 20 ms only, and a daemon is found by its environment", err)
	}
	s.plat.chld = make(chan os.Signal, 1)
	signal.Notify(s.plat.chld, unix.SIGCHLD)
	s.plat.stopped.Go(func() {
		for range s.plat.chld {
			s.reap()
		}
	})
	return nil
}

// setupCgroup makes the run's control group and tries to start a process in one.
func (s *Supervisor) setupCgroup() error {
	g, err := runCgroup(s.id)
	if err != nil {
		return err
	}
	// The watchdog first: we may die as soon as the group is there.
	if err := s.dog.tell("box " + g.dir); err != nil {
		return err
	}
	if err := g.make(); err != nil {
		return err
	}
	if err := tryCgroup(g); err != nil {
		return errors.Join(err, g.remove())
	}
	s.plat.cgroup = g
	return nil
}

// tryCgroup tries to start a process inside a group: a folder that can be made
// does not mean yet that processes may enter it. The program does not exist,
// so the error tells whether the kernel got as far as looking for it.
func tryCgroup(g *cgroup) error {
	f, err := g.open()
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := os.StartProcess("/dev/null/none", []string{"none"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}})
	if err == nil {
		_, err = p.Wait()
		return err
	}
	if errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return fmt.Errorf("start a process in %s: %w", g.dir, errors.Unwrap(err))
}

// teardown undoes setup, except for the adoption: that does no harm.
func (s *Supervisor) teardown() error {
	signal.Stop(s.plat.chld)
	close(s.plat.chld)
	s.plat.stopped.Wait()
	s.reap()
	if s.plat.cgroup == nil {
		return nil
	}
	return s.plat.cgroup.remove()
}

// fork starts the process from the calling thread, which must be the spawner's.
func (s *Supervisor) fork(p *Process, c Cmd, path string, attr *os.ProcAttr) error {
	cpus := c.CPUs
	if len(cpus) == 0 {
		cpus = s.plat.cpus
	}
	// A child inherits the affinity of the thread that forks it, so it never
	// runs elsewhere, not even while it is loaded.
	own, err := affinity(0)
	if err != nil {
		return err
	}
	if err := setAffinity(0, cpus); err != nil {
		return fmt.Errorf("pin to CPU %s: %w", cpus, err)
	}
	defer setAffinity(0, own) // it is as it was, so this cannot fail
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL, Credential: c.User.credential()}
	if p.tree.cg != nil {
		dir, err := p.tree.cg.open()
		if err != nil {
			return err
		}
		defer dir.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
	}
	floor, err := peakRSS(os.Getpid())
	if err != nil {
		return err
	}
	if p.os, err = execute(p.tree.limits, path, c.Argv, attr); err != nil {
		return err
	}
	p.tree.started(p.os.Pid, floor)
	if l := p.tree.limits; l != nil && (l.poll || l.partly) {
		go p.watchMemory(l)
	}
	return nil
}

// execute starts a program, by way of a launcher where it has limits. A file
// that was written just now may still be open in a child that another thread
// has forked and that has not executed its own program yet (golang.org/issue/22315):
// that lasts for less than a millisecond, so it is tried again.
func execute(l *limiter, path string, argv []string, attr *os.ProcAttr) (p *os.Process, err error) {
	for wait := time.Millisecond; wait < 100*time.Millisecond; wait *= 2 {
		if l != nil {
			p, err = launchThrough(l.order, path, argv, attr)
		} else {
			p, err = os.StartProcess(path, argv, attr)
		}
		if !errors.Is(err, unix.ETXTBSY) {
			return p, err
		}
		time.Sleep(wait)
	}
	return p, err
}

// family returns a function that lists the children of a process.
func (pl *platform) family() (func(pid int) ([]int, error), error) {
	if pl.children {
		return childrenOf, nil
	}
	all, err := allProcesses()
	if err != nil {
		return nil, err
	}
	kids := map[int][]int{}
	for _, s := range all {
		kids[s.ppid] = append(kids[s.ppid], s.pid)
	}
	return func(pid int) ([]int, error) { return kids[pid], nil }, nil
}

// reap waits for adopted processes that have ended, and counts what they have
// cost. Processes of which nothing is known are left alone: another part of
// this program may have started them and be waiting for them.
func (s *Supervisor) reap() {
	kids, err := s.plat.family()
	if err != nil {
		return
	}
	ours, err := kids(os.Getpid())
	if err != nil {
		return
	}
	s.mu.Lock()
	trees := make([]*tree, 0, len(s.procs))
	for p := range s.procs {
		trees = append(trees, p.tree)
	}
	s.mu.Unlock()
	for _, pid := range ours {
		st, err := readStat(pid)
		if err != nil {
			continue
		}
		for _, t := range trees {
			if t.reapIf(st) != reapNot {
				break
			}
		}
	}
}

// reaping is what came of trying to wait for a process.
type reaping int

const (
	reapNot   reaping = iota // it is not of the tree, or is waited for elsewhere
	reapDone                 // it was waited for, or lives
	reapLater                // it has ended but for some thread
)

// reapIf waits for an adopted process of the tree where it has ended.
func (t *tree) reapIf(s stat) reaping {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.pid == t.root || !t.owns(s) {
		return reapNot
	}
	t.known[s.pid] = s.start
	if !s.ended() {
		return reapDone
	}
	var ru syscall.Rusage
	pid, err := syscall.Wait4(s.pid, nil, unix.WNOHANG, &ru)
	if err == nil && pid == 0 {
		return reapLater
	}
	if err == nil {
		t.count(&ru)
	}
	delete(t.known, s.pid)
	return reapDone
}

// describe tells of a process for an error message.
func describe(pid int) string { return commandLine(pid) }

// killMarked kills what the watchdog has to find by itself: all processes in
// the control groups, and all that carry the mark. It reports whether any lived.
func (c *charge) killMarked() (left bool) {
	for _, dir := range c.boxes {
		g := &cgroup{dir}
		if pids, _ := g.pids(); len(pids) > 0 {
			left = true
			g.kill()
		} else {
			g.remove()
		}
	}
	all, err := allProcesses()
	if err != nil || c.mark == "" {
		return left
	}
	for _, s := range all {
		if !s.ended() && hasEnvPrefix(s.pid, c.mark) && unix.Kill(s.pid, unix.SIGKILL) == nil {
			left = true
		}
	}
	return left
}
