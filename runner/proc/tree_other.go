//go:build !linux

package proc

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// platform holds nothing: only Linux lets a process adopt orphans.
type platform struct{}

// setup says what this system lacks.
func (s *Supervisor) setup() error {
	s.note("%s does not tell what a running server has cost, so there is no CPU per request; nothing can be pinned; a daemon that leaves its process group is not found again; and who answers on a port cannot be told", runtime.GOOS)
	return nil
}

func (s *Supervisor) teardown() error { return nil }

// fork starts the process in a group of its own.
func (s *Supervisor) fork(p *Process, c Cmd, path string, attr *os.ProcAttr) error {
	if len(c.CPUs) > 0 {
		return unsupported("pin to CPU " + c.CPUs.String())
	}
	attr.Sys = groupAttr(c.User)
	var err error
	if p.os, err = os.StartProcess(path, c.Argv, attr); err != nil {
		return err
	}
	p.tree.root = p.os.Pid
	return nil
}

// tree is a started process and the others of its group.
type tree struct {
	root int
	mu   sync.Mutex
	last *Usage // once the first process has ended
}

func (s *Supervisor) newTree(_ string, _ int, l spec.Limits) (*tree, error) {
	if l != (spec.Limits{}) {
		s.note("limits are not held on %s", runtime.GOOS)
	}
	return &tree{}, nil
}

func (t *tree) rootEnded(state *os.ProcessState) {
	if state == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = &Usage{CPU: state.UserTime() + state.SystemTime(), Resolution: time.Microsecond, MaxRSS: maxRSS(state)}
}

// members gives the group's number for the whole group, since its processes
// are not listed.
func (t *tree) members() ([]int, error) {
	if signalGroup(t.root, 0) == nil {
		return []int{t.root}, nil
	}
	return nil, nil
}

func (t *tree) signal(sig syscall.Signal) bool { return signalGroup(t.root, sig) == nil }

func (t *tree) kill() { t.signal(syscall.SIGKILL) }

func (t *tree) remaining() ([]int, error) { return t.members() }

func (t *tree) disbanded() bool { return false }

func (t *tree) finish() error { return nil }

func (t *tree) remove() error { return nil }

func (t *tree) reason() string { return "" }

// usage is known only once the first process has ended.
func (t *tree) usage() (Usage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return Usage{}, unsupported("read the CPU time of a running process")
	}
	return *t.last, nil
}

func describe(pid int) string { return fmt.Sprintf("a process of group %d", pid) }

func (c *charge) killMarked() bool { return false }

// unsupported says that this system cannot do something.
func unsupported(what string) error {
	return fmt.Errorf("%s: not on %s: %w", what, runtime.GOOS, errors.ErrUnsupported)
}

// Available lists the CPUs that this process may use: all that there are.
func Available() (CPUs, error) {
	c := make(CPUs, runtime.NumCPU())
	for i := range c {
		c[i] = i
	}
	return c, nil
}

// PinSelf needs Linux.
func PinSelf(c CPUs) error { return unsupported("pin this process to CPU " + c.String()) }

// VerifyPins needs Linux, but for no CPUs, which means not pinned.
func (p *Process) VerifyPins(c CPUs) error {
	if len(c) == 0 {
		return nil
	}
	return unsupported("verify the pins of " + p.name)
}

// OwnsPort needs Linux.
func (p *Process) OwnsPort(port int) (bool, error) {
	return false, p.checkPort(netip.AddrPort{})
}

func (p *Process) listens() []string { return nil }

func (p *Process) checkPort(netip.AddrPort) error {
	return unsupported("find out who listens on a port")
}

// ReadTopology needs Linux.
func ReadTopology() (Topology, error) { return Topology{}, unsupported("read the CPU topology") }

// ReadCPUTimes needs Linux.
func ReadCPUTimes() (map[int]CPUTimes, error) { return nil, unsupported("read CPU times") }

// onMainThread does not matter where nothing is pinned.
func onMainThread() bool { return false }
