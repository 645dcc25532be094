// Package report turns a journal into an [Analysis], and an Analysis into
// text, markdown, JSON and the other formats.
//
// All judging is done in Analyze and all formatting in the renderers: a
// renderer does no arithmetic beyond choosing a unit. The package never
// starts anything, so an old journal can be reported on any machine.
package report

import (
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// Verdict is what a row came to.
type Verdict string

const (
	Regressed    Verdict = "regressed"
	Improved     Verdict = "improved"
	Same         Verdict = "same"
	Unsure       Verdict = "unsure"
	New          Verdict = "new"
	Removed      Verdict = "removed"
	Failed       Verdict = "failed"
	Incomparable Verdict = "incomparable"
)

// Analysis is a whole run, judged. It holds everything that a reader needs
// to believe or doubt a row, in base units.
type Analysis struct {
	Header   *journal.Header
	Spec     *spec.Spec
	SpecSide string // whose Spec is: "base" or "head" of the change, "run" where only the journal knows, or "given"
	Finished time.Time
	Partial  string // why the run ended before its plan did; "" where it did not
	TimeUp   string // what of the budget or the deadline ended the run; "" where neither did

	Baseline journal.Arm
	Arms     []journal.Arm // the baseline first

	Rows    []Row        // judged and shown rows: by scenario, then candidate, then metric, in plan order
	Gates   []GateResult // in spec order
	Promise Promise
	Audit   AuditSummary

	Services []ServiceSummary // in the order of their starts
	Warnings []string
	Outcome  Outcome

	run       *journal.Run // nil for a result read back
	endReason string       // the journal's; "" for a run without an end
}

// Row is one scenario and one metric, one candidate against the baseline.
type Row struct {
	Scenario string // scenario ID
	Name     string // its name without the matrix point
	Matrix   []spec.Axis
	Metric   string
	Unit     string // s, B, 1/s, ratio or ""
	Better   string // higher or lower
	Judged   bool   // false: shown, with Ratio, PerBlock and Range, and never marked
	Control  bool

	Base Side
	Head Side // the candidate

	Ratio      float64    // candidate / baseline; NaN where there is none
	Change     float64    // Ratio - 1
	Worse      float64    // Change, signed so that a worsening is positive
	CI         [2]float64 // of the ratio
	Confidence float64    // of CI
	Noise      float64    // |change| at which the row would just be marked, at the table's alpha
	P          float64    // adjusted for the whole table
	Range      [2]float64 // smallest and largest ratio of any block
	PerBlock   []float64  // ratio of each counted block, in block order
	BlockIDs   []int      // the blocks of PerBlock
	Blocks     int        // blocks that count
	Dropped    int        // blocks left out, for all copies alike

	DropReasons []string // one for each dropped block

	Verdict    Verdict
	Marked     bool   // |change| > noise, or the threshold's mark expression
	Reason     string // for the verdicts that need one
	MoreBlocks int    // estimated further blocks that would settle an unsure row; 0: unknown or none
	Warnings   []string
	limited    bool // the generator was the limit: a ratio near one says nothing
	undecided  bool // a gate of the row could not be evaluated
}

// Side is one arm's part of a row.
type Side struct {
	Arm     string
	Value   float64            // geometric mean over blocks and copies of the row's metric
	Metrics map[string]float64 // the same for every metric of the scenario
	Trials  int
}

// GateResult is one threshold on one row.
type GateResult struct {
	Threshold int // index of the threshold in the spec; -1 where a policy decided alone
	Metric    string
	Scenario  string // scenario ID of the row
	Arm       string // the candidate
	Level     spec.Action
	Source    string // the expression
	Message   string
	Reason    string // the figures that decided it, or why it could not be decided
	Policy    string // the policy that decided it, where no expression did
	Undecided bool   // the expression could not be evaluated, which never passes
	Line      int    // of the spec; 0 where a policy decided alone
}

// Promise is what the table's error rate means.
type Promise struct {
	Alpha        float64
	Rows         int // judged
	Looks        []int
	Permutations int
	Exact        bool
	MinBlocks    int // blocks after which the first look that can mark a row comes; 0: none can
}

// AuditSummary sums up the outside evidence.
type AuditSummary struct {
	Trials        int
	Invalid       int
	Cycles        int
	Discarded     int // cycles
	BlocksDropped int // of all judged scenarios, each counted by itself
	StealMax      float64
	StealMean     float64
	SoloRatio     float64 // median of solo rps / rps in turns; 0: unknown
}

// Outcome is what a run came to; cmd maps it to an exit code.
type Outcome string

const (
	Passed      Outcome = "passed"
	GateFailed  Outcome = "failed"
	Undecided   Outcome = "unsure"
	NotMeasured Outcome = "not_measured"
	Interrupted Outcome = "interrupted"
)
