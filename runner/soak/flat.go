//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
)

// use is what a process holds at one moment.
type use struct {
	resident int // kB, of its own
	files    int // open file descriptors
}

// blocksFor is how many blocks make so many trials.
func blocksFor(trials int) int {
	perBlock := len(arms) * copies * len(scenarios)
	return (trials + perBlock - 1) / perBlock
}

// flat makes one run that nobody disturbs, of as many blocks as the plan has,
// and tells whether Tandem holds more at its end than at its beginning. It
// compares medians of the second and the last tenth: the first has the start
// in it.
func (s *soak) flat(ctx context.Context, trials int) error {
	cmd := exec.CommandContext(ctx, s.tandem, "run", "-q", "--out", s.result())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.repo(), s.environ, io.Discard, s.out
	if err := cmd.Start(); err != nil {
		return err
	}
	uses := sampleUses(cmd)
	// A row that fails on a busy machine is no matter here: its trials count.
	fmt.Fprintf(s.out, "the run ended with %d\n", cmd.ProcessState.ExitCode())
	run, err := journal.Open(s.journal())
	if err != nil {
		return err
	}
	if len(run.Trials) < trials {
		s.wrongf("the journal holds %d trials, expected %d", len(run.Trials), trials)
	}
	return s.compareUses(uses, len(run.Trials))
}

// sampleUses looks at a process ten times a second until it ends.
func sampleUses(cmd *exec.Cmd) []use {
	over := make(chan struct{})
	go func() {
		cmd.Wait()
		close(over)
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var uses []use
	for {
		select {
		case <-over:
			return uses
		case <-tick.C:
			if u, err := readUse(cmd.Process.Pid); err == nil {
				uses = append(uses, u)
			}
		}
	}
}

func readUse(pid int) (use, error) {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return use{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return use{}, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kB, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return use{resident: kB, files: len(fds)}, err
		}
	}
	return use{}, errors.New("no VmRSS")
}

// compareUses prints what was held early and late, and what of it grew.
func (s *soak) compareUses(uses []use, trials int) error {
	tenth := len(uses) / 10
	if tenth < 10 {
		return fmt.Errorf("the run was too short: found %d samples, expected at least 100", len(uses))
	}
	early, late := uses[tenth:2*tenth], uses[9*tenth:]
	resident := func(u use) int { return u.resident }
	files := func(u use) int { return u.files }
	residentEarly, residentLate := sorted(early, resident), sorted(late, resident)
	filesEarly, filesLate := sorted(early, files), sorted(late, files)
	fmt.Fprintf(s.out, "%d trials, %d samples\n", trials, len(uses))
	fmt.Fprintln(s.out, "                    second tenth    last tenth  least, median and most of each")
	fmt.Fprintf(s.out, "resident, MB      %s %s\n", threeOf(residentEarly, 1024), threeOf(residentLate, 1024))
	fmt.Fprintf(s.out, "open descriptors  %s %s\n", threeOf(filesEarly, 1), threeOf(filesLate, 1))
	// A trial is kept in memory until the report, a kilobyte or two each, and
	// the heap is larger or smaller by some MB from one collection to the next.
	if grown, may := median(residentLate)-median(residentEarly), 4096+2*trials; grown > may {
		s.wrongf("the resident set grew by %d kB, expected at most %d kB for %d trials", grown, may, trials)
	}
	// Between the windows the connections are closed: what stays open then is kept.
	if e, l := filesEarly[0], filesLate[0]; l > e {
		s.wrongf("the open descriptors between windows grew from %d to %d", e, l)
	}
	return nil
}

// sorted is one figure of each of some samples, in order.
func sorted(uses []use, of func(use) int) []int {
	values := make([]int, len(uses))
	for i, u := range uses {
		values[i] = of(u)
	}
	slices.Sort(values)
	return values
}

func median(sorted []int) int { return sorted[len(sorted)/2] }

// threeOf prints the least, the median and the most of sorted figures.
func threeOf(sorted []int, unit int) string {
	return fmt.Sprintf("%5d%5d%5d", sorted[0]/unit, median(sorted)/unit, sorted[len(sorted)-1]/unit)
}
