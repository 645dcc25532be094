package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

// buildArms makes the built tree of every arm, in plan order.
func (e *execution) buildArms(ctx context.Context) error {
	trees, err := source.Prepare(ctx, source.Options{
		Spec: e.Spec, Env: e.Env, Same: e.Same,
		CacheDir: e.Cache, WorkDir: e.work, LogDir: filepath.Join(e.Out, "logs"),
		Exec:     e.exec,
		Progress: func(what string) { e.report(Status{Phase: Building, Detail: what}) },
	})
	if err != nil {
		return err
	}
	e.copies = map[int][]string{}
	for _, name := range e.Plan.Arms {
		i := slices.IndexFunc(trees, func(t *source.Tree) bool { return t.Arm.Name == name })
		if i < 0 {
			return fmt.Errorf("arm %s has no built tree", name)
		}
		e.trees = append(e.trees, trees[i])
		e.arms = append(e.arms, trees[i].Arm)
		e.warnings = append(e.warnings, trees[i].Warnings...)
	}
	return nil
}

// exec runs one command to completion for runner/source.
func (e *execution) exec(ctx context.Context, c source.Command) error {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("it did not end within its timeout of %v", c.Timeout))
		defer cancel()
	}
	res, err := e.sup.Run(ctx, proc.Cmd{Name: c.Name, Argv: c.Argv, Dir: c.Dir, Env: proc.Environ(e.Environ, c.Env), Log: c.Log})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case res.Signal != "":
		return fmt.Errorf("it was ended by signal %s", res.Signal)
	case res.Code != 0:
		return fmt.Errorf("it ended with exit status %d", res.Code)
	}
	return nil
}

// choosePins decides on the CPUs of servers and generator, and moves this
// process to the generator's: every thread, so that the runtime's own work
// does not land on the servers' CPUs either.
func (e *execution) choosePins() error {
	avail, err := proc.Available()
	if err != nil {
		return e.unpinned(err)
	}
	topology, err := proc.ReadTopology()
	if err != nil {
		return e.unpinned(err)
	}
	e.pins, err = proc.Assign(e.Spec.Pins, e.Spec.Generator.CPUs, avail, topology)
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	e.warnings = append(e.warnings, e.pins.Notes...)
	return nil
}

func (e *execution) unpinned(err error) error {
	if e.Spec.Pins.Require {
		return fmt.Errorf("pins.require is set, and processes cannot be pinned here: %w", err)
	}
	if e.Spec.Pins.Server != "none" || e.Spec.Pins.Load != "none" {
		e.warnings = append(e.warnings, fmt.Sprintf("nothing is pinned: %v; servers and generator may disturb each other", err))
	}
	return nil
}

// pinSelf moves the generator to its CPUs. It is called after the builds,
// which may use all of them.
func (e *execution) pinSelf() error {
	if len(e.pins.Load) == 0 {
		return nil
	}
	if err := proc.PinSelf(e.pins.Load); err != nil {
		return e.unpinned(err)
	}
	return nil
}

