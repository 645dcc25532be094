package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

// service is one helper process of a run, such as a database.
type service struct {
	spec.Service
	arm     string // whose it is; "" where all arms share it
	vars    spec.Vars
	cpus    proc.CPUs
	owner   *proc.User // who runs it; nil: we
	there   string     // the folder that it is started in, on a host
	process process
}

// title names a service in messages: "service db", "service db of head".
func (s *service) title() string {
	if s.arm == "" {
		return "service " + s.Name
	}
	return "service " + s.Name + " of " + s.arm
}

// key names a service in file names.
func (s *service) key() string {
	if s.arm == "" {
		return s.Name
	}
	return s.arm + "-" + s.Name
}

// startServices starts the spec's helpers, those that all arms share first,
// and waits for each. The ports of all are chosen before the first starts,
// so that each may name any other.
func (e *execution) startServices(ctx context.Context) error {
	if err := e.planServices(ctx); err != nil {
		return err
	}
	for _, s := range e.services {
		if err := e.startService(ctx, s); err != nil {
			return err
		}
	}
	return e.resetServices(ctx, spec.RunPart, nil)
}

// planServices gives each service its port and, where it asks for one, its
// folder.
func (e *execution) planServices(ctx context.Context) error {
	add := func(arm string, all []spec.Service) error {
		for _, s := range all {
			planned, err := e.planService(ctx, arm, s)
			if err != nil {
				return fmt.Errorf("service %s: %w", s.Name, err)
			}
			e.services = append(e.services, planned)
		}
		return nil
	}
	if err := add("", e.Spec.Services); err != nil {
		return err
	}
	for i, arm := range e.arms {
		if err := add(e.Plan.Arms[i], arm.Services); err != nil {
			return err
		}
	}
	return nil
}

func (e *execution) planService(ctx context.Context, arm string, s spec.Service) (*service, error) {
	planned := &service{Service: s, arm: arm, cpus: e.servicePins(s.Host)}
	port := s.Port
	var err error
	if port == 0 {
		if port, err = e.machine(s.Host).FreePort(ctx); err != nil {
			return nil, err
		}
	}
	if s.CPUs != "" {
		if planned.cpus, err = proc.ParseCPUs(s.CPUs); err != nil {
			return nil, err
		}
	}
	host, url := address(e.machine(s.Host), port)
	planned.vars = spec.Vars{"port": strconv.Itoa(port), "host": host, "url": url}
	if s.Host != "" {
		return planned, e.planThere(ctx, planned)
	}
	if planned.owner, err = proc.ForRoot(s.User); err != nil {
		return nil, err
	}
	if s.User == "" && !usesData(s) {
		return planned, nil
	}
	if planned.vars["data"], err = e.dataFolder(planned.key()); err != nil {
		return nil, err
	}
	return planned, planned.owner.Own(planned.vars["data"])
}

// place is where the commands of a service run, and who runs them: another
// user may not be let into the spec's folder, and has a home elsewhere.
func (s *service) place(e *execution, env map[string]string) place {
	if s.Host != "" {
		return place{dir: s.there}
	}
	p := place{dir: filepath.Join(e.Spec.Dir, s.Dir), user: s.owner}
	if s.User != "" && s.Dir == "" {
		p.dir = s.vars["data"]
	}
	if _, ok := env["HOME"]; s.owner != nil && !ok {
		env["HOME"] = s.vars["data"]
	}
	return p
}

// usesData reports whether a service asks for a folder of its own.
func usesData(s spec.Service) bool {
	var all []spec.Template
	command := func(c spec.Command, env map[string]spec.Template) {
		all = append(append(all, c.Shell), c.Argv...)
		all = slices.AppendSeq(all, maps.Values(env))
	}
	command(s.Command, s.Env)
	steps := s.Setup
	if s.Reset != nil {
		steps = slices.Concat(steps, s.Reset.Steps)
	}
	for _, st := range steps {
		command(st.Run, st.Env)
	}
	if s.Ready.Exec != nil {
		command(*s.Ready.Exec, nil)
	}
	return slices.ContainsFunc(all, func(t spec.Template) bool { return slices.Contains(t.Refs(), "data") })
}

// dataFolder makes an empty folder for the files of a service.
func (e *execution) dataFolder(name string) (string, error) {
	if e.data == "" {
		dir, release, err := source.OpenData(e.work)
		if err != nil {
			return "", err
		}
		e.data, e.releaseData = dir, release
	}
	dir := filepath.Join(e.data, name)
	return dir, os.Mkdir(dir, 0o755)
}

// serviceVars is what an arm, or with "" everybody, may name of services.
func (e *execution) serviceVars(arm string) spec.Vars {
	vars := spec.Vars{}
	for _, s := range e.services {
		if s.arm != "" && s.arm != arm {
			continue
		}
		for _, field := range []string{"port", "host", "url"} {
			vars["services."+s.Name+"."+field] = s.vars[field]
		}
	}
	return vars
}

