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
	at       time.Time
	usage    []proc.Usage // by instance; zero without a server
	services []proc.Usage // by service
	audit    proc.Reading
	known    bool                    // the audit could be read
	there    map[string]proc.Reading // by host
}

// startAudit opens what is read at the borders of windows. Where nothing can
// be read the run goes on, and says so: evidence is no reason to lose a run.
func (e *execution) startAudit() {
	auditor, err := proc.NewAuditor(e.pinsHere())
	if err != nil {
		e.warnings = append(e.warnings, "what else this machine does is not known: "+err.Error())
		return
	}
	e.auditor = auditor
	e.warnings = append(e.warnings, auditor.Notes()...)
}

// auditOf is the outside evidence on a window.
func (w *window) auditOf(s load.Sample, before, after reading) journal.Audit {
	a := journal.Audit{Involuntary: s.Generator.Involuntary, Discarded: s.Dropped, Cycles: s.Cycles}
	if s.Generator.Wall > 0 {
		threads := float64(max(1, s.Generator.Threads))
		a.GeneratorBusy = s.Generator.CPU.Seconds() / s.Generator.Wall.Seconds() / threads
	}
	if s.InUse > 0 && s.Elapsed > 0 && s.Latency != nil && s.OK > 0 {
		// Little's law: requests in flight = throughput x time in the system.
		throughput := float64(s.OK) / s.Elapsed.Seconds()
		a.LittleMismatch = math.Abs(throughput*s.Latency.Mean()/1e9/s.InUse - 1)
	}
	if before.known && after.known {
		w.addSeen(&a, after.audit.Since(before.audit, w.ours("", w.pinsHere(), before, after)))
	}
	for name, r := range after.there {
		if b, ok := before.there[name]; ok {
			w.addSeen(&a, r.Since(b, w.ours(name, w.hosts[name].audited, before, after)))
		}
	}
	return a
}

// ours is the CPU time that this run's servers and services had on the
// audited CPUs of one machine.
func (w *window) ours(host string, audited proc.CPUs, before, after reading) (ours time.Duration) {
	if host == w.serverHost() {
		for i := range after.usage {
			ours += after.usage[i].CPU - before.usage[i].CPU
		}
	}
	for i, s := range w.services {
		if s.Host == host && len(s.cpus) > 0 && len(s.cpus.Minus(audited)) == 0 { // else it ran elsewhere, too
			ours += after.services[i].CPU - before.services[i].CPU
		}
	}
	return ours
}

// addSeen adds what was seen of one machine. Of several, the one in the worst
// state counts for shares, and CPU time that others took adds up.
func (w *window) addSeen(a *journal.Audit, seen proc.Audit) {
	a.Steal = max(a.Steal, seen.Steal)
	if w.sc.Command == nil && w.sc.Exec == nil { // whose processes would count as foreign
		a.OthersCPU += max(0, seen.OthersCPU-seen.OthersError)
	}
	a.Throttled += finite(seen.Throttled)
	a.TimeWait = max(a.TimeWait, finite(seen.TimeWait))
	if f := finite(seen.Frequency); f > 0 && (a.Frequency == 0 || f < a.Frequency) {
		a.Frequency = f
	}
}

// finite is v, or 0 where it is not known: JSON has no word for NaN, and
// these fields are left out at 0.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
