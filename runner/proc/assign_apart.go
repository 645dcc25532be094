package proc

import (
	"fmt"

	"github.com/tandem-bench/tandem/spec"
)

// Machine is what there is to choose CPUs from on one machine.
type Machine struct {
	CPUs     CPUs // that may be used, from [Available]
	Topology Topology
}

// AssignLoad chooses CPUs as [Assign] does, for a generator whose servers run
// on another machine. It is pure.
func AssignLoad(p spec.Pins, generatorCPUs int, m Machine) (Pinning, error) {
	out, err := Assign(spec.Pins{Server: "none", Load: p.Load}, generatorCPUs, m.CPUs, m.Topology)
	out.Notes = nil // they are about servers beside it
	if p.Load == "none" {
		out.Notes = append(out.Notes, "the generator is not pinned: the scheduler moves it, which adds noise")
	}
	return out, err
}

// AssignServer chooses CPUs as [Assign] does, for servers whose generator runs
// on another machine. It is pure.
func AssignServer(p spec.Pins, m Machine) (Pinning, error) {
	out, err := Assign(spec.Pins{Server: p.Server, Load: "none"}, 1, m.CPUs, m.Topology)
	out.Notes = nil
	if p.Server == "none" {
		out.Notes = append(out.Notes, "the servers are not pinned: the scheduler moves them, which adds noise")
	}
	if len(m.CPUs) == 1 && len(out.Server) > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("there is only one CPU (%s): what ssh and Tandem need, the servers lack", m.CPUs))
	}
	return out, err
}
