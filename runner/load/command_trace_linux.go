package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// startPinned starts cmd on the given CPUs; none: where this process may run.
func startPinned(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var th thread
	if err := th.pin(cpus); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), th.restore())
}

// tracePeak runs the child once more, traced to its end, and returns the peak
// memory of the largest of its processes, in bytes.
//
// The kernel starts the peak of a process that was made by vfork and exec at
// the peak of the process that made it (exec_mmap in fs/exec.c), so wait4
// cannot tell how much a child used that stayed below ourselves; nor can time
// and hyperfine, whose own peaks are just smaller. A process that stops at
// its exit still has its memory, and with it its own peak. Tracing slows a
// process, so no sample is taken from this one.
func tracePeak(ctx context.Context, c child) (int64, error) {
	type result struct {
		peak int64
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// Tracing belongs to the thread. It is not unlocked, so that it ends
		// with the goroutine, and with it whatever it still traces.
		runtime.LockOSThread()
		peak, err := c.trace(ctx)
		done <- result{peak, err}
	}()
	r := <-done
	return r.peak, r.err
}

func (c *child) trace(ctx context.Context) (int64, error) {
	var th thread
	if err := th.pin(c.cpus); err != nil {
		return 0, err
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		// Tracing takes its own time.
		ctx, cancel = context.WithTimeout(ctx, 2*c.timeout)
		defer cancel()
	}
	var k killer
	defer context.AfterFunc(ctx, k.kill)()
	attr := &syscall.ProcAttr{Dir: c.dir, Env: c.env, Files: c.fds(), Sys: &syscall.SysProcAttr{Setpgid: true, Ptrace: true}}
	pid, err := syscall.ForkExec(c.path, c.argv, attr)
	if err != nil {
		return 0, fmt.Errorf("tracing %s: %w", c.path, err)
	}
	k.started(pid)
	defer k.kill()
	return follow(pid)
}

const traceOptions = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_TRACEEXEC |
	unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE

// follow lets the traced group of leader run and reads each process's peak as
// it exits, until the leader has ended.
func follow(leader int) (int64, error) {
	var peak int64
	started := false
	for {
		var ws syscall.WaitStatus
		// Only what this thread traces, and only in the leader's group: other
		// children of this process are not ours to wait for.
		pid, err := syscall.Wait4(-leader, &ws, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return peak, fmt.Errorf("following process %d: %w", leader, err)
		case ws.Exited() || ws.Signaled():
			if pid == leader {
				return peak, nil
			}
			continue
		}
		if !started {
			started = true
			if err := syscall.PtraceSetOptions(pid, traceOptions); err != nil {
				return 0, fmt.Errorf("tracing process %d: %w", pid, err)
			}
		}
		if ws.StopSignal() == syscall.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_EXIT {
			peak = max(peak, peakOf(pid))
		}
		// A process that is gone by now needs no leave to go on.
		if err := syscall.PtraceCont(pid, deliver(ws)); err != nil && err != syscall.ESRCH {
			return peak, fmt.Errorf("continuing process %d: %w", pid, err)
		}
	}
}

// deliver is the signal that a stopped process is to get: none where the stop
// was only an event of tracing.
func deliver(ws syscall.WaitStatus) int {
	sig := ws.StopSignal()
	if sig == syscall.SIGTRAP || sig == syscall.SIGSTOP {
		return 0
	}
	return int(sig)
}

// peakOf is the largest resident size that a live process had, in bytes; 0
// where it cannot be read.
func peakOf(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
