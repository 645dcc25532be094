package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Available lists the CPUs that this process may use: those of its affinity,
// which a cpuset of a container bounds as well. Read it before [PinSelf].
func Available() (CPUs, error) {
	c, err := affinity(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("read the CPUs that may be used: %w", err)
	}
	return c, nil
}

// affinity reads the CPUs of one thread.
func affinity(tid int) (CPUs, error) {
	set := unix.NewCPUSet(maxCPU + 1)
	if err := unix.SchedGetaffinityDynamic(tid, set); err != nil {
		return nil, err
	}
	var c CPUs
	for n := range maxCPU + 1 {
		if set.IsSet(n) {
			c = append(c, n)
		}
	}
	return c, nil
}

// setAffinity sets the CPUs of one thread, 0 for the calling one. The kernel
// silently drops CPUs that do not exist, so what it made of the set is read back.
func setAffinity(tid int, c CPUs) error {
	set := unix.NewCPUSet(maxCPU + 1)
	for _, n := range c {
		set.Set(n)
	}
	if err := unix.SchedSetaffinityDynamic(tid, set); err != nil {
		return err
	}
	got, err := affinity(tid)
	if err != nil {
		return err
	}
	if missing := c.Minus(got); len(missing) > 0 {
		return fmt.Errorf("the kernel left out CPU %s, which does not exist or may not be used", missing)
	}
	return nil
}

// onMainThread reports whether the calling thread is the process's first.
func onMainThread() bool { return unix.Gettid() == os.Getpid() }

// PinSelf pins every thread of this process to the CPUs. Threads that start
// later inherit it.
func PinSelf(c CPUs) error {
	if len(c) == 0 {
		return errors.New("pin this process: no CPU was given")
	}
	dir := "/proc/" + strconv.Itoa(os.Getpid()) + "/task"
	// A thread may have been started meanwhile by one that was not pinned
	// yet: repeat until a pass finds nothing to do.
	for range 100 {
		changed, err := pinThreads(dir, c)
		if err != nil {
			return fmt.Errorf("pin this process to CPU %s: %w", c, err)
		}
		if !changed {
			return nil
		}
	}
	return fmt.Errorf("pin this process to CPU %s: threads start faster than they can be pinned", c)
}

// pinThreads pins the threads listed in dir and reports whether any was not yet.
func pinThreads(dir string, c CPUs) (changed bool, err error) {
	tids, err := numericNames(dir)
	if err != nil {
		return false, err
	}
	for _, tid := range tids {
		got, err := affinity(tid)
		if err == nil && got.Equal(c) {
			continue
		}
		if err == nil {
			changed = true
			err = setAffinity(tid, c)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return changed, err
		}
	}
	return changed, nil
}

// VerifyPins checks that every thread of every process of the tree may run on
// nothing but the given CPUs. An error names the first that may. For no CPUs,
// which means not pinned, there is nothing to verify.
func (p *Process) VerifyPins(c CPUs) error {
	if len(c) == 0 {
		return nil
	}
	pids, err := p.tree.members()
	if err != nil {
		return fmt.Errorf("verify the pins of %s: %w", p.name, err)
	}
	if len(pids) == 0 {
		return fmt.Errorf("verify the pins of %s: it is not running", p.name)
	}
	for _, pid := range pids {
		tids, err := numericNames("/proc/" + strconv.Itoa(pid) + "/task")
		if gone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("verify the pins of %s: %w", p.name, err)
		}
		for _, tid := range tids {
			got, err := affinity(tid)
			if errors.Is(err, unix.ESRCH) {
				continue
			}
			if err != nil {
				return fmt.Errorf("verify the pins of %s: thread %d: %w", p.name, tid, err)
			}
			if out := got.Minus(c); len(out) > 0 {
				return fmt.Errorf("%s is pinned to CPU %s, but thread %d of pid %d (%s) may run on CPU %s as well: it has changed its own affinity",
					p.name, c, tid, pid, commandLine(pid), out)
			}
		}
	}
	return nil
}
