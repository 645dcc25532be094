package proc

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Auditor takes readings of what else happens on some CPUs. A reading costs
// some tens of microseconds, so one at each border of a window is no load.
type Auditor struct {
	cpus      CPUs
	stat      *os.File
	sockets   *os.File   // nil where it cannot be read
	throttles []*os.File // cpu.stat of our control group and of those above it that have a quota
	freqs     []*os.File // by audited CPU; empty where it cannot be read
	ports     int
	notes     []string
}

// NewAuditor prepares readings for some CPUs, those of the servers and of the
// generator; for none, of all that this process may use.
func NewAuditor(cpus CPUs) (*Auditor, error) {
	if len(cpus) == 0 {
		var err error
		if cpus, err = Available(); err != nil {
			return nil, err
		}
	}
	a := &Auditor{cpus: slices.Clone(cpus).normal()} // on one CPU, servers and generator name the same
	var err error
	if a.stat, err = os.Open("/proc/stat"); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if a.sockets, err = os.Open("/proc/net/sockstat"); err != nil {
		a.notes = append(a.notes, fmt.Sprintf("the number of ended connections that hold a port cannot be read (%v): if ports run out, it will not be foreseen", err))
	}
	if lo, hi, err := portRange(); err == nil {
		a.ports = hi - lo + 1
	}
	a.openThrottles()
	for _, n := range cpus {
		f, err := os.Open(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", n))
		if err != nil {
			closeAll(a.freqs)
			a.freqs = nil
			a.notes = append(a.notes, "the CPUs' frequency cannot be read: a change of speed shows only as noise")
			break
		}
		a.freqs = append(a.freqs, f)
	}
	if _, err := a.Read(); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// openThrottles opens the counters of every quota that binds us.
func (a *Auditor) openThrottles() {
	mounts, err1 := os.ReadFile("/proc/self/mountinfo")
	self, err2 := os.ReadFile("/proc/self/cgroup")
	if err1 != nil || err2 != nil {
		return
	}
	open := func(dir string) {
		name := filepath.Join("/", dir, "cpu.stat")
		if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), "throttled_") {
			return
		}
		if f, err := os.Open(name); err == nil {
			a.throttles = append(a.throttles, f)
		}
	}
	if dir, err := ownCgroup(string(mounts), string(self)); err == nil {
		eachParent(dir, open)
	}
	if dir, ok := ownCgroupV1(string(mounts), string(self), "cpu"); ok {
		eachParent(dir, open)
	}
	if len(a.throttles) == 0 {
		a.notes = append(a.notes, "it cannot be read whether a quota of CPU time stops us: such stops show only as noise")
	}
}

// Notes says what cannot be read, and what follows from it.
func (a *Auditor) Notes() []string { return a.notes }

// Close closes the files.
func (a *Auditor) Close() error {
	closeAll([]*os.File{a.stat, a.sockets})
	closeAll(a.throttles)
	closeAll(a.freqs)
	return nil
}

// Read takes a reading.
func (a *Auditor) Read() (Reading, error) {
	r := Reading{At: time.Now(), Throttled: -1, TimeWait: -1, Frequency: math.NaN(), CPUs: len(a.cpus), Ports: a.ports}
	b, err := reread(a.stat)
	if err != nil {
		return r, fmt.Errorf("audit: %w", err)
	}
	all, err := parseCPUTimes(b)
	if err != nil {
		return r, fmt.Errorf("audit: %w", err)
	}
	for _, n := range a.cpus {
		t, ok := all[n]
		if !ok {
			return r, fmt.Errorf("audit: CPU %d is not in /proc/stat; was it taken off line?", n)
		}
		r.CPU = r.CPU.plus(t)
	}
	if r.Self, r.Involuntary, err = readSelf(); err != nil {
		return r, fmt.Errorf("audit: %w", err)
	}
	for _, f := range a.throttles {
		if b, err := reread(f); err == nil {
			r.Throttled = max(r.Throttled, parseThrottled(b))
		}
	}
	if b, err := reread(a.sockets); err == nil {
		r.TimeWait = parseTimeWait(b)
	}
	for _, f := range a.freqs {
		if b, err := reread(f); err == nil {
			khz, err := strconv.ParseFloat(strings.TrimSpace(b), 64)
			if err == nil && !(r.Frequency < khz*1000) { // also where it is NaN still
				r.Frequency = khz * 1000
			}
		}
	}
	return r, nil
}

// readSelf reads the CPU time of this process, and how often it was taken off its CPU.
func readSelf() (cpu time.Duration, involuntary int64, err error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0, 0, err
	}
	var ru syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ts.Nano()), ru.Nivcsw, err
}

// reread reads a file of the kernel from its start, which makes it anew.
func reread(f *os.File) (string, error) {
	if f == nil {
		return "", os.ErrInvalid
	}
	buf := make([]byte, 0, 8<<10)
	for {
		n, err := f.ReadAt(buf[len(buf):cap(buf)], int64(len(buf)))
		buf = buf[:len(buf)+n]
		if err != nil {
			if len(buf) > 0 {
				return string(buf), nil
			}
			return "", err
		}
		buf = append(buf, make([]byte, cap(buf))...)[:len(buf)]
	}
}

// parseThrottled reads the time that a quota took from cpu.stat: microseconds
// in version 2, nanoseconds in version 1; -1 where there is none.
func parseThrottled(s string) time.Duration {
	for line := range strings.SplitSeq(s, "\n") {
		name, value, _ := strings.Cut(line, " ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == "throttled_usec":
			return time.Duration(n) * time.Microsecond
		case name == "throttled_time":
			return time.Duration(n)
		}
	}
	return -1
}

// parseTimeWait reads how many connections wait after their end from
// /proc/net/sockstat, whose line is "TCP: inuse 5 orphan 0 tw 3 ..."; -1 where
// it does not say.
func parseTimeWait(s string) int {
	for line := range strings.SplitSeq(s, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "TCP:" {
			continue
		}
		for i := 1; i+1 < len(f); i += 2 {
			if f[i] == "tw" {
				if n, err := strconv.Atoi(f[i+1]); err == nil {
					return n
				}
			}
		}
	}
	return -1
}

// portRange is the first and the last local port that connections are given.
func portRange() (lo, hi int, err error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(string(b), &lo, &hi)
	return lo, hi, err
}

// plus adds up what two CPUs have done.
func (t CPUTimes) plus(u CPUTimes) CPUTimes {
	return CPUTimes{t.User + u.User, t.Nice + u.Nice, t.System + u.System, t.Idle + u.Idle,
		t.IOWait + u.IOWait, t.IRQ + u.IRQ, t.SoftIRQ + u.SoftIRQ, t.Steal + u.Steal}
}
