package proc

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tandem-bench/tandem/spec"
)

// Pinning says who runs where. An empty set is unpinned.
type Pinning struct {
	Server CPUs
	Load   CPUs
	Idle   CPUs     // siblings of the servers' CPUs, left idle on purpose
	Notes  []string // what falls short, in plain words
}

// Assign chooses the CPUs of the servers and of the generator. avail is what
// this process may use, from [Available]. It is pure.
//
// "auto" gives the servers one CPU of the last core, away from CPU 0, where
// kernels like to do their own work, and leaves the siblings of that CPU
// idle; the generator gets CPUs of other cores of the same socket, one per
// core while there are any. Where a machine is too small for that, a note
// says what had to be shared. Lists that name a missing CPU, that overlap or
// that leave nothing over are errors.
func Assign(p spec.Pins, generatorCPUs int, avail CPUs, t Topology) (Pinning, error) {
	a := assigner{avail: avail, topo: t, want: max(generatorCPUs, 1)}
	var out Pinning
	if len(avail) == 0 {
		return out, fmt.Errorf("pins: no CPU may be used by this process")
	}
	var err error
	if out.Server, err = a.explicit("server", p.Server); err != nil {
		return out, err
	}
	if out.Load, err = a.explicit("load", p.Load); err != nil {
		return out, err
	}
	if both := out.Server.And(out.Load); len(both) > 0 && len(avail) > 1 {
		return out, fmt.Errorf("pins: server %q and load %q both name CPU %s; give each CPUs of its own", p.Server, p.Load, both)
	}
	if len(out.Load) > 0 && len(out.Load) < a.want {
		return out, fmt.Errorf("pins: load %q has %d CPUs, but generator.cpus asks for %d", p.Load, len(out.Load), a.want)
	}
	if p.Server == "auto" {
		if out.Server, err = a.server(out.Load); err != nil {
			return out, err
		}
	}
	siblings := a.siblingsOf(out.Server)
	if p.Load == "auto" {
		if out.Load, err = a.load(out.Server, siblings); err != nil {
			return out, err
		}
	}
	out.Idle = siblings.Minus(out.Load)
	out.Notes = a.notes(p, out, siblings)
	return out, nil
}

// assigner holds what one Assign chooses from.
type assigner struct {
	avail CPUs
	topo  Topology
	want  int // CPUs of the generator
}

// explicit reads a list of the spec; auto and none give an empty set.
func (a assigner) explicit(key, value string) (CPUs, error) {
	switch value {
	case "auto", "none":
		return nil, nil
	case "":
		return nil, fmt.Errorf("pins.%s: found nothing, expected auto, none or a CPU list such as \"0\" or \"2-3\"", key)
	}
	c, err := ParseCPUs(value)
	if err != nil {
		return nil, fmt.Errorf("pins.%s: %w", key, err)
	}
	if missing := c.Minus(a.avail); len(missing) > 0 {
		return nil, fmt.Errorf("pins.%s: CPU %s of %q does not exist or may not be used; CPU %s may", key, missing, value, a.avail)
	}
	return c, nil
}

// siblingsOf lists the usable CPUs that share a core with one of c and are not in it.
func (a assigner) siblingsOf(c CPUs) CPUs {
	var s CPUs
	for _, n := range c {
		s = append(s, a.topo.Siblings(n)...)
	}
	return s.normal().Minus(c).And(a.avail)
}

// server chooses the CPU of the servers: of the last core that the generator
// does not use, its first CPU.
func (a assigner) server(load CPUs) (CPUs, error) {
	free := a.avail.Minus(load)
	if len(free) == 0 {
		if len(a.avail) == 1 {
			return a.avail, nil
		}
		return nil, fmt.Errorf("pins: load takes CPU %s, which leaves none for the servers", load)
	}
	if apart := free.Minus(a.siblingsOf(load)); len(apart) > 0 {
		free = apart
	}
	best := free[len(free)-1]
	if core := append(a.topo.Siblings(best), best).normal().And(free); len(core) > 0 {
		best = core[0]
	}
	return CPUs{best}, nil
}

// load chooses the CPUs of the generator: other cores first, one CPU of each,
// then the rest of those cores, then the siblings of the servers' CPUs.
func (a assigner) load(server, siblings CPUs) (CPUs, error) {
	if len(a.avail) == 1 {
		if a.want > 1 {
			return nil, fmt.Errorf("generator.cpus asks for %d CPUs, but only CPU %s may be used", a.want, a.avail)
		}
		return a.avail, nil
	}
	free := a.avail.Minus(server)
	if len(free) < a.want {
		return nil, fmt.Errorf("pins: generator.cpus asks for %d CPUs, but beside the servers' CPU %s only %d may be used (%s)", a.want, server, len(free), free)
	}
	order := slices.Clone(free)
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(a.cost(x, server, siblings), a.cost(y, server, siblings))
	})
	return order[:a.want].normal(), nil
}

// cost ranks a CPU for the generator; lower is better.
func (a assigner) cost(n int, server, siblings CPUs) int {
	c := 0
	if siblings.Has(n) {
		c += 100 // would share a core with the server
	}
	if len(server) > 0 && a.topo.pkg(n) != a.topo.pkg(server[0]) {
		c += 10 // another socket: every packet crosses over
	}
	for _, s := range a.topo.Siblings(n) {
		if s < n {
			c++ // the second thread of a core that is used already
		}
	}
	return c
}

// notes says what the machine was too small for, or what the spec gave up.
func (a assigner) notes(p spec.Pins, out Pinning, siblings CPUs) []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case len(a.avail) == 1 && (len(out.Server) > 0 || len(out.Load) > 0):
		add("there is only one CPU (%s): the generator and the servers take it from each other, so requests per second are those of both together", a.avail)
	case len(out.Server.And(out.Load)) > 0:
		add("the generator and the servers share CPU %s", out.Server.And(out.Load))
	case len(siblings.And(out.Load)) > 0:
		add("the generator's CPU %s is a sibling hyperthread of the servers' CPU %s: each slows the other", out.Load, out.Server)
	}
	if p.Server == "none" {
		add("the servers are not pinned: the scheduler moves them, which adds noise")
	}
	if p.Load == "none" {
		add("the generator is not pinned: it may run on the servers' CPU")
	}
	if len(a.topo.CPUs) == 0 && len(a.avail) > 1 {
		add("it is not known which CPUs share a core: the generator may slow the servers")
	}
	return notes
}
