//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is one way to break a run.
type fault struct {
	name   string
	victim string         // a word of the command line of the process that it hits
	signal syscall.Signal // what that gets
	tear   bool           // the part of the journal that was not synced is torn as well, as by a power cut
}

// watchdogWord is the argument of a watchdog.
const watchdogWord = "__tandem_watchdog"

var faults = [...]fault{
	{name: "server killed", victim: "serve", signal: syscall.SIGKILL},
	{name: "server stopped", victim: "serve", signal: syscall.SIGSTOP},
	{name: "load tool killed", victim: "load", signal: syscall.SIGKILL},
	{name: "watchdog killed", victim: watchdogWord, signal: syscall.SIGKILL},
	{name: "tandem interrupted", victim: "run", signal: syscall.SIGINT},
	{name: "tandem killed", victim: "run", signal: syscall.SIGKILL},
	{name: "tandem killed, journal torn", victim: "run", signal: syscall.SIGKILL, tear: true},
}

// endsRun reports whether the fault ends Tandem.
func (f fault) endsRun() bool { return f.victim == "run" }

// process is one of a run's, as /proc shows it.
type process struct {
	pid  int
	args []string
}

// processes lists what belongs to the soak: all that has its cache folder in
// the environment, which Tandem hands down, and the watchdogs among the
// children of those, which have no environment. What has ended but was not
// waited for yet has none either, and is not listed.
func (s *soak) processes() []process {
	mark := []byte("XDG_CACHE_HOME=" + s.cache() + "\x00")
	var found []process
	parents := map[int]bool{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var dogs []process
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		line, err := os.ReadFile(dir + "/cmdline")
		if err != nil || len(line) == 0 {
			continue
		}
		p := process{pid, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")}
		env, _ := os.ReadFile(dir + "/environ")
		switch {
		case bytes.Contains(env, mark):
			found = append(found, p)
			parents[pid] = true
		case slices.Contains(p.args, watchdogWord):
			dogs = append(dogs, p)
		}
	}
	for _, d := range dogs {
		if parents[parentOf(d.pid)] {
			found = append(found, d)
		}
	}
	return found
}

// parentOf is the number of a process's parent, 0 where it is gone.
func parentOf(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ") // none of the names here has one
	f := strings.Fields(rest)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// inject waits for a victim of the fault and hits it. It reports whether
// there was one before the run was over.
func (s *soak) inject(f fault, over <-chan struct{}) bool {
	for {
		select {
		case <-over:
			return false
		default:
		}
		all := s.processes()
		s.remember(all)
		var victims []int
		for _, p := range all {
			// A child that has not executed its own program yet looks like its parent.
			copied := slices.ContainsFunc(all, func(q process) bool { return q.pid == parentOf(p.pid) && slices.Equal(q.args, p.args) })
			if len(p.args) > 1 && p.args[1] == f.victim && !copied {
				victims = append(victims, p.pid)
			}
		}
		if len(victims) > 0 && syscall.Kill(victims[s.rng.IntN(len(victims))], f.signal) == nil {
			return true
		}
		time.Sleep(15 * time.Millisecond) // a look at all of /proc is not free
	}
}

// guarded waits until a watchdog is there. To survive the death of both at
// once is more than a program can promise.
func (s *soak) guarded(over <-chan struct{}) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(15 * time.Millisecond) {
		select {
		case <-over:
			return true
		default:
		}
		all := s.processes()
		s.remember(all)
		for _, p := range all {
			if slices.Contains(p.args, watchdogWord) {
				return true
			}
		}
	}
	return false
}

// remember keeps what must be gone when the run is: watchdogs, ports and
// control groups.
func (s *soak) remember(all []process) {
	for _, p := range all {
		if slices.Contains(p.args, watchdogWord) {
			s.dogs[p.pid] = true
		}
		if i := slices.Index(p.args, "-port"); i >= 0 && i+1 < len(p.args) {
			s.ports[p.args[i+1]] = true
			s.groups[groupOf(p.pid)] = true
		}
	}
}

// groupOf is the control group (version 2) of a process, "" where none is known.
func groupOf(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && strings.Contains(path, "tandem") {
			return path
		}
	}
	return ""
}
