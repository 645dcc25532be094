// Package journal keeps what a run measured: an append-only file of JSON
// lines, one record a line, from which every report can be made again.
//
// runner writes it (a header first, a line for each trial, an end); report
// reads it. It knows nothing of how a trial was taken or will be judged.
package journal

import (
	"encoding/json"
	"time"
)

// Version is the format of the lines that this package writes.
const Version = 1

// Header is the first line: what was run, on what, by which plan.
type Header struct {
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Tool     string          `json:"tool"` // Tandem's own version
	Started  time.Time       `json:"started"`
	Seed     uint64          `json:"seed"`
	Spec     json.RawMessage `json:"spec"`             // a spec.Spec
	Filter   []string        `json:"filter,omitempty"` // the --scenario globs of the run
	Same     bool            `json:"same,omitempty"`   // every candidate was a copy of the baseline
	Host     Host            `json:"host"`
	Hosts    []RemoteHost    `json:"hosts,omitempty"` // other machines, in spec order
	Arms     []Arm           `json:"arms"`            // in plan order, the baseline first
	Rows     []string        `json:"rows"`            // IDs of the planned scenarios, in spec order
	Copies   int             `json:"copies"`
	Looks    []int           `json:"looks"`           // blocks after which the table is looked at
	Shard    string          `json:"shard,omitempty"` // of a run --shard, "2/4"
	Parts    []Part          `json:"parts,omitempty"` // of a merged run: its shards, in order
	Origin   *Origin         `json:"origin,omitempty"`
	Pins     Pins            `json:"pins"`
	Warnings []string        `json:"warnings,omitempty"`
}

// Origin says whose spec a run was taken with, and what the change under test
// changes of the benchmark itself.
type Origin struct {
	Side      string   `json:"side"`                 // base or head
	Base      string   `json:"base,omitempty"`       // commit of the branch that the change goes to
	Head      string   `json:"head,omitempty"`       // commit of the change
	MergeBase string   `json:"merge_base,omitempty"` // commit that it began from
	Changed   []string `json:"changed,omitempty"`    // files of the benchmark that it changes
	Approved  string   `json:"approved,omitempty"`   // its label that the policy asks for, if it has it
}

// Arm is what an arm turned out to be.
type Arm struct {
	Name     string            `json:"name"`
	Label    string            `json:"label,omitempty"`
	Source   string            `json:"source"`             // as the spec names it, "git main" or "dir ."
	Revision string            `json:"revision,omitempty"` // commit hash
	Dirty    bool              `json:"dirty,omitempty"`    // uncommitted changes were part of it
	Digest   string            `json:"digest,omitempty"`   // of the built tree
	Cached   bool              `json:"cached,omitempty"`   // the build came from the cache
	Versions map[string]string `json:"versions,omitempty"`
}

