package load

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is a process to be.
type child struct {
	path    string
	argv    []string
	dir     string
	env     []string
	cpus    []int // empty: not pinned
	files   [3]*os.File
	timeout time.Duration // 0: none
}

// usage is how a process ended and what it used.
type usage struct {
	wall         time.Duration // from before the fork to the end of the process
	user, system time.Duration // with the children that it waited for
	maxRSS       int64         // bytes, of the largest of them
	rssHidden    bool          // the peak may be that of this process; see tracePeak
	code         int           // exit status
	signal       string        // the signal that ended it; empty: it exited
	timedOut     bool
}

// thread is the CPU affinity of a locked thread, on which children are started.
// The zero value is a thread that was not changed yet.
type thread struct {
	before  *unix.CPUSet
	current []int
}

// pin moves the thread, and so its future children, to the CPUs; none: back
// to where it was.
func (t *thread) pin(cpus []int) error {
	if len(cpus) == 0 {
		return t.restore()
	}
	if t.before != nil && slices.Equal(t.current, cpus) {
		return nil
	}
	if t.before == nil {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return fmt.Errorf("reading the CPU affinity: %w", err)
		}
		t.before = &set
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pinning to CPUs %v: %w", cpus, err)
	}
	t.current = cpus
	return nil
}

func (t *thread) restore() error {
	if t.before == nil {
		return nil
	}
	if err := unix.SchedSetaffinity(0, t.before); err != nil {
		return fmt.Errorf("restoring the CPU affinity: %w", err)
	}
	t.before, t.current = nil, nil
	return nil
}

// killer kills the process group of one child, unless the child has been
// reaped: its number may be another's by then.
type killer struct {
	mu   sync.Mutex
	pid  int
	done bool // ended or to be ended
}

func (k *killer) started(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pid = pid
	if k.done {
		syscall.Kill(-pid, syscall.SIGKILL)
	}
}

func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.done && k.pid != 0 {
		syscall.Kill(-k.pid, syscall.SIGKILL)
	}
	k.done = true
}

// run runs the child to its end, in a process group of its own of which
// nothing is left afterwards. The caller holds its thread locked. Between the
// two clock readings there are the fork, the child's life and one waitid, as
// in hyperfine.
func (c *child) run(ctx context.Context, th *thread) (usage, error) {
	if err := th.pin(c.cpus); err != nil {
		return usage{}, err
	}
	var k killer
	stop := context.AfterFunc(ctx, k.kill)
	defer stop()
	if c.timeout > 0 {
		defer time.AfterFunc(c.timeout, k.kill).Stop()
	}
	attr := &syscall.ProcAttr{Dir: c.dir, Env: c.env, Files: c.fds(), Sys: &syscall.SysProcAttr{Setpgid: true}}
	own := selfMaxRSS()
	start := time.Now()
	pid, err := syscall.ForkExec(c.path, c.argv, attr)
	if err != nil {
		return usage{}, fmt.Errorf("starting %s: %w", c.path, err)
	}
	k.started(pid)
	waitExited(pid)
	wall := time.Since(start)
	k.kill() // what the child left behind in its group
	u, err := reap(pid)
	if err != nil {
		return usage{}, err
	}
	if ctx.Err() != nil {
		return usage{}, context.Cause(ctx)
	}
	u.wall = wall
	u.timedOut = c.timeout > 0 && wall >= c.timeout && u.signal != ""
	u.rssHidden = u.maxRSS <= own+own/16
	return u, nil
}

func (c *child) fds() []uintptr {
	fds := make([]uintptr, len(c.files))
	for i, f := range c.files {
		fds[i] = f.Fd()
	}
	return fds
}

// waitExited waits until the process has ended and leaves it to be reaped,
// so that its number stays its own.
func waitExited(pid int) {
	var info [128]byte // siginfo_t
	for {
		_, _, e := syscall.Syscall6(syscall.SYS_WAITID, unix.P_PID, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if e != syscall.EINTR {
			return
		}
	}
}

func reap(pid int) (usage, error) {
	var ws syscall.WaitStatus
	var ru syscall.Rusage
	for {
		_, err := syscall.Wait4(pid, &ws, 0, &ru)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return usage{}, fmt.Errorf("waiting for process %d: %w", pid, err)
		}
		break
	}
	u := usage{
		user:   time.Duration(ru.Utime.Nano()),
		system: time.Duration(ru.Stime.Nano()),
		maxRSS: ru.Maxrss << 10,
		code:   ws.ExitStatus(),
	}
	if ws.Signaled() {
		u.signal = unix.SignalName(ws.Signal())
	}
	return u, nil
}

func selfMaxRSS() int64 {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return ru.Maxrss << 10
}

// ownGroup makes cmd lead a process group that dies with its context.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// unnamedFile is a file in memory.
func unnamedFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
