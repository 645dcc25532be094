package proc

import (
	"math"
	"time"
)

// Reading is what an [Auditor] saw at one moment: counters since the machine
// or this process started. Two of them give an [Audit].
type Reading struct {
	At          time.Time
	CPU         CPUTimes      // sum over the audited CPUs
	Self        time.Duration // CPU time of this process, the generator
	Involuntary int64         // times that this process was taken off its CPU
	Throttled   time.Duration // time that a quota kept our control group from running; -1: not known
	TimeWait    int           // connections that hold a port after their end; -1: not known
	Frequency   float64       // of the slowest audited CPU, Hz; NaN: not known
	CPUs        int           // how many are audited
	Ports       int           // how many local ports connections may use
}

// Audit is the outside evidence on a window: what else the machine did.
type Audit struct {
	Elapsed       time.Duration
	Steal         float64 // share of the audited CPUs' time that the hypervisor took
	GeneratorBusy float64 // generator CPU seconds per second
	Involuntary   int64   // times that the generator was taken off its CPU
	// OthersCPU is CPU seconds per second on the audited CPUs of processes
	// that are not of this run: what is neither idle, stolen nor interrupts,
	// less the run's own time. It is good to OthersError.
	OthersCPU   float64
	OthersError float64
	Throttled   float64 // CPU seconds per second that a quota took; NaN: not known
	TimeWait    float64 // share of the local ports that ended connections hold; NaN: not known
	Frequency   float64 // of the slowest audited CPU at the end, Hz; NaN: not known
}

// Since is the evidence on the time from an earlier reading to this one. ours
// is the CPU time that the run's own processes, other than the generator, had
// on the audited CPUs meanwhile.
func (r Reading) Since(before Reading, ours time.Duration) Audit {
	elapsed := r.At.Sub(before.At)
	if elapsed <= 0 {
		return Audit{Throttled: math.NaN(), TimeWait: math.NaN(), Frequency: r.Frequency}
	}
	per := func(d time.Duration) float64 { return d.Seconds() / elapsed.Seconds() }
	whole := elapsed * time.Duration(r.CPUs)
	a := Audit{
		Elapsed:       elapsed,
		GeneratorBusy: per(r.Self - before.Self),
		Involuntary:   r.Involuntary - before.Involuntary,
		Throttled:     math.NaN(),
		TimeWait:      math.NaN(),
		Frequency:     r.Frequency,
	}
	if r.CPUs > 0 {
		a.Steal = (r.CPU.Steal - before.CPU.Steal).Seconds() / whole.Seconds()
	}
	rest := func(t CPUTimes) time.Duration { return t.Idle + t.IOWait + t.Steal + t.IRQ + t.SoftIRQ }
	others := whole - (rest(r.CPU) - rest(before.CPU)) - (r.Self - before.Self) - ours
	a.OthersCPU = max(0, per(others))
	// Each of the five counters is cut to 10 ms, at both ends.
	a.OthersError = per(2 * 10 * time.Millisecond * time.Duration(r.CPUs))
	if r.Throttled >= 0 && before.Throttled >= 0 {
		a.Throttled = per(r.Throttled - before.Throttled)
	}
	if r.TimeWait >= 0 && r.Ports > 0 {
		a.TimeWait = float64(r.TimeWait) / float64(r.Ports)
	}
	return a
}