// openJournal writes the header, or goes on with the journal of a run that
// was cut off.
func (e *execution) openJournal(ctx context.Context) error {
	if err := e.pinSelf(); err != nil {
		return err
	}
	h, err := e.header(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(e.Out, "journal.jsonl")
	if e.Resume != nil {
		return e.continueJournal(path, h)
	}
	w, err := journal.Create(path, h)
	if err != nil {
		return fmt.Errorf("starting the journal: %w", err)
	}
	e.rec = &recorder{w: w, run: &journal.Run{Header: &h}}
	return nil
}

// header describes the run.
func (e *execution) header(ctx context.Context) (journal.Header, error) {
	h, err := e.plainHeader()
	if err != nil {
		return h, err
	}
	for i, t := range e.trees {
		arm := journal.Arm{
			Name: e.Plan.Arms[i], Label: t.Label, Source: t.Source, Revision: t.Revision,
			Dirty: t.Dirty, Digest: t.Digest, Cached: t.Cached,
		}
		if arm.Versions, err = e.versions(ctx, i); err != nil {
			return h, err
		}
		h.Arms = append(h.Arms, arm)
	}
	h.Warnings = e.warnings
	return h, nil
}

// plainHeader describes the run without its arms.
func (e *execution) plainHeader() (journal.Header, error) {
	text, err := json.Marshal(e.Spec)
	if err != nil {
		return journal.Header{}, fmt.Errorf("recording the spec: %w", err)
	}
	h := journal.Header{
		Version: journal.Version, ID: e.ID, Tool: e.Tool, Started: e.started, Seed: e.Plan.Seed, Spec: text,
		Filter: e.Filter, Same: e.Same, Host: e.host, Copies: e.Plan.Copies, Looks: e.Looks, Shard: e.Shard, Origin: e.Origin,
		Pins: journal.Pins{Server: e.pins.Server.String(), Load: e.pins.Load.String(), Idle: e.pins.Idle.String()},
	}
	for _, s := range e.Plan.Scenarios {
		h.Rows = append(h.Rows, s.ID())
	}
	return h, nil
}

// versionTimeout bounds a command that prints a version.
const versionTimeout = 10 * time.Second

// versions runs the spec's version commands in an arm's tree.
func (e *execution) versions(ctx context.Context, arm int) (map[string]string, error) {
	if len(e.Spec.Versions) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	found := map[string]string{}
	for _, v := range e.Spec.Versions {
		argv, err := v.Run.Resolve(spec.Vars{"arm": e.Plan.Arms[arm]}, e.Env)
		if err != nil {
			return nil, fmt.Errorf("versions.%s: %w", v.Name, err)
		}
		log := filepath.Join(e.Out, "logs", "version-"+e.Plan.Arms[arm]+"-"+v.Name+".log")
		res, err := e.sup.Run(ctx, proc.Cmd{Name: "version of " + v.Name, Argv: argv, Dir: e.trees[arm].Dir, Env: proc.Environ(e.Environ, nil), Log: log})
		if err != nil {
			return nil, fmt.Errorf("versions.%s: %w", v.Name, err)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(res.Tail), "\n")
		if res.Code != 0 {
			first = "unknown"
			e.warnings = append(e.warnings, fmt.Sprintf("the version of %s is unknown: %s ended with exit status %d", v.Name, v.Run, res.Code))
		}
		found[v.Name] = first
	}
	return found, nil
}

func host(h proc.Host) journal.Host {
	return journal.Host{
		CPU: h.CPU, Cores: h.Cores, Kernel: h.Kernel, OS: h.OS, Arch: h.Arch, MemTotal: h.MemTotal,
		Governor: h.Governor, SMT: h.SMT, Hypervisor: h.Hypervisor, Container: h.Container,
	}
}

// continueJournal goes on with a run that was cut off, where it is still the
// same run: the same spec, builds and machine.
func (e *execution) continueJournal(path string, now journal.Header) error {
	then := e.Resume.Header
	if err := sameRun(then, &now); err != nil {
		return err
	}
	for _, end := range e.Resume.Ends {
		e.first = max(e.first, end.Block+1)
	}
	if e.first >= e.Plan.Blocks.Max {
		return errors.New("this run is complete: all its blocks were measured")
	}
	w, err := journal.Continue(path, e.first)
	if err != nil {
		return fmt.Errorf("continuing the journal: %w", err)
	}
	run, err := journal.Open(path)
	if err != nil {
		return err
	}
	e.rec = &recorder{w: w, run: run}
	return nil
}

// sameRun says what differs between a run and its continuation.
func sameRun(then, now *journal.Header) error {
	var old, new spec.Spec
	if err := json.Unmarshal(then.Spec, &old); err != nil {
		return fmt.Errorf("the spec kept in the journal cannot be read: %w", err)
	}
	if err := json.Unmarshal(now.Spec, &new); err != nil {
		return err
	}
	var changed []string
	differ := func(what, before, after string) {
		if before != after {
			changed = append(changed, fmt.Sprintf("%s was %s and is %s", what, before, after))
		}
	}
	differ("the spec's digest", old.Digest, new.Digest)
	differ("the CPU", then.Host.CPU, now.Host.CPU)
	differ("the kernel", then.Host.Kernel, now.Host.Kernel)
	differ("the number of CPUs", fmt.Sprint(then.Host.Cores), fmt.Sprint(now.Host.Cores))
	differ("the server's CPUs", then.Pins.Server, now.Pins.Server)
	differ("the generator's CPUs", then.Pins.Load, now.Pins.Load)
	differ("the scenarios", strings.Join(then.Rows, " "), strings.Join(now.Rows, " "))
	for i := range min(len(then.Arms), len(now.Arms)) {
		differ("the built tree of "+then.Arms[i].Name, then.Arms[i].Digest, now.Arms[i].Digest)
	}
	if changed != nil {
		return fmt.Errorf("this run cannot be resumed, since it would no longer be the same one: %s", strings.Join(changed, "; "))
	}
	return nil
}

// startServices starts the spec's helpers in order and waits for each.
func (e *execution) startServices(ctx context.Context) error {
	for _, s := range e.Spec.Services {
		if err := e.startService(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (e *execution) startService(ctx context.Context, s spec.Service) error {
	e.report(Status{Phase: Starting, Detail: "service " + s.Name})
	port := s.Port
	if port == 0 {
		var err error
		if port, err = proc.FreePort(); err != nil {
			return err
		}
	}
	host, url := address(port)
	vars := spec.Vars{"port": fmt.Sprint(port), "host": host, "url": url}
	cpus := e.servicePins()
	if s.CPUs != "" {
		var err error
		if cpus, err = proc.ParseCPUs(s.CPUs); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
	}
	env, err := expandEnv(vars, e.Env, s.Env)
	if err != nil {
		return fmt.Errorf("service %s: %w", s.Name, err)
	}
	argv, err := s.Command.Resolve(vars, e.Env)
	if err != nil {
		return fmt.Errorf("service %s: %w", s.Name, err)
	}
	p, err := e.sup.Start(ctx, proc.Cmd{
		Name: s.Name, Argv: argv, Dir: filepath.Join(e.Spec.Dir, s.Dir), Env: proc.Environ(e.Environ, env),
		CPUs: cpus, Log: filepath.Join(e.Out, "logs", "service-"+s.Name+".log"),
	})
	if err != nil {
		return fmt.Errorf("starting service %s (%s): %w", s.Name, s.Command, err)
	}
	if err := e.waitReady(ctx, p, s.Ready, vars, port, "service "+s.Name); err != nil {
		return err
	}
	if s.Reset == nil {
		return nil
	}
	return e.hook(ctx, "reset of service "+s.Name, *s.Reset, vars)
}

// servicePins keeps services off the generator's CPUs, which it does not
// share: it polls them without sleeping.
func (e *execution) servicePins() proc.CPUs {
	avail, err := proc.Available()
	if err != nil {
		return nil
	}
	var rest proc.CPUs
	for _, c := range avail {
		if !slices.Contains(e.pins.Load, c) && !slices.Contains(e.pins.Idle, c) {
			rest = append(rest, c)
		}
	}
	return rest
}

// hook runs one step of the spec in the spec's folder.
func (e *execution) hook(ctx context.Context, name string, step spec.Step, vars spec.Vars) error {
	argv, err := step.Run.Resolve(vars, e.Env)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	env, err := expandEnv(vars, e.Env, step.Env)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	err = e.exec(ctx, source.Command{
		Name: name, Argv: argv, Dir: filepath.Join(e.Spec.Dir, step.Dir), Env: env, Timeout: step.Timeout,
		Log: filepath.Join(e.Out, "logs", strings.ReplaceAll(name, " ", "-")+".log"),
	})
	if err != nil {
		return fmt.Errorf("%s (%s): %w", name, step.Run, err)
	}
	return nil
}

// removeCopies removes the copies of the block before.
func (e *execution) removeCopies() error {
	var errs []error
	for _, dirs := range e.copies {
		for _, d := range dirs {
			errs = append(errs, source.Remove(d))
		}
	}
	clear(e.copies)
	return errors.Join(errs...)
}

// warnOnce adds a warning to the run's end, each text once.
func (e *execution) warnOnce(text string) {
	if !slices.Contains(e.warnings, text) {
		e.warnings = append(e.warnings, text)
	}
}
