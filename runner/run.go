package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

// Options is everything that a run needs from outside.
type Options struct {
	Spec    *spec.Spec
	Plan    *Plan
	Env     spec.Env // for ${env.NAME}
	Environ []string // from which the environment of children is chosen

	ID    string
	Out   string // the run's folder: journal.jsonl and logs/
	Cache string // of builds
	Work  string // where trees and copies are laid out, see source.OpenWork
	Tool  string // Tandem's version

	Filter []string        // recorded
	Shard  string          // recorded
	Origin *journal.Origin // recorded
	Same   bool            // the baseline takes the place of every candidate
	Resume *journal.Run

	Looks    []int                                    // the blocks after which Settled is asked
	Settled  func(*journal.Run) (ok bool, why string) // the stopping rule; nil: never
	Deadline time.Time                                // zero: none
	Progress Progress
	Now      func() time.Time

	// MaxSteal is the share of its CPUs' time that the hypervisor may take in a
	// window that counts; 0 means a quarter. At 1 nothing is discarded for what
	// the machine does, and no verdict is worth anything: that is for tests.
	MaxSteal float64
}

// SetupError is a failure before anything was measured.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

// Run carries out a plan and returns what it measured, which is also what
// the journal at Options.Out holds. It always stops every process that it
// started. An error means that the run could not be carried out: a build, a
// start, a check or a driver failed, or the journal could not be written;
// what was measured before it is returned beside it. An interrupted run is
// no error: its End says so.
func Run(ctx context.Context, o Options) (result *journal.Run, err error) {
	if err := os.MkdirAll(filepath.Join(o.Out, "logs"), 0o755); err != nil {
		return nil, &SetupError{fmt.Errorf("making the run's folder: %w", err)}
	}
	work, release, err := source.OpenWork(o.Work)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		// A home that cannot be written, as services and containers have.
		work, release, err = source.OpenWork(filepath.Join(os.TempDir(), fmt.Sprintf("tandem-%d", os.Getuid()), "work"))
	}
	if err != nil {
		return nil, &SetupError{err}
	}
	defer func() { err = errors.Join(err, release()) }()
	sup, err := proc.New(proc.Options{})
	if err != nil {
		return nil, &SetupError{err}
	}
	e := &execution{Options: o, sup: sup, work: work, started: o.Now(), verified: map[string]bool{}}
	// Processes end before their folders go: defers run in reverse.
	defer func() { err = errors.Join(err, sup.Close()) }()
	defer e.closeAll()
	defer func() { err = errors.Join(err, e.closeHosts()) }()
	defer func() { err = errors.Join(err, e.stopServices()) }()

	ctx, cancel := e.limit(ctx)
	defer cancel()
	ctx, e.lose = context.WithCancelCause(ctx)
	defer e.lose(nil)
	if err := e.prepare(ctx); err != nil {
		if broken := (*source.BuildError)(nil); errors.As(err, &broken) && ctx.Err() == nil && o.Resume == nil {
			return e.unbuilt(broken)
		}
		return nil, e.setupFailure(ctx, err)
	}
	if err := e.measure(ctx); e.rec == nil {
		return nil, e.setupFailure(ctx, err)
	} else {
		return e.rec.run, err
	}
}

// execution is one run under way.
type execution struct {
	Options
	sup     *proc.Supervisor
	work    string
	trees   []*source.Tree // by Plan.Arms
	arms    []spec.Arm     // by Plan.Arms; with Same, the baseline under each name
	pins    proc.Pinning
	avail   proc.CPUs // those that this process may use
	auditor *proc.Auditor
	host    journal.Host // read before this process is pinned
	header  journal.Header
	rec     *recorder
	started time.Time
	cut     time.Time // when the deadline ends the run in the middle of a block; zero: never

	hosts       map[string]*there       // that are connected, by name
	lose        context.CancelCauseFunc // ends the run, because a connection broke
	services    []*service
	data        string // the folder of the services' files; "": none asked for one
	releaseData func() error
	verified    map[string]bool // IDs of the scenarios of which every copy was verified
	primed      map[string]bool // scenarios, with the first target each time, that were primed in this block

	warnings   []string
	copies     map[int][]string // slot -> tree, where copies are kept for the whole run
	recopy     bool
	blockTimes []time.Duration
	first      int // the first block to run
}

// setupFailure tells an interruption from a failure.
func (e *execution) setupFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &SetupError{context.Cause(ctx)}
	}
	return &SetupError{err}
}

// prepare builds the arms, chooses the CPUs and starts the services.
func (e *execution) prepare(ctx context.Context) error {
	e.host = host(proc.ReadHost())
	if err := e.buildArms(ctx); err != nil {
		return err
	}
	if err := e.choosePins(); err != nil {
		return err
	}
	if err := e.connectHosts(ctx); err != nil {
		return err
	}
	if err := e.pinThere(ctx); err != nil {
		return err
	}
	e.startAudit()
	err := e.auditThere(ctx)
	if err != nil {
		return err
	}
	if e.header, err = e.describe(ctx); err != nil {
		return err
	}
	if err := e.checkResume(); err != nil {
		return err
	}
	return e.startServices(ctx)
}

