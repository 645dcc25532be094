//go:build !linux

package load

import (
	"os"
	"os/exec"
)

// endSignal says how a process ended that did not exit; empty: it exited.
func endSignal(st *os.ProcessState) string {
	if st.Exited() {
		return ""
	}
	return st.String()
}

// involuntarySwitches is not available here.
func involuntarySwitches(*os.ProcessState) int64 { return 0 }

// askToEnd interrupts a tool, or kills it where that is not available.
func askToEnd(cmd *exec.Cmd) {
	if cmd.Process.Signal(os.Interrupt) != nil {
		_ = cmd.Process.Kill()
	}
}
