package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU times in /proc: USER_HZ, which is 100 on every
// architecture that Go supports.
const tick = 10 * time.Millisecond

// stat is what /proc/PID/stat says, as far as it is used here (proc_pid_stat(5)).
type stat struct {
	pid, ppid, pgrp int
	state           byte
	cminflt         uint64        // page faults of children waited for: above zero once one has ended
	ownTime         time.Duration // user and system time, in ticks
	childTime       time.Duration // user and system time of children waited for, in ticks
	start           uint64        // ticks since boot: with pid, the identity of a process
}

// ended reports whether the process only waits to be reaped.
func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

// readKernel reads a file of /proc, /sys or a control group with as few system
// calls as there can be: package os would offer each to the poller first.
func readKernel(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, 2048)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return buf, nil
		}
		buf = buf[:len(buf)+n]
	}
}

// readStat reads the status of one process.
func readStat(pid int) (stat, error) {
	b, err := readKernel("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat reads a line of /proc/PID/stat. The command's name stands in
// parentheses and may hold anything, so fields are counted from the last ")".
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return stat{}, fmt.Errorf("found %q, expected a line of /proc/PID/stat", clip(string(b), 60))
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return stat{}, fmt.Errorf("found %d fields in /proc/PID/stat, expected at least 22", len(f)+2)
	}
	var s stat
	var err error
	num := func(v string) uint64 {
		n, e := strconv.ParseUint(v, 10, 48) // so that a time in ticks fits a Duration
		if e != nil && err == nil {
			err = fmt.Errorf("/proc/PID/stat: %w", e)
		}
		return n
	}
	s.pid = int(num(strings.TrimSpace(string(b[:open]))))
	s.state = f[0][0]
	s.ppid, s.pgrp = int(num(f[1])), int(num(f[2]))
	s.cminflt = num(f[8])
	s.ownTime = time.Duration(num(f[11])+num(f[12])) * tick
	s.childTime = time.Duration(num(f[13])+num(f[14])) * tick
	s.start = num(f[19])
	if err != nil {
		return stat{}, err
	}
	return s, nil
}

// childrenOf lists the direct children of a process. The kernel keeps them
// per thread that forked them, and only where it has CONFIG_PROC_CHILDREN.
func childrenOf(pid int) ([]int, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := numericNames(dir)
	if err != nil {
		return nil, err
	}
	var kids []int
	for _, t := range threads {
		b, err := readKernel(dir + "/" + strconv.Itoa(t) + "/children")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for f := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				kids = append(kids, n)
			}
		}
	}
	return kids, nil
}

// hasChildrenFiles reports whether the kernel lists children per thread.
func hasChildrenFiles() bool {
	pid := strconv.Itoa(os.Getpid())
	_, err := os.Stat("/proc/" + pid + "/task/" + pid + "/children")
	return err == nil
}

// allProcesses reads the status of every process that can be seen.
func allProcesses() ([]stat, error) {
	pids, err := numericNames("/proc")
	if err != nil {
		return nil, err
	}
	all := make([]stat, 0, len(pids))
	for _, pid := range pids {
		if s, err := readStat(pid); err == nil {
			all = append(all, s)
		}
	}
	return all, nil
}

// numericNames lists the entries of a folder of /proc that are numbers.
func numericNames(dir string) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil && len(names) == 0 {
		return nil, err
	}
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// hasEnv reports whether the process was started with this NAME=value. It is
// false where the environment cannot be read: of an ended process, or of
// another user's.
func hasEnv(pid int, entry string) bool {
	return anyEnv(pid, func(e string) bool { return e == entry })
}

// hasEnvPrefix is hasEnv for an entry of which only the beginning is known.
func hasEnvPrefix(pid int, prefix string) bool {
	return anyEnv(pid, func(e string) bool { return strings.HasPrefix(e, prefix) })
}

func anyEnv(pid int, match func(entry string) bool) bool {
	b, err := readKernel("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for e := range strings.SplitSeq(string(b), "\x00") {
		if match(e) {
			return true
		}
	}
	return false
}

// commandLine is a process's arguments, or its name in brackets as ps shows it.
func commandLine(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	if b, err := readKernel(dir + "/cmdline"); err == nil && len(b) > 0 {
		line := strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
		return clip(line, 200)
	}
	if b, err := readKernel(dir + "/comm"); err == nil {
		return "[" + strings.TrimSpace(string(b)) + "]"
	}
	return "unknown command"
}

// peakRSS is the most memory that a living process has had resident, in bytes.
func peakRSS(pid int) (int64, error) {
	b, err := readKernel("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	v, ok := statusField(b, "VmHWM")
	if !ok {
		return 0, nil // a kernel thread, or a process that is just ending
	}
	kb, err := strconv.ParseInt(strings.TrimSuffix(v, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/%d/status: VmHWM: %w", pid, err)
	}
	return kb << 10, nil
}

// statusField is the value of one line "Name:\tvalue" of /proc/PID/status.
func statusField(b []byte, name string) (string, bool) {
	for line := range strings.SplitSeq(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// processClock reads the CPU clock of a process: user and system time of all
// its threads, ended ones included, in nanoseconds. The clock's number is
// that of clock_getcpuclockid(3): the complement of the process number in the
// upper bits, and 2 for the scheduler's clock.
//
// A thread that is running at this moment on another CPU is counted up to its
// last tick or switch, so one reading may lag by up to a tick of the kernel
// (1 to 10 ms); a process that waits is exact.
func processClock(pid int) (time.Duration, error) {
	const schedClock = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedClock, &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
