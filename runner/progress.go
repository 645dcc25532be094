package runner

import (
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
)

// Phase is a stage of a run.
type Phase string

const (
	Building  Phase = "build"
	Starting  Phase = "start"
	Checking  Phase = "check"
	WarmingUp Phase = "warm-up"
	Measuring Phase = "measure"
	Finishing Phase = "finish"
)

// Status says where a run is. It is reported between windows only: nothing
// is printed while something is measured.
type Status struct {
	Phase    Phase
	Detail   string // the step of a build, the copy that starts
	Block    int    // from 1; 0 before the first
	Blocks   int    // the most there can be
	Scenario string
	Done     float64       // share of the plan's time that is over, 0 to 1
	Left     time.Duration // expected until the plan's end; 0: not known yet
	Run      *journal.Run  // what was measured so far; nil before the first block. To be read within the call only
}

// Progress receives every Status.
type Progress func(Status)
