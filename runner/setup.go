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

// exec runs one command to completion for runner/source, which tells the end
// of its output itself.
func (e *execution) exec(ctx context.Context, c source.Command) error {
	_, err := e.command(ctx, c, nil)
	return err
}

// command runs one command to completion. Where it fails, tail is the end of
// what it printed, to be set under the error.
func (e *execution) command(ctx context.Context, c source.Command, as *proc.User) (tail string, err error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("it did not end within its timeout of %v", c.Timeout))
		defer cancel()
	}
	res, err := e.sup.Run(ctx, proc.Cmd{Name: c.Name, Argv: c.Argv, Dir: c.Dir, Env: proc.Environ(e.Environ, c.Env), Log: c.Log, User: as})
	return ending(ctx, res, err)
}

// ending says why a command failed, if it did, and with what last words.
func ending(ctx context.Context, res proc.Result, err error) (tail string, _ error) {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case res.Signal != "":
		err = fmt.Errorf("it was ended by signal %s", res.Signal)
	case res.Code > 0:
		err = fmt.Errorf("it ended with exit status %d", res.Code)
	}
	if err == nil {
		return "", nil
	}
	if res.Code < 0 && res.Signal == "" {
		return "", err // it did not start
	}
	if res.Tail == "" {
		return "\n  it printed nothing", err
	}
	return "\n  the end of its output:\n" + indent(res.Tail), err
}

// choosePins decides on the CPUs of servers and generator, and moves this
// process to the generator's: every thread, so that the runtime's own work
// does not land on the servers' CPUs either.
func (e *execution) choosePins() error {
	avail, err := proc.Available()
	if err != nil {
		return e.notPinned(err)
	}
	topology, err := proc.ReadTopology()
	if err != nil {
		return e.notPinned(err)
	}
	if e.serverHost() != "" {
		e.pins, err = proc.AssignLoad(e.Spec.Pins, e.Spec.Generator.CPUs, proc.Machine{CPUs: avail, Topology: topology})
	} else {
		e.pins, err = proc.Assign(e.Spec.Pins, e.Spec.Generator.CPUs, avail, topology)
	}
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	e.avail = avail
	if e.commandsOnly() {
		// Nothing is loaded, so nobody has to be kept off a CPU: a command
		// may use what its user would give it.
		if e.Spec.Pins.Load == "auto" {
			e.pins.Load, e.pins.Notes = nil, nil
		}
		if e.Spec.Pins.Server == "auto" {
			e.pins.Server, e.pins.Idle, e.pins.Notes = avail.Minus(e.pins.Load), nil, nil
		}
	}
	e.warnings = append(e.warnings, e.pins.Notes...)
	return nil
}

// commandsOnly reports whether no server is loaded.
func (e *execution) commandsOnly() bool {
	return !slices.ContainsFunc(e.Plan.Scenarios, func(s spec.Scenario) bool { return s.Command == nil })
}

func (e *execution) notPinned(err error) error {
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
		return e.notPinned(err)
	}
	return nil
}

// describe makes the journal's header.
func (e *execution) describe(ctx context.Context) (journal.Header, error) {
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
	h.Hosts = e.hostFacts()
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
	m := e.machine(e.serverHost())
	dir, err := m.Tree(ctx, arm)
	if err != nil {
		return nil, err
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
		res, err := m.Run(ctx, proc.Cmd{Name: "version of " + v.Name, Argv: argv, Dir: dir, Env: proc.Environ(m.Environ(), nil), Log: log})
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

// removeCopies removes the copies of the block before.
func (e *execution) removeCopies() error {
	var errs []error
	for _, dirs := range e.copies {
		for _, d := range dirs {
			errs = append(errs, e.machine(e.serverHost()).Remove(d))
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
