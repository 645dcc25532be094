// Command live checks Tandem's promises on real servers on this machine. The
// figures of METHODOLOGY.md are made by it:
//
//	go run ./report/live same -tables 100
//	go run ./report/live slowdown -blocks 60
//
// same runs many tables of the same code, each a run of its own, and counts
// those in which any row is marked. slowdown runs one plan whose candidates do
// 1, 2, 3 and 5% more work in each request, and tells from its blocks how
// often runs of 1, 3 and 5 minutes find each, and what size they report.
// Blocks start everything afresh, so stretches of blocks are runs of their own.
// Both need node, and run tandem from this checkout.
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

//go:embed server.js
var server []byte

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("expected a check: same or slowdown")
	}
	f := flag.NewFlagSet("live", flag.ExitOnError)
	tables := f.Int("tables", 100, "same: tables to run")
	blocks := f.Int("blocks", 60, "slowdown: blocks to run; same: blocks of each table, at most")
	window := f.Duration("window", 250*time.Millisecond, "measuring time of each copy, block and scenario")
	from := f.String("from", "", "slowdown: analyse this run again instead of running")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tandem-live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := check{dir: dir, window: *window}
	switch args[0] {
	case "same":
		if err := c.build(); err != nil {
			return err
		}
		return c.same(*tables, min(*blocks, 8))
	case "slowdown":
		if *from == "" {
			if err := c.build(); err != nil {
				return err
			}
			if *from, err = c.slowdown(*blocks); err != nil {
				return err
			}
		}
		return analyse(*from)
	}
	return fmt.Errorf("found check %q, expected same or slowdown", args[0])
}

// check is one call of the command.
type check struct {
	dir    string
	window time.Duration
}

// build makes the binary and the servers' folder.
func (c check) build() error {
	if err := os.Mkdir(filepath.Join(c.dir, "app"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "app", "server.js"), server, 0o644); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(c.dir, "tandem"), "./cmd/tandem")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// tandem runs a spec and returns the journal's path. A failed gate is no error.
func (c check) tandem(text, out string) (string, error) {
	file := filepath.Join(c.dir, "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(c.dir, "tandem"), "run", "-q", "-f", file, "--out", out)
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("tandem run: %w\n%s", err, output)
	}
	return filepath.Join(out, "journal.jsonl"), nil
}

// same counts the same-code tables with a mark.
func (c check) same(tables, blocks int) error {
	text := fmt.Sprintf(`version: 1
name: same
arms: { base: { dir: app }, head: { dir: app } }
server: { command: [ node, server.js, "${port}" ], ready: { http: / } }
plan: { blocks: { min: 4, max: %d }, window: %v, warmup: %v }
scenarios:
  hello: { http: { path: /, connections: 50 } }
  json: { http: { path: /json, connections: 50 } }
  post: { http: { method: POST, path: /post, body: "0123456789", connections: 50 } }
`, blocks, c.window, c.window/2)
	marked, rows, false1 := 0, 0, 0
	began := time.Now()
	for i := range tables {
		path, err := c.tandem(text, filepath.Join(c.dir, fmt.Sprintf("run%04d", i)))
		if err != nil {
			return err
		}
		a, err := analyseFile(path)
		if err != nil {
			return err
		}
		any := false
		for _, r := range a.Rows {
			if !r.Judged {
				continue
			}
			rows++
			if r.Verdict == report.Regressed || r.Verdict == report.Improved {
				any = true
				false1++
				fmt.Printf("table %d: %s %s %s, %+.2f%%, noise ±%.2f%%\n", i+1, r.Scenario, r.Metric, r.Verdict, 100*r.Change, 100*r.Noise)
			}
		}
		if any {
			marked++
		}
		if (i+1)%10 == 0 || i+1 == tables {
			fmt.Printf("%d tables of the same code, %d rows: %d tables with any mark, %d rows marked, %v\n",
				i+1, rows, marked, false1, time.Since(began).Round(time.Second))
		}
	}
	return nil
}

func analyseFile(path string) (*report.Analysis, error) {
	j, err := journal.Open(path)
	if err != nil {
		return nil, err
	}
	return report.Analyze(j, nil)
}

// sizes are the slowdowns, as shares of the baseline's CPU time per request.
var sizes = []float64{0.01, 0.02, 0.03, 0.05}

// slowdown measures what a request and an iteration cost in the server that
// serves, then runs candidates that do so much more work. (An iteration costs
// three times less in a loop of its own than between two system calls.)
func (c check) slowdown(blocks int) (string, error) {
	const probe = 10000 // iterations: about a third of a request
	path, err := c.tandem(c.slowSpec(12, []arm{{"probe", probe}}), filepath.Join(c.dir, "first"))
	if err != nil {
		return "", err
	}
	a, err := analyseFile(path)
	if err != nil {
		return "", err
	}
	const metric = "cpu_per_request"
	r := a.Rows[slices.IndexFunc(a.Rows, func(r report.Row) bool { return r.Metric == metric })]
	perIteration := r.Change / probe // as a share of a request
	fmt.Printf("a request takes %.1f us of CPU time, %d iterations %+.2f%% (noise %.2f%%)\n",
		1e6*r.Base.Value, probe, 100*r.Change, 100*r.Noise)
	var arms []arm
	for _, s := range sizes {
		arms = append(arms, arm{fmt.Sprintf("slow%.0f", 100*s), int(math.Round(s / perIteration))})
	}
	kept := filepath.Join(os.TempDir(), "tandem-live-slowdown-"+time.Now().Format("150405"))
	if path, err = c.tandem(c.slowSpec(blocks, arms), kept); err != nil {
		return "", err
	}
	fmt.Printf("kept in %s\n", path)
	return path, nil
}

