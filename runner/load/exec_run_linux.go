package load

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// endSignal names the signal that ended a process; empty: it exited.
func endSignal(st *os.ProcessState) string {
	ws, ok := st.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return ""
	}
	return unix.SignalName(ws.Signal())
}

// involuntarySwitches is how often a process lost its CPU.
func involuntarySwitches(st *os.ProcessState) int64 {
	ru, ok := st.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return ru.Nivcsw
}

// askToEnd sends SIGTERM to a tool's whole group. It may be gone by now.
func askToEnd(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