// Host is the machine, as far as it can be read.
type Host struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"` // logical CPUs usable by this process
	Kernel     string `json:"kernel"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	MemTotal   int64  `json:"mem_total,omitempty"` // bytes
	Governor   string `json:"governor,omitempty"`
	SMT        bool   `json:"smt,omitempty"`
	Hypervisor string `json:"hypervisor,omitempty"`
	Container  string `json:"container,omitempty"`
}

// RemoteHost is another machine on which a part of the run took place.
type RemoteHost struct {
	Name     string   `json:"name"`
	SSH      string   `json:"ssh"`
	Address  string   `json:"address"` // where the generator reached it
	Servers  bool     `json:"servers,omitempty"`
	Services []string `json:"services,omitempty"`
	Host     Host     `json:"host"`
}

// Pins are the CPUs that were used; empty means unpinned.
type Pins struct {
	Server string `json:"server,omitempty"`
	Load   string `json:"load,omitempty"`
	Idle   string `json:"idle,omitempty"` // left idle on purpose
}

// Trial is the record of one window: what one copy of one arm did in one
// block under one scenario. Metrics are in base units: seconds, bytes, 1/s.
type Trial struct {
	Block    int          `json:"block"` // from 0
	Scenario string       `json:"scenario"`
	Arm      string       `json:"arm"`
	Copy     int          `json:"copy"` // from 0
	Slot     int          `json:"slot"` // this copy's place in the order of starts
	Started  time.Time    `json:"started"`
	Elapsed  float64      `json:"elapsed"` // measured seconds, the sum of the counted turns
	Turns    int          `json:"turns,omitempty"`
	Metrics  Metrics      `json:"metrics"`
	Errors   []ErrorCount `json:"errors,omitempty"`
	Latency  []byte       `json:"latency,omitempty"`  // HDR histogram, V2 compressed encoding, nanoseconds
	Interval []float64    `json:"interval,omitempty"` // requests per second in consecutive seconds of measuring time
	Audit    Audit        `json:"audit"`
	Services []ServiceUse `json:"services,omitempty"` // those that the arm uses, in the order of their starts
	Invalid  string       `json:"invalid,omitempty"`  // why it does not count; the whole block of the row is left out with it
	Warnings []string     `json:"warnings,omitempty"` // what qualifies it
}

// ErrorCount is one class of failed requests.
type ErrorCount struct {
	Class string   `json:"class"`
	Count int64    `json:"count"`
	First []string `json:"first,omitempty"` // the first three, verbatim
}

// Audit is the outside evidence on a window: what else the machine did.
type Audit struct {
	Steal          float64 `json:"steal"`                     // share of the run's time that the hypervisor took from our CPUs
	GeneratorBusy  float64 `json:"generator_busy"`            // share of the time in which the generator worked; 1: it was full
	Involuntary    int64   `json:"involuntary,omitempty"`     // involuntary context switches of the generator
	Discarded      int     `json:"discarded,omitempty"`       // cycles left out, for all copies alike
	Cycles         int     `json:"cycles,omitempty"`          // cycles run
	OthersCPU      float64 `json:"others_cpu,omitempty"`      // CPU seconds per second of other processes on our CPUs
	Throttled      float64 `json:"throttled,omitempty"`       // CPU seconds per second that a quota of our control group took
	TimeWait       float64 `json:"time_wait,omitempty"`       // share of the local ports that ended connections still hold
	Frequency      float64 `json:"frequency,omitempty"`       // of the slowest of our CPUs at the window's end, in Hz
	SoloRPS        float64 `json:"solo_rps,omitempty"`        // requests per second in a window of its own, at the end of the warm-up
	LittleMismatch float64 `json:"little_mismatch,omitempty"` // |rps * mean latency / mean in flight - 1|
}

// ServiceUse is what one service cost while the window was measured: for all
// copies together that took turns in it, since a service serves them all.
type ServiceUse struct {
	Name   string  `json:"name"`
	Busy   float64 `json:"busy"`              // CPU seconds per second
	MaxRSS int64   `json:"max_rss,omitempty"` // peak of its memory so far, in bytes
}

// Check is the record of the request sent to every copy before any load.
type Check struct {
	Block    int    `json:"block"`
	Scenario string `json:"scenario"`
	Outcome  string `json:"outcome"`          // one of the Check constants
	Reason   string `json:"reason,omitempty"` // what differed, and where
	Arm      string `json:"arm,omitempty"`    // the arm it concerns, if one
}

// The outcomes of a check.
const (
	CheckOK           = "ok"
	CheckIncomparable = "incomparable" // the arms answer differently, or not as expected
	CheckFailed       = "failed"       // a copy did not answer, or with an error
	CheckNew          = "new"          // only the candidate has the scenario
	CheckRemoved      = "removed"      // only the baseline has it
)

// The reasons for which a run ends.
const (
	EndSettled     = "settled"     // every judged row is marked or the same
	EndBlocks      = "blocks"      // the plan is done
	EndBudget      = "budget"      // the plan's budget or the deadline is used up
	EndInterrupted = "interrupted" // by a signal
	EndFailed      = "failed"      // something could not be measured
)

// BlockEnd closes a block.
type BlockEnd struct {
	Block  int       `json:"block"`
	Shard  string    `json:"shard,omitempty"` // of a merged run: whose block it is
	Ended  time.Time `json:"ended"`
	Failed string    `json:"failed,omitempty"`
}

// End is the last line of a run that ended by itself.
type End struct {
	Ended    time.Time `json:"ended"`
	Reason   string    `json:"reason"` // one of the End constants
	Detail   string    `json:"detail,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
}