// arm is a candidate that does more iterations in each request.
type arm struct {
	name  string
	spins int
}

func (c check) slowSpec(blocks int, slow []arm) string {
	arms := "  base: { dir: app }\n"
	for _, a := range slow {
		arms += fmt.Sprintf("  %s: { dir: app, env: { SPINS: %q } }\n", a.name, strconv.Itoa(a.spins))
	}
	return fmt.Sprintf(`version: 1
name: slowdown
arms:
%sserver: { command: [ node, server.js, "${port}" ], ready: { http: / } }
plan: { blocks: %d, window: %v, warmup: %v }
scenarios:
  hello: { http: { path: /, connections: 50 } }
`, arms, blocks, c.window, c.window)
}

// analyse cuts the run into stretches of as many blocks as a run with the
// baseline and one candidate has in 1, 3 and 5 minutes, and judges each
// candidate in each stretch by itself.
func analyse(path string) error {
	j, err := journal.Open(path)
	if err != nil {
		return err
	}
	perBlock := blockSeconds(j) * 4 / float64(2*len(j.Header.Arms)) // two arms of two copies
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "Candidate\tMetric\tWhole run\tMinutes\tBlocks\tRuns\tFound\tMean\tSpread")
	for k, arm := range j.Header.Arms[1:] {
		for _, metric := range []string{"rps", "cpu_per_request"} {
			whole, err := judge(j, arm.Name, metric, 0, len(j.Ends))
			if err != nil {
				return err
			}
			for _, minutes := range []float64{1, 3, 5} {
				n := int(minutes * 60 / perBlock)
				if n < 3 || n > len(j.Ends) {
					continue
				}
				found, runs, sum, squares := 0, 0, 0.0, 0.0
				for from := 0; from+n <= len(j.Ends); from += n {
					r, err := judge(j, arm.Name, metric, from, from+n)
					if err != nil {
						return err
					}
					runs++
					sum += r.Change
					squares += r.Change * r.Change
					if r.Verdict == report.Regressed {
						found++
					}
				}
				mean := sum / float64(runs)
				spread := math.Sqrt(math.Max(0, squares/float64(runs)-mean*mean))
				fmt.Fprintf(w, "%s (%.0f%%)\t%s\t%+.2f%%\t%g\t%d\t%d\t%d\t%+.2f%%\t%.2f%%\n", arm.Name, 100*sizes[k], metric,
					100*whole.Change, minutes, n, runs, found, 100*mean, 100*spread)
			}
		}
	}
	return w.Flush()
}

func blockSeconds(j *journal.Run) float64 {
	if len(j.Ends) < 2 {
		return math.NaN()
	}
	first, last := j.Ends[0].Ended, j.Ends[len(j.Ends)-1].Ended
	return last.Sub(first).Seconds() / float64(len(j.Ends)-1)
}

// judge analyses the blocks [from, to) of one candidate as a run of its own.
func judge(j *journal.Run, arm, metric string, from, to int) (report.Row, error) {
	h := *j.Header
	h.Looks = []int{to - from}
	h.Arms = []journal.Arm{h.Arms[0]}
	for _, a := range j.Header.Arms[1:] {
		if a.Name == arm {
			h.Arms = append(h.Arms, a)
		}
	}
	var s spec.Spec
	if err := json.Unmarshal(h.Spec, &s); err != nil {
		return report.Row{}, err
	}
	s.Arms = slices.DeleteFunc(s.Arms, func(a spec.Arm) bool { return a.Name != arm && a.Name != s.Baseline })
	part := &journal.Run{Header: &h, End: &journal.End{Reason: journal.EndBlocks, Ended: j.Ends[to-1].Ended}}
	for _, t := range j.Trials {
		if t.Block >= from && t.Block < to && (t.Arm == arm || t.Arm == h.Arms[0].Name) {
			t.Block -= from
			part.Trials = append(part.Trials, t)
		}
	}
	for i := range to - from {
		part.Ends = append(part.Ends, journal.BlockEnd{Block: i, Ended: j.Ends[from+i].Ended})
	}
	a, err := report.Analyze(part, &s)
	if err != nil {
		return report.Row{}, err
	}
	for _, r := range a.Rows {
		if r.Metric == metric {
			return r, nil
		}
	}
	return report.Row{}, fmt.Errorf("the run has no row of %s", metric)
}
