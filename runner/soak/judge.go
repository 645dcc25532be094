//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
)

// snapshot is the journal at one moment.
type snapshot struct {
	data []byte
	run  *journal.Run // nil where there is no header yet
}

// snapshot reads the journal. None is there where the run ended before it
// began to measure.
func (s *soak) snapshot() (*snapshot, error) {
	data, err := os.ReadFile(s.journal())
	if errors.Is(err, os.ErrNotExist) {
		return &snapshot{}, nil
	}
	if err != nil {
		return nil, err
	}
	run, err := journal.Read(bytes.NewReader(data))
	if errors.Is(err, journal.ErrEmpty) {
		// Only a torn header: the run begins anew, in the same folder.
		return &snapshot{}, os.Remove(s.journal())
	}
	return &snapshot{data, run}, err
}

// first is the block with which a resumed run goes on.
func (sn *snapshot) first() int {
	first := 0
	if sn.run != nil {
		for _, e := range sn.run.Ends {
			first = max(first, e.Block+1)
		}
	}
	return first
}

// whole reports whether nothing is left to measure.
func (sn *snapshot) whole() bool { return sn.first() == roundBlocks }

// syncedPart is what of a journal is known to be on the disk: all up to the
// header's line or the end of a block, whichever is later.
func syncedPart(data []byte) []byte {
	end, at := 0, 0
	for line := range bytes.Lines(data) {
		at += len(line)
		if bytes.HasPrefix(line, []byte(`{"header"`)) || bytes.HasPrefix(line, []byte(`{"block_end"`)) || bytes.HasPrefix(line, []byte(`{"end"`)) {
			end = at
		}
	}
	return data[:end]
}

// judge looks at what an attempt left.
func (s *soak) judge(end ending, before, after *snapshot) {
	s.tally.codes[end.code]++
	s.judgeCode(end, after)
	s.judgeJournal(before, after)
	s.judgeLeftovers(end)
}

// judgeCode holds the exit code against what was done to the run.
func (s *soak) judgeCode(end ending, after *snapshot) {
	complain := func(why string) {
		s.wrongf("exit code %d: %s; it printed:\n%s", end.code, why, end.stderr)
	}
	switch end.code {
	case 0:
		if !after.whole() || after.run.End == nil {
			complain("the run is not complete")
		} else if why := after.incomplete(); why != "" {
			complain("a broken run is green: " + why)
		}
	case 1, 4:
		if !s.hurt && (after.run == nil || !after.disturbed()) {
			complain("neither a server nor a load tool was hit, and no window says that the machine was too busy")
		} else if end.code == 4 && end.stderr == "" {
			complain("it does not say why")
		}
	case 130:
		if !end.asked {
			complain("it was not interrupted")
		}
	case -1:
		if !end.killed {
			complain("it was not killed by the soak")
		}
	default:
		complain("expected 0, 1, 4 or 130")
	}
	// A resumed run that is interrupted while it starts leaves the journal alone.
	untouched := end.code == 130 && strings.Contains(end.stderr, "before anything more was measured")
	if end.code != -1 && after.run != nil && after.run.End == nil && !untouched {
		complain("its journal has no end")
	}
	if (end.code == 0 || end.code == 1) && !s.isJSON("result.json") {
		complain("result.json is missing or broken")
	}
}

func (s *soak) isJSON(name string) bool {
	data, err := os.ReadFile(filepath.Join(s.result(), name))
	return err == nil && json.Valid(data)
}

