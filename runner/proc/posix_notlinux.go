//go:build unix && !linux

package proc

import (
	"os"
	"runtime"
	"syscall"
)

// groupAttr starts a process in a group of its own.
func groupAttr(u *User) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: u.credential()}
}

// maxRSS is the peak of resident memory of an ended process, in bytes. The
// systems of Apple tell it in bytes, the others in units of 1024.
func maxRSS(state *os.ProcessState) int64 {
	ru := state.SysUsage().(*syscall.Rusage)
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(ru.Maxrss)
	}
	return int64(ru.Maxrss) << 10
}

// launchArg and launchMain belong to limits, which are not held here.
const launchArg = "__tandem_launch"

func launchMain([]string) int { return 127 }