func (e *execution) closeAll() {
	if e.auditor != nil {
		e.auditor.Close()
	}
	for _, t := range e.trees {
		t.Close()
	}
}

// measure opens the journal and runs block after block until the plan is
// done, settled, out of time, interrupted or broken, and always ends the
// journal. What goes wrong in the commands around the run ends it, too.
func (e *execution) measure(ctx context.Context) error {
	var reason, detail string
	err := e.around(ctx, spec.RunPart, nil, spec.Scenario{}, func() error {
		err := e.openJournal()
		if err == nil {
			reason, detail, err = e.blocks(ctx)
		}
		return err
	})
	if e.rec == nil {
		return err
	}
	if err != nil && reason != journal.EndInterrupted {
		reason, detail = journal.EndFailed, err.Error()
	}
	e.report(Status{Phase: Finishing})
	for _, note := range e.sup.Notes() {
		e.warnOnce(note)
	}
	end := journal.End{Ended: e.Now(), Reason: reason, Detail: detail}
	for _, w := range e.warnings {
		if !slices.Contains(e.rec.run.Header.Warnings, w) {
			end.Warnings = append(end.Warnings, w)
		}
	}
	if werr := e.rec.end(end); werr != nil && err == nil {
		err = werr
	}
	return err
}

func (e *execution) blocks(ctx context.Context) (reason, detail string, err error) {
	failures := 0
	for i := e.first; i < e.Plan.Blocks.Max; i++ {
		if out, why := e.outOfTime(i); out {
			return journal.EndBudget, why, nil
		}
		began := e.Now()
		failure, err := e.block(ctx, e.Plan.Block(i))
		if lost := lostHost(ctx); lost != nil {
			return journal.EndFailed, lost.Error(), lost
		}
		if ctx.Err() != nil {
			if errors.Is(context.Cause(ctx), errDeadline) {
				return journal.EndBudget, fmt.Sprintf("the deadline ended block %d before it was complete", i+1), nil
			}
			return journal.EndInterrupted, fmt.Sprintf("in block %d", i+1), nil
		}
		if err != nil {
			return journal.EndFailed, err.Error(), err
		}
		end := journal.BlockEnd{Block: i, Ended: e.Now()}
		if failure != nil {
			end.Failed = failure.Error()
		}
		if err := e.rec.endBlock(end); err != nil {
			return journal.EndFailed, err.Error(), err
		}
		if failure == nil {
			failures = 0
			e.blockTimes = append(e.blockTimes, e.Now().Sub(began))
		} else if failures++; i == 0 || failures == maxBlockFailures {
			return journal.EndFailed, failure.Error(), failure
		}
		if stop, why := e.settled(i + 1); stop {
			return journal.EndSettled, why, nil
		}
	}
	return journal.EndBlocks, "", nil
}

// settled asks the stopping rule after the blocks at which it was agreed to
// look, and only then: a look at any other moment would cost error rate.
func (e *execution) settled(done int) (bool, string) {
	if e.Settled == nil || done >= e.Plan.Blocks.Max {
		return false, ""
	}
	for _, look := range e.Looks {
		if look == done {
			return e.Settled(e.rec.run)
		}
	}
	return false, ""
}

// outOfTime says whether another block would go beyond the budget or the
// deadline. The first block always runs: a run without one has no report.
func (e *execution) outOfTime(block int) (bool, string) {
	if block == e.first {
		return false, ""
	}
	next := e.expectedBlock()
	if b := e.Spec.Plan.Budget; b > 0 && e.Now().Sub(e.started)+next > b {
		return true, fmt.Sprintf("the budget of %v has no room for block %d, which would take about %v", b, block+1, next.Round(time.Second))
	}
	if !e.cut.IsZero() && e.Now().Add(next).After(e.cut) {
		return true, fmt.Sprintf("the deadline leaves no room for block %d, which would take about %v", block+1, next.Round(time.Second))
	}
	return false, ""
}

// expectedBlock is how long the next block will take, by the slowest so far.
func (e *execution) expectedBlock() time.Duration {
	var longest time.Duration
	for _, d := range e.blockTimes {
		longest = max(longest, d)
	}
	if longest == 0 {
		longest, _, _ = e.Plan.Estimate(0)
	}
	return longest
}

// report tells the progress, with the share of the time that is over.
func (e *execution) report(s Status) {
	if e.Progress == nil {
		return
	}
	s.Blocks = e.Plan.Blocks.Max
	if e.rec != nil && s.Block > 0 {
		s.Run = e.rec.run
		perBlock := e.expectedBlock()
		elapsed := e.Now().Sub(e.started)
		total := time.Duration(e.Plan.Blocks.Max) * perBlock
		if len(e.blockTimes) > 0 {
			s.Left = max(0, total-time.Duration(s.Block-1)*perBlock)
		}
		if b := e.Spec.Plan.Budget; b > 0 && s.Left > b-elapsed {
			s.Left = max(0, b-elapsed)
		}
		s.Done = float64(s.Block-1) / float64(e.Plan.Blocks.Max)
	}
	e.Progress(s)
}
