package proc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-bench/tandem/spec"
)

// tree is a started process with all that descends from it. Its members are
// known by the control group where there is one; otherwise as descendants,
// as members of the process group, and, where a daemon has left both and was
// adopted by us, by the mark in its environment.
//
// A process whose parent ignores SIGCHLD, and a daemon that ends before it was
// seen, take their CPU time with them where there is no control group.
type tree struct {
	sup    *Supervisor
	mark   string
	cg     *cgroup  // nil where control groups cannot be written
	limits *limiter // nil without limits

	mu       sync.Mutex
	root     int            // 0 before the start
	reaped   bool           // the root has ended and was waited for
	disband  bool           // nothing is left in the root's process group: its number may be another's
	known    map[int]uint64 // processes seen in the tree, and when they began
	ended    time.Duration  // CPU time of what was waited for by us
	peak     int64          // the highest sum of peaks of living processes seen
	largest  int64          // the largest peak of an ended process
	floor    int64          // our own peak at the start
	cpu      time.Duration  // the control group's last reading
	finished bool           // nothing is left, nothing changes any more
}

// newTree prepares a place for a process that is not started yet.
func (s *Supervisor) newTree(mark string, n int, l spec.Limits) (*tree, error) {
	t := &tree{sup: s, mark: mark, known: map[int]uint64{}, limits: s.limit(l, n)}
	if s.plat.cgroup == nil {
		return t, nil
	}
	var err error
	if t.cg, err = s.plat.cgroup.child(fmt.Sprint(n)); err != nil {
		return nil, errors.Join(err, t.limits.remove())
	}
	return t, nil
}

// started tells the number of the first process.
func (t *tree) started(pid int, floor int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.root, t.floor = pid, floor
}

// rootEnded tells that the first process was waited for.
func (t *tree) rootEnded(state *os.ProcessState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reaped = true
	if state != nil {
		t.count(state.SysUsage().(*syscall.Rusage))
	}
}

// count adds what an ended process, with the children that it waited for, has cost.
func (t *tree) count(ru *syscall.Rusage) {
	t.ended += time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	t.largest = max(t.largest, ru.Maxrss<<10)
}

// members lists the living processes of the tree.
func (t *tree) members() ([]int, error) {
	if t.cg != nil {
		return t.cg.pids()
	}
	all, err := t.scan()
	return living(all), err
}

// remaining is members for a decision that must not err: whether all have
// ended. Lists of children are cheap, but leave some out while others end.
func (t *tree) remaining() ([]int, error) {
	if t.cg != nil {
		return t.cg.pids()
	}
	all, err := allProcesses()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookAtGroup()
	var own []stat
	for _, s := range all {
		if t.owns(s) {
			t.known[s.pid] = s.start
			own = append(own, s)
		}
	}
	return living(own), nil
}

// living picks those that have not ended.
func living(all []stat) []int {
	var pids []int
	for _, s := range all {
		if !s.ended() {
			pids = append(pids, s.pid)
		}
	}
	return pids
}

// scan reads the status of every process of the tree, those included that
// have ended but were not waited for.
func (t *tree) scan() ([]stat, error) {
	kids, err := t.sup.plat.family()
	if err != nil {
		return nil, err
	}
	ours, err := kids(os.Getpid())
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookAtGroup()
	w := walk{kids: kids, seen: map[int]bool{}}
	for _, pid := range ours {
		if s, err := readStat(pid); err == nil && t.owns(s) {
			w.from(s)
		}
	}
	for pid, start := range t.known {
		if w.seen[pid] {
			continue
		}
		if s, err := readStat(pid); err == nil && s.start == start {
			w.from(s) // left out above, while a brother of it ended
		} else {
			delete(t.known, pid)
		}
	}
	for _, s := range w.found {
		t.known[s.pid] = s.start
	}
	return w.found, w.err
}

// owns reports whether a process belongs to the tree, as far as that can be
// told without its ancestors.
func (t *tree) owns(s stat) bool {
	switch start, known := t.known[s.pid]; {
	case s.pid == t.root:
		return !t.reaped
	case known && start == s.start, s.pgrp == t.root && !t.disband:
		return true
	case s.ended() || t.sup.isRoot(s.pid):
		return false
	}
	return hasEnv(s.pid, t.mark)
}

// lookAtGroup finds out whether the process group has come to its end.
func (t *tree) lookAtGroup() {
	if t.reaped && !t.disband {
		t.disband = errors.Is(unix.Kill(-t.root, 0), unix.ESRCH)
	}
}

// disbanded reports whether the process group has come to its end.
func (t *tree) disbanded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookAtGroup()
	return t.disband
}

// isRoot reports whether a process is the first of a tree.
func (s *Supervisor) isRoot(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.procs {
		if p.os.Pid == pid {
			return true
		}
	}
	return false
}

// walk collects processes and all their descendants.
type walk struct {
	kids  func(pid int) ([]int, error)
	seen  map[int]bool
	found []stat
	err   error
}

func (w *walk) from(s stat) {
	if w.seen[s.pid] {
		return
	}
	w.seen[s.pid] = true
	w.found = append(w.found, s)
	pids, err := w.kids(s.pid)
	if err != nil && !gone(err) {
		w.err = err
	}
	for _, pid := range pids {
		if k, err := readStat(pid); err == nil {
			w.from(k)
		}
	}
}

// gone reports whether an error of /proc means that the process has ended.
func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// signal sends a signal to the process group and to members outside of it,
// and reports whether anything got it.
func (t *tree) signal(sig syscall.Signal) bool {
	disbanded := t.disbanded()
	sent := !disbanded && signalGroup(t.root, sig) == nil
	pids, _ := t.members()
	for _, pid := range pids {
		s, err := readStat(pid)
		if err == nil && (disbanded || s.pgrp != t.root) && unix.Kill(pid, sig) == nil {
			sent = true
		}
	}
	return sent
}

// kill kills every process of the tree that can be seen now.
func (t *tree) kill() {
	if t.cg != nil {
		t.cg.kill()
	}
	t.signal(unix.SIGKILL)
}

// finish is called when nothing of the tree lives any more: it waits for
// what only waits for that, keeps the final reading, and removes the control
// groups.
func (t *tree) finish() error {
	for range 1000 {
		if !t.reapAll() {
			break
		}
		time.Sleep(time.Millisecond) // a thread of one is still on its way out
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	if t.cg != nil {
		if cpu, err := t.cg.cpu(); err == nil {
			t.cpu = cpu
		}
	}
	return t.remove()
}

// reapAll waits for all children of ours that belong to the tree and have
// ended, and reports whether one could not be waited for yet.
func (t *tree) reapAll() (again bool) {
	all, err := allProcesses()
	if err != nil {
		return false
	}
	for _, s := range all {
		if s.ppid == os.Getpid() && s.ended() && t.reapIf(s) == reapLater {
			again = true
		}
	}
	return again
}

// remove removes the control groups, which must be empty.
func (t *tree) remove() error {
	err := t.limits.remove()
	if t.cg != nil {
		err = errors.Join(err, t.cg.removeSoon())
	}
	return err
}

// reason is what is known about a death beyond its signal.
func (t *tree) reason() string {
	if t.limits == nil {
		return ""
	}
	return t.limits.reason()
}
