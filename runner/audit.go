package runner

import (
	"math"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/runner/proc"
)

// reading is what is read of the machine and of the servers at a window's
// border, when nothing is in flight.
type reading struct {
	at    time.Time
	usage []proc.Usage          // by instance; zero without a server
	cpus  map[int]proc.CPUTimes // nil where they cannot be read
}

// auditOf is the outside evidence on a window. It counts CPU time in ticks
// of ten milliseconds, so it says little of windows shorter than a second.
func (w *window) auditOf(s load.Sample, before, after reading) journal.Audit {
	a := journal.Audit{Involuntary: s.Generator.Involuntary, Discarded: s.Dropped, Cycles: s.Cycles}
	if s.Generator.Wall > 0 {
		a.GeneratorBusy = s.Generator.CPU.Seconds() / s.Generator.Wall.Seconds()
	}
	if s.InUse > 0 && s.Elapsed > 0 && s.Latency != nil && s.OK > 0 {
		// Little's law: requests in flight = throughput x time in the system.
		throughput := float64(s.OK) / s.Elapsed.Seconds()
		a.LittleMismatch = math.Abs(throughput*s.Latency.Mean()/1e9/s.InUse - 1)
	}
	wall := after.at.Sub(before.at).Seconds()
	if wall <= 0 || before.cpus == nil || after.cpus == nil {
		return a
	}
	var steal, busy time.Duration
	for _, cpu := range append(append(proc.CPUs{}, w.pins.Server...), w.pins.Load...) {
		steal += after.cpus[cpu].Steal - before.cpus[cpu].Steal
		if w.pins.Server.Has(cpu) {
			busy += after.cpus[cpu].Busy() - before.cpus[cpu].Busy()
		}
	}
	n := len(w.pins.Server) + len(w.pins.Load)
	if n > 0 {
		a.Steal = steal.Seconds() / wall / float64(n)
	}
	if w.sc.Command != nil {
		return a // what runs on the servers' CPUs then are the commands themselves
	}
	for i := range after.usage {
		busy -= after.usage[i].CPU - before.usage[i].CPU
	}
	a.OthersCPU = max(0, busy.Seconds()/wall)
	return a
}