// startService sets a service up, starts it and waits until it is ready.
func (e *execution) startService(ctx context.Context, s *service) error {
	e.report(Status{Phase: Starting, Detail: s.title()})
	maps.Copy(s.vars, e.serviceVars(s.arm))
	for i, st := range s.Setup {
		if err := e.stepOf(ctx, s, fmt.Sprintf("setup %d of %s", i+1, s.title()), st, s.vars); err != nil {
			return err
		}
	}
	env, err := expandEnv(s.vars, e.Env, s.Env)
	if err != nil {
		return fmt.Errorf("%s: %w", s.title(), err)
	}
	at := s.place(e, env)
	argv, err := s.Command.Resolve(s.vars, e.Env)
	if err != nil {
		return fmt.Errorf("%s: %w", s.title(), err)
	}
	// An interruption leaves it running, for the commands after the run; it is
	// stopped as the spec says, and not killed.
	m := e.machine(s.Host)
	s.process, err = m.Start(context.WithoutCancel(ctx), proc.Cmd{
		Name: s.title(), Argv: argv, Dir: at.dir, User: at.user, Env: proc.Environ(m.Environ(), env),
		CPUs: s.cpus, Log: filepath.Join(e.Out, "logs", "service-"+s.key()+".log"),
	})
	if err != nil {
		return fmt.Errorf("starting %s (%s): %w", s.title(), s.Command, err)
	}
	port, err := strconv.Atoi(s.vars["port"])
	if err != nil {
		return err
	}
	return e.waitReady(ctx, s.process, s.Ready, s.vars, port, s.title(), prober{m, probeDir(s.Host, s.there, e.Spec.Dir)})
}

// resetServices puts back the services that are to be before each part of
// this kind.
func (e *execution) resetServices(ctx context.Context, part spec.Part, vars spec.Vars) error {
	for _, s := range e.services {
		if s.Reset == nil || s.Reset.Before != part {
			continue
		}
		all := maps.Clone(s.vars)
		maps.Copy(all, vars)
		for _, st := range s.Reset.Steps {
			var of *service
			if s.Host != "" {
				of = s // where its folder is; elsewhere a reset runs in the spec's
			}
			if err := e.stepOf(ctx, of, "reset of "+s.title(), st, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// deadService says why a service can no longer serve, or "".
func (e *execution) deadService() string {
	for _, s := range e.services {
		if s.process == nil {
			continue
		}
		select {
		case <-s.process.Done():
			return fmt.Sprintf("%s ended in mid-run: %v%s", s.title(), s.process.Err(), logTail(s.process))
		default:
		}
	}
	return ""
}

// stopServices stops the services, the last one first, and removes their
// folders.
func (e *execution) stopServices() error {
	var errs []error
	for _, s := range slices.Backward(e.services) {
		if s.process == nil {
			continue
		}
		if err := s.process.Stop(s.Stop); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", s.title(), err))
		}
	}
	if e.releaseData != nil {
		errs = append(errs, e.releaseData())
	}
	return errors.Join(errs...)
}

// servicePins are the CPUs of services on this machine or a host: not the
// generator's, which it does not share, since it polls them without sleeping.
func (e *execution) servicePins(host string) proc.CPUs {
	if h := e.hosts[host]; h != nil {
		if host == e.serverHost() {
			return h.Facts().CPUs.Minus(e.pins.Idle)
		}
		return h.Facts().CPUs
	}
	avail, err := proc.Available()
	if err != nil {
		return nil
	}
	if e.serverHost() != "" {
		return avail.Minus(e.pins.Load)
	}
	return avail.Minus(e.pins.Load).Minus(e.pins.Idle)
}

// readServices reads what each service has cost so far. One that cannot be
// read is left out: it is evidence, and no reason to lose a window.
func (e *execution) readServices() []proc.Usage {
	if len(e.services) == 0 {
		return nil
	}
	all := make([]proc.Usage, len(e.services))
	for i, s := range e.services {
		if u, err := s.process.Usage(); err == nil {
			all[i] = u
		}
	}
	return all
}

// serviceUse is what the services that an arm uses cost between two readings.
func (e *execution) serviceUse(arm string, before, after reading) []journal.ServiceUse {
	var out []journal.ServiceUse
	wall := after.at.Sub(before.at).Seconds()
	for i, s := range e.services {
		if s.arm != "" && s.arm != arm || wall <= 0 {
			continue
		}
		out = append(out, journal.ServiceUse{
			Name: s.Name, Busy: (after.services[i].CPU - before.services[i].CPU).Seconds() / wall, MaxRSS: after.services[i].MaxRSS,
		})
	}
	return out
}
