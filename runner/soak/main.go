//go:build linux

// Command soak breaks runs on purpose, for as long as it is told: it loops
// `tandem run` of a short plan with a real server, a daemon of that server
// and a load tool, kills or stops one of them (or Tandem itself, or its
// watchdog) at a random moment, tears the end off the journal, goes on with
// `tandem run --resume`, and looks after each step whether anything that was
// synced is lost and whether anything is left over.
//
//	go build -o /tmp/tandem ./cmd/tandem
//	go run ./runner/soak -tandem /tmp/tandem -for 1h
//
// It prints a line for each thing that is wrong and, at the end, a tally. It
// exits with 1 where anything was wrong; the folder with the run is then kept.
//
//	go run ./runner/soak -tandem /tmp/tandem -flat 2000
//
// makes one run of that many trials instead, undisturbed, and tells whether
// Tandem's memory and open file descriptors grow with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	// The program is also the server and the load tool of its own plan.
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "load" || os.Args[1] == "idle") {
		os.Exit(part(os.Args[1], os.Args[2:], os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run parses the command line and does what it asks for. ok is false where
// anything was wrong.
func run(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	fs := flag.NewFlagSet("soak", flag.ContinueOnError)
	tandem := fs.String("tandem", "tandem", "the `program` to break")
	last := fs.Duration("for", time.Minute, "how long to go on")
	seed := fs.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the faults and their moments")
	flat := fs.Int("flat", 0, "instead: make one undisturbed run of so many `trials`, and see whether memory and descriptors grow")
	pause := fs.Duration("pause", time.Second, "rest between two runs, for the sake of whoever shares the machine")
	if err := fs.Parse(args); err != nil {
		return false, err
	}
	program, err := filepath.Abs(*tandem)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(program); err != nil {
		return false, fmt.Errorf("-tandem: %w (build it: go build -o %s ./cmd/tandem)", err, *tandem)
	}
	blocks := roundBlocks
	if *flat > 0 {
		blocks = blocksFor(*flat)
	}
	s, err := newSoak(program, blocks, rand.New(rand.NewPCG(*seed, 0)), out)
	if err != nil {
		return false, err
	}
	if *flat > 0 {
		err = s.flat(ctx, *flat)
	} else {
		fmt.Fprintf(out, "soak: seed %d, in %s\n", *seed, s.dir)
		err = s.breakRuns(ctx, *last, *pause)
		s.tally.print(out)
	}
	if err != nil || len(s.tally.wrong) > 0 {
		fmt.Fprintln(out, "soak: kept", s.dir)
		return false, err
	}
	return true, os.RemoveAll(s.dir)
}

// breakRuns breaks runs until the time is up, or too much is wrong.
func (s *soak) breakRuns(ctx context.Context, last, pause time.Duration) error {
	for end := time.Now().Add(last); time.Now().Before(end) && ctx.Err() == nil && len(s.tally.wrong) < maxWrong; {
		if err := s.round(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// maxWrong is how many things may be wrong before the soak gives up: the same
// one again teaches nothing.
const maxWrong = 20
