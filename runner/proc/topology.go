package proc

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Topology says which logical CPUs share a core. The zero value knows
// nothing: every CPU then counts as a core of its own.
type Topology struct {
	CPUs []CPUInfo // ascending by CPU
}

// CPUInfo is the place of one logical CPU.
type CPUInfo struct {
	CPU      int
	Siblings CPUs // logical CPUs of its core, itself included
	Package  int  // socket; -1 where it is not known
}

// Siblings lists the other CPUs of the core that cpu is on.
func (t Topology) Siblings(cpu int) CPUs {
	for _, c := range t.CPUs {
		if c.CPU == cpu {
			return c.Siblings.Minus(CPUs{cpu})
		}
	}
	return nil
}

// pkg is the socket of a CPU, -1 where it is not known.
func (t Topology) pkg(cpu int) int {
	for _, c := range t.CPUs {
		if c.CPU == cpu {
			return c.Package
		}
	}
	return -1
}

// SMT reports whether any core has more than one logical CPU.
func (t Topology) SMT() bool {
	for _, c := range t.CPUs {
		if len(c.Siblings) > 1 {
			return true
		}
	}
	return false
}

// topologyFrom reads the topology below /sys/devices/system/cpu. A CPU that
// does not say who its siblings are is left alone on its core.
func topologyFrom(sys fs.FS) (Topology, error) {
	online, err := readLine(sys, "online")
	if err != nil {
		return Topology{}, fmt.Errorf("read the CPU topology: %w", err)
	}
	cpus, err := ParseCPUs(online)
	if err != nil {
		return Topology{}, fmt.Errorf("read the CPU topology: online: %w", err)
	}
	var t Topology
	for _, n := range cpus {
		info := CPUInfo{CPU: n, Siblings: CPUs{n}, Package: -1}
		dir := "cpu" + strconv.Itoa(n) + "/topology/"
		if s, err := readLine(sys, dir+"thread_siblings_list"); err == nil {
			sib, err := ParseCPUs(s)
			if err != nil || !sib.Has(n) {
				return t, fmt.Errorf("read the CPU topology: %sthread_siblings_list: found %q, expected a list with CPU %d in it", dir, s, n)
			}
			info.Siblings = sib.And(cpus)
		}
		if s, err := readLine(sys, dir+"physical_package_id"); err == nil {
			if id, err := strconv.Atoi(s); err == nil {
				info.Package = id
			}
		}
		t.CPUs = append(t.CPUs, info)
	}
	return t, nil
}

// readLine is the content of a small file, without blanks around it.
func readLine(sys fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(sys, name)
	return strings.TrimSpace(string(b)), err
}
