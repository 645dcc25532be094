package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launchArg is the first argument of our own program as a launcher: it
// stands between fork and exec of a command with limits, sets them on itself
// and becomes the command. The process keeps its number, group and CPUs.
const launchArg = "__tandem_launch"

// launchOrder is what a launcher does before it executes the program.
type launchOrder struct {
	join   []string // cgroup.procs files
	noFile int      // RLIMIT_NOFILE; 0: unchanged
	nproc  int      // RLIMIT_NPROC; 0: unchanged
}

// reportFD is where a launcher writes why it failed. Executing the program
// closes it.
const reportFD = 3

// args are the arguments of a launcher.
func (o launchOrder) args(program string, argv []string) []string {
	return append([]string{argv[0], launchArg, strconv.Itoa(o.noFile), strconv.Itoa(o.nproc),
		strings.Join(o.join, ":"), program}, argv...)
}

// launchMain becomes the program. It returns only where that failed.
func launchMain(args []string) (code int) {
	err := launchSelf(args)
	var errno syscall.Errno
	errors.As(err, &errno)
	fmt.Fprintf(os.NewFile(reportFD, "report"), "%d %v", int(errno), err)
	return 127
}

// launchError is what a launcher reports.
type launchError struct {
	errno syscall.Errno // 0 where no system call has failed
	text  string
}

func (e *launchError) Error() string { return e.text }

func (e *launchError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// launchSelf reads the arguments that launchOrder.args has made.
func launchSelf(args []string) error {
	if len(args) < 7 {
		return errors.New("the launcher was started by hand")
	}
	unix.CloseOnExec(reportFD)
	// The parent-death signal is a thread's: it survives only if the thread
	// that has it executes the program.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	noFile, err1 := strconv.ParseUint(args[2], 10, 63)
	nproc, err2 := strconv.ParseUint(args[3], 10, 63)
	groups, err3 := openAll(args[4])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if err := setLimit(syscall.RLIMIT_NOFILE, noFile, "nofile"); err != nil {
		return err
	}
	// From here on the runtime may not be able to start a thread any more:
	// raw system calls give it no reason to.
	for _, fd := range groups {
		zero := [1]byte{'0'}
		if _, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&zero)), 1); errno != 0 {
			return fmt.Errorf("join a control group: %w", errno)
		}
	}
	if err := setLimit(unix.RLIMIT_NPROC, nproc, "processes"); err != nil {
		return err
	}
	return fmt.Errorf("exec %s: %w", args[5], syscall.Exec(args[5], args[6:], os.Environ()))
}

// openAll opens files for writing, of a list with colons between them.
func openAll(list string) (fds []int, err error) {
	if list == "" {
		return nil, nil
	}
	for file := range strings.SplitSeq(list, ":") {
		fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", file, err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// setLimit sets a resource limit of this process; 0 leaves it. It goes through
// package syscall, which otherwise puts the limit of files back at exec.
func setLimit(which int, n uint64, name string) error {
	if n == 0 {
		return nil
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(which, &old); err != nil {
		return fmt.Errorf("limits.%s: %w", name, err)
	}
	err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: n, Max: n})
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("limits.%s: found %d, but this user may have %d at most", name, n, old.Max)
	}
	return err
}

// launchThrough starts a program by way of a launcher, and waits until the
// launcher has become the program or told why not.
func launchThrough(o launchOrder, path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	attr.Files = append(attr.Files[:3:3], w)
	// This name stays right where our own file was replaced or removed, as
	// that of go run is.
	p, err := os.StartProcess("/proc/self/exe", o.args(path, argv), attr)
	w.Close()
	if err != nil {
		return nil, err
	}
	report, err := io.ReadAll(r)
	if err == nil && len(report) == 0 {
		return p, nil
	}
	p.Kill()
	p.Wait()
	if err != nil {
		return nil, err
	}
	number, text, _ := strings.Cut(string(report), " ")
	errno, _ := strconv.Atoi(number)
	return nil, &launchError{syscall.Errno(errno), text}
}
