//go:build !unix

package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
)

// There are no process groups and no signals here, so there is no way to be
// sure that nothing of a server is left behind: New refuses, and nothing
// below is reached by another way.

var errNoGroups = fmt.Errorf("supervise processes on %s: it has no process groups: %w", runtime.GOOS, errors.ErrUnsupported)

func signalNamed(string) syscall.Signal { return 0 }

func exitOf(state *os.ProcessState) (code int, signal string) { return state.ExitCode(), "" }

func signalGroup(int, syscall.Signal) error { return errNoGroups }

func executable(string) bool { return true }

type watchdog struct{}

func startWatchdog(string) (*watchdog, error) { return nil, errNoGroups }

func (*watchdog) tell(string) error { return errNoGroups }

func (*watchdog) dismiss() error { return nil }

// WatchdogMain never handles a call here: there is no watchdog on this system.
func WatchdogMain([]string, io.Reader) (handled bool, code int) { return false, 0 }

func groupAttr(*User) *syscall.SysProcAttr { return nil }

// maxRSS is not reached: no process is started here.
func maxRSS(*os.ProcessState) int64 { return 0 }

// charge is what a watchdog would have to kill.
type charge struct{}
