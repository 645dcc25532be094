// Package load puts load on servers and counts what comes back.
//
// runner hands a driver the copies of all arms as targets, and a [Schedule]
// that says in which order they take their turns; a driver returns one
// [Sample] for each target. A driver knows nothing of arms, blocks or
// verdicts, so it cannot favour one of them.
package load

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/spec"
)

// Target is one running copy, as a driver sees it.
type Target struct {
	Name string    // "base#0", for errors
	Addr string    // host:port
	Vars spec.Vars // what templates of the scenario may name: port, host, url, arm, copy, cpu

	// Expected is the answer of [Driver.Check] that every response is held
	// to: status and body must equal it, or satisfy the scenario's expect
	// expression. Nil: any status from 200 to 399 will do, or the expression.
	Expected *Response

	Dir  string   // the copy's tree, where its commands run; empty: the current folder
	Env  []string // the copy's whole environment, as NAME=value; nil: an empty one
	CPUs []int    // CPUs that processes of the copy are pinned to; empty: not pinned
}

// Driver makes loads of one kind of scenario.
type Driver interface {
	// Check sends the scenario's request once and returns the answer whole.
	// The same request definition serves the load.
	Check(ctx context.Context, t Target) (*Response, error)
	// Open connects to the targets. Its time is no part of any window.
	Open(ctx context.Context, targets []Target) (Load, error)
	// Interleaves reports whether one Load can alternate between several
	// targets; where it cannot, the runner opens one Load a target.
	Interleaves() bool
}

// Load is a set of open connections to a set of targets.
type Load interface {
	// Run loads the targets by the schedule and returns one sample for each,
	// in the order of the targets. It returns an error only where the
	// generator itself failed; failed requests are in the samples.
	Run(ctx context.Context, s Schedule) ([]Sample, error)
	// Close closes the connections. It may be called more than once.
	Close() error
}

// Schedule is one warm-up or window of a Load, for all its targets.
type Schedule struct {
	Mode   spec.Interleave
	Window time.Duration // measuring time of each target
	Turn   time.Duration // length of a turn, in modes turns and windows
	// Order fills order with the permutation of target indexes in which the
	// targets take their turns in this cycle. It is pure: the same cycle
	// gives the same order.
	Order func(cycle int, order []int)
	// Guard bounds what a cycle may have suffered from outside before it is
	// discarded for all targets alike. The zero value discards nothing.
	Guard Guard
}

// Guard is the outside evidence on which cycles are discarded, fixed before
// the run.
type Guard struct {
	CPUs     []int         // CPUs whose steal counts (the servers' and the generator's)
	Steal    bool          // discard a group of cycles in which steal time rose
	Lateness time.Duration // discard a group in which the generator was off its CPU this long; 0: never
}

// Sample is what one target did in one Run. A request is counted once, in
// exactly one of OK, Failed, InFlight and Discarded; their sum is Started.
type Sample struct {
	Started   int64 // requests written, at least in part
	OK        int64 // valid responses, in counted cycles
	Failed    int64 // requests that ended otherwise, in any cycle
	InFlight  int64 // requests unanswered when the run ended: neither success nor failure
	Discarded int64 // valid responses in cycles that the guard discarded

	Elapsed      time.Duration // sum of the counted turns, each from its first send to its last response
	TotalElapsed time.Duration // the same, with discarded turns
	Turns        int           // counted turns
	Cycles       int           // cycles run, the same for every target
	Dropped      int           // cycles discarded, the same for every target

	BytesIn  int64 // counted cycles; head and body as read from the socket
	BytesOut int64 // counted cycles

	Latency  *hdrhistogram.Histogram            // nanoseconds, one value for each OK request, from its first byte sent to its last byte read
	Hists    map[string]*hdrhistogram.Histogram // further distributions by metric family: ttfb, rtt, handshake, response_time; nanoseconds
	Interval []float64                          // requests per second, in consecutive seconds of measuring time
	InUse    float64                            // time average of requests in flight over Elapsed, kept apart from Latency for Little's law

	Errors  []ErrorCount
	Metrics map[string]float64 // metrics that a tool reported itself, in base units
	// Reported means that Metrics says all about rates and sizes: none are
	// derived from the counts, which a tool may not give, or which count
	// processes.
	Reported bool
	// Invalid says why the sample must not count, where the driver itself
	// found that it did not make the load that the scenario asks for.
	Invalid string

	Generator GeneratorUse // of the whole Run; the same for every target of it
}

// ErrorCount is one class of failed requests.
type ErrorCount struct {
	Class Class
	Count int64
	First []string // the first three, verbatim
}

// Class is a kind of failure.
type Class string

const (
	ConnectRefused  Class = "connect_refused"
	ConnectTimeout  Class = "connect_timeout"
	AddrUnavailable Class = "addr_unavailable"
	FDLimit         Class = "fd_limit"
	TLSError        Class = "tls"
	ReadReset       Class = "read_reset"
	EOF             Class = "eof"
	Timeout         Class = "timeout"
	Protocol        Class = "protocol"
	Status          Class = "status"
	Body            Class = "body"
	Other           Class = "other"
)

// GeneratorUse is what the generator itself used during a Run.
type GeneratorUse struct {
	Wall        time.Duration
	CPU         time.Duration // of the generator's threads together, less what they spent polling for nothing
	Threads     int           // that share the work; a generator is full at CPU = Threads * Wall. 0: not known
	Involuntary int64         // involuntary context switches
	Late        time.Duration // longest time off its CPU
}

// Response is the answer to one request, whole.
type Response struct {
	Status  int
	Header  map[string][]string // canonical names
	Body    []byte
	Elapsed time.Duration

	More []*Response // answers to the further requests of a rotation, in its order
}
