//go:build unix

package proc

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalNamed finds a signal by its name, with or without "SIG"; 0 where
// there is none of that name.
func signalNamed(name string) syscall.Signal {
	return unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG"))
}

// exitOf is the exit status and the name of the signal of an ended process.
func exitOf(state *os.ProcessState) (code int, signal string) {
	ws := state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return -1, strings.TrimPrefix(unix.SignalName(ws.Signal()), "SIG")
	}
	return ws.ExitStatus(), ""
}

// credential starts a process as another user, without any groups besides
// that user's own.
func (u *User) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
}

// signalGroup sends a signal to every process of a group.
func signalGroup(group int, sig syscall.Signal) error { return unix.Kill(-group, sig) }

// executable reports whether we may execute a file.
func executable(path string) bool { return unix.Access(path, unix.X_OK) == nil }
