package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/remote"
	"github.com/tandem-bench/tandem/spec"
)

// dialTimeout is how long a host may take to be ready, our program's way
// there included.
const dialTimeout = 5 * time.Minute

// serverHost is the host on which the servers run; "" for this machine. The
// spec sees to it that it is one for all arms.
func (e *execution) serverHost() string {
	if !e.needsServer() || len(e.arms) == 0 || e.arms[0].Server == nil {
		return ""
	}
	return e.arms[0].Server.Host
}

// machine is the machine of this name: a host of the spec, or, for "", this one.
func (e *execution) machine(name string) machine {
	if h := e.hosts[name]; h != nil {
		return h
	}
	return here{e}
}

// usedHosts are the hosts on which this run starts something, in spec order.
func (e *execution) usedHosts() []string {
	used := map[string]bool{e.serverHost(): true}
	for _, s := range e.Spec.Services {
		used[s.Host] = true
	}
	for _, a := range e.arms {
		for _, s := range a.Services {
			used[s.Host] = true
		}
	}
	var names []string
	for _, h := range e.Spec.Hosts {
		if used[h.Name] {
			names = append(names, h.Name)
		}
	}
	return names
}

// connectHosts dials the hosts that are used. The generator's CPUs are
// chosen by then: ssh stays off them.
func (e *execution) connectHosts(ctx context.Context) error {
	e.hosts = map[string]*there{}
	for _, name := range e.usedHosts() {
		e.report(Status{Phase: Starting, Detail: "connecting to host " + name})
		i := slices.IndexFunc(e.Spec.Hosts, func(h spec.Host) bool { return h.Name == name })
		limit, cancel := context.WithTimeoutCause(ctx, dialTimeout, fmt.Errorf("it was not ready within %v", dialTimeout))
		h, err := remote.Dial(limit, remote.Options{
			Host: e.Spec.Hosts[i], Supervisor: e.sup, Environ: e.Environ, CPUs: e.servicePins(""),
			LogDir: filepath.Join(e.Out, "logs"), Lost: func(err error) { e.lose(err) },
		})
		cancel()
		if err != nil {
			return err
		}
		e.hosts[name] = &there{Host: h, e: e, sent: map[int]bool{}}
		for _, note := range h.Facts().Notes {
			e.warnings = append(e.warnings, fmt.Sprintf("host %s: %s", name, note))
		}
	}
	return nil
}

// lostHost is the error of a connection that broke, where that ended ctx.
func lostHost(ctx context.Context) error {
	var lost *remote.LostError
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &lost) {
		return lost
	}
	return nil
}

// pinThere chooses the servers' CPUs on their host, and keeps the agent there
// off them.
func (e *execution) pinThere(ctx context.Context) error {
	host := e.hosts[e.serverHost()]
	if host == nil {
		return nil
	}
	facts := host.Facts()
	if len(facts.CPUs) == 0 {
		return e.notPinned(fmt.Errorf("CPUs cannot be chosen on host %s", host.Name()))
	}
	server, err := proc.AssignServer(e.Spec.Pins, proc.Machine{CPUs: facts.CPUs, Topology: facts.Topology})
	if err != nil {
		return fmt.Errorf("host %s: %w", host.Name(), err)
	}
	e.pins.Server, e.pins.Idle = server.Server, server.Idle
	for _, n := range server.Notes {
		e.warnings = append(e.warnings, fmt.Sprintf("host %s: %s", host.Name(), n))
	}
	if rest := facts.CPUs.Minus(server.Server).Minus(server.Idle); len(rest) > 0 && len(server.Server) > 0 {
		return host.Keep(ctx, rest)
	}
	return nil
}

// pinsHere are the CPUs of this machine that servers and generator are on.
func (e *execution) pinsHere() proc.CPUs {
	if e.serverHost() != "" {
		return e.pins.Load
	}
	return append(append(proc.CPUs{}, e.pins.Server...), e.pins.Load...)
}

// auditThere opens what is read of the hosts at the borders of windows: of
// the servers' CPUs, and of all CPUs of a host that has only services.
func (e *execution) auditThere(ctx context.Context) error {
	for _, name := range e.usedHosts() {
		h := e.hosts[name]
		h.audited = h.Facts().CPUs
		if name == e.serverHost() && len(e.pins.Server) > 0 {
			h.audited = e.pins.Server
		}
		notes, err := h.Audit(ctx, h.audited)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			h.audited = nil
			notes = []string{"what else this machine does is not known: " + err.Error()}
		}
		for _, n := range notes {
			e.warnings = append(e.warnings, fmt.Sprintf("host %s: %s", name, n))
		}
	}
	return nil
}

// readThere reads the audit of every host; one that cannot be read is left out.
func (e *execution) readThere() map[string]proc.Reading {
	readings := map[string]proc.Reading{}
	for name, h := range e.hosts {
		if h.audited == nil {
			continue
		}
		if r, err := h.ReadAudit(); err == nil {
			readings[name] = r
		}
	}
	return readings
}

// closeHosts ends everything on the hosts, and the connections.
func (e *execution) closeHosts() error {
	var errs []error
	for _, h := range e.hosts {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// hostFacts is what the journal tells of the hosts.
func (e *execution) hostFacts() []journal.RemoteHost {
	var all []journal.RemoteHost
	for _, s := range e.Spec.Hosts {
		h := e.hosts[s.Name]
		if h == nil {
			continue
		}
		r := journal.RemoteHost{Name: s.Name, SSH: s.SSH, Address: h.Address(), Servers: s.Name == e.serverHost(), Host: host(h.Facts().Host)}
		services := e.Spec.Services
		for _, a := range e.arms {
			services = slices.Concat(services, a.Services)
		}
		for _, svc := range services {
			if svc.Host == s.Name && !slices.Contains(r.Services, svc.Name) {
				r.Services = append(r.Services, svc.Name)
			}
		}
		all = append(all, r)
	}
	return all
}