// incomplete says what is missing in a run that is said to be complete: a
// block that neither failed nor has all trials of the scenarios whose check
// went well, or a row without any valid block.
func (sn *snapshot) incomplete() string {
	counts := map[string]int{}
	for _, t := range sn.run.Trials {
		counts[fmt.Sprint(t.Block, t.Scenario)]++
	}
	checks := map[string]string{}
	for _, c := range sn.run.Checks {
		checks[fmt.Sprint(c.Block, c.Scenario)] = c.Outcome
	}
	good := map[string]bool{}
	for _, e := range sn.run.Ends {
		for _, sc := range scenarios {
			key := fmt.Sprint(e.Block, sc)
			switch {
			case e.Failed != "" || checks[key] == journal.CheckFailed || checks[key] == journal.CheckIncomparable:
			case counts[key] != len(arms)*copies:
				return fmt.Sprintf("block %d has %d trials of %s", e.Block, counts[key], sc)
			default:
				good[sc] = true
			}
		}
	}
	for _, sc := range scenarios {
		if !good[sc] {
			return sc + " has no valid block"
		}
	}
	return ""
}

// disturbed reports whether the journal tells of a window that does not
// count: on a machine that others keep busy there are such without a fault.
func (sn *snapshot) disturbed() bool {
	return slices.ContainsFunc(sn.run.Trials, func(t journal.Trial) bool { return t.Invalid != "" }) ||
		slices.ContainsFunc(sn.run.Checks, func(c journal.Check) bool { return c.Outcome == journal.CheckFailed })
}

// judgeJournal checks that nothing that was synced is lost: it is there to
// the byte, and its trials are still read.
func (s *soak) judgeJournal(before, after *snapshot) {
	if before.run == nil {
		return
	}
	synced := syncedPart(before.data)
	if !bytes.HasPrefix(after.data, synced) {
		s.wrongf("the synced part of the journal, %d bytes, is not there any more", len(synced))
		return
	}
	kept := map[string]string{}
	for _, t := range after.run.Trials {
		kept[trialKey(t)] = trialText(t)
	}
	for _, t := range before.run.Trials {
		if t.Block >= before.first() {
			continue // of the block that was cut off, and measured again
		}
		s.tally.trials++
		if kept[trialKey(t)] != trialText(t) {
			s.wrongf("a synced trial is lost: %s", trialKey(t))
		}
	}
}

func trialKey(t journal.Trial) string {
	return fmt.Sprintf("block %d, %s, %s#%d", t.Block, t.Scenario, t.Arm, t.Copy)
}

func trialText(t journal.Trial) string {
	data, err := json.Marshal(t)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// judgeLeftovers looks for processes, ports, control groups, worktrees and
// files that the run has left. The watchdog of a run that was killed may need
// a moment.
func (s *soak) judgeLeftovers(end ending) {
	var left []string
	for wait := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if left = s.leftovers(end.killed); len(left) == 0 {
			return
		}
		if time.Now().After(wait) {
			break
		}
	}
	s.wrongf("left over: %s", strings.Join(left, "; "))
	for _, p := range s.processes() {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

func (s *soak) leftovers(killed bool) []string {
	var left []string
	add := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }
	for _, p := range s.processes() {
		add("process %d %s", p.pid, strings.Join(p.args, " "))
	}
	for pid := range s.dogs {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(line, []byte(watchdogWord)) {
			add("watchdog %d", pid)
		}
	}
	for port := range s.ports {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			add("port %s (%v)", port, err)
			continue
		}
		l.Close()
	}
	for group := range s.groups {
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			if _, err := os.Stat(mount + group); err == nil && group != "" {
				add("control group %s", group)
			}
		}
	}
	if out, err := s.git("worktree", "list", "--porcelain"); err != nil || strings.Count(out, "worktree ") != 1 {
		add("worktrees: %s (%v)", out, err)
	}
	// What a killed run had laid out is removed by the next one.
	patterns := []string{filepath.Join(s.temp(), "*"), filepath.Join(s.repo(), ".git", "*.lock")}
	if !killed {
		patterns = append(patterns, filepath.Join(s.cache(), "tandem", "work", "w??"), filepath.Join(s.result(), ".*"), filepath.Join(s.repo(), ".tandem", "cache", ".*"))
	}
	for _, p := range patterns {
		files, _ := filepath.Glob(p)
		for _, f := range files {
			add("file %s", f)
		}
	}
	return left
}
