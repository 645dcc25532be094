package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

// instance is one running copy.
type instance struct {
	Copy
	slot    int
	name    string // "base#0"
	dir     string // its tree
	target  load.Target
	process process // nil where the arm has no server
}

// rank orders instances as the plan does: by arm, the baseline first, and copy.
func (in *instance) rank() int { return in.Arm<<16 | in.Index }

// dead says why the instance can no longer be measured, or "".
func (in *instance) dead() string {
	if in.process == nil {
		return ""
	}
	select {
	case <-in.process.Done():
		return fmt.Sprintf("the server ended in mid-run: %v%s", in.process.Err(), logTail(in.process))
	default:
		return ""
	}
}

// logTail is the end of a process's output, for an error.
func logTail(p process) string {
	const lines = 10
	tail := p.Tail(lines)
	if tail == "" {
		return "\n  it printed nothing"
	}
	return "\n  the end of its output:\n" + indent(tail)
}

// block carries out one block, with the commands around it. The first error
// is a failure of this block, which may pass; the second one ends the run.
func (e *execution) block(ctx context.Context, b Block) (failure, fatal error) {
	e.primed = map[string]bool{}
	err := e.around(ctx, spec.BlockPart, partVars(b, ""), spec.Scenario{}, func() error {
		failure, fatal = e.measureBlock(ctx, b)
		return nil
	})
	if failure == nil {
		failure = err
	}
	if why := e.deadService(); why != "" && fatal == nil && ctx.Err() == nil {
		fatal = errors.New(why)
	}
	return failure, fatal
}

// measureBlock starts every copy afresh, runs every scenario on them, and
// stops them.
func (e *execution) measureBlock(ctx context.Context, b Block) (failure, fatal error) {
	instances, err := e.startAll(ctx, b)
	defer func() {
		for _, in := range instances {
			if err := e.stop(in); err != nil && fatal == nil {
				fatal = err
			}
		}
	}()
	if err != nil {
		return err, nil
	}
	for _, k := range b.Scenarios {
		if ctx.Err() != nil {
			return nil, nil
		}
		e.report(Status{Phase: Measuring, Block: b.Index + 1, Scenario: e.Plan.Scenarios[k].ID()})
		if err := e.scenario(ctx, b, k, instances); err != nil {
			if hooked := new(hookError); errors.As(err, &hooked) {
				return err, nil
			}
			return nil, err
		}
		for _, in := range instances {
			if why := in.dead(); why != "" {
				return errors.New(why), nil
			}
		}
	}
	return nil, nil
}

// startAll starts the copies in the block's order and waits for each: the
// starts are part of what is randomised.
func (e *execution) startAll(ctx context.Context, b Block) ([]*instance, error) {
	dirs, err := e.layOut(ctx, b)
	if err != nil {
		return nil, err
	}
	var started []*instance
	for slot, c := range b.Starts {
		e.report(Status{Phase: Starting, Block: b.Index + 1, Detail: e.copyName(c)})
		in, err := e.start(ctx, b, slot, c, dirs[slot])
		if in != nil {
			started = append(started, in)
		}
		if err != nil {
			return started, err
		}
	}
	return started, nil
}

func (e *execution) copyName(c Copy) string {
	return fmt.Sprintf("%s#%d", e.Plan.Arms[c.Arm], c.Index)
}

// layOut gives each slot of the block its own fresh copy of its arm's tree,
// so that where the files lie is drawn anew in every block, like the rest.
func (e *execution) layOut(ctx context.Context, b Block) ([]string, error) {
	if !e.recopy && e.copies[0] != nil {
		return e.keptCopies(b), nil
	}
	e.report(Status{Phase: Starting, Block: b.Index + 1, Detail: "copying the trees"})
	if err := e.removeCopies(); err != nil {
		return nil, err
	}
	m := e.machine(e.serverHost())
	for arm := range e.trees {
		if _, err := m.Tree(ctx, arm); err != nil { // not part of the time of a copy
			return nil, err
		}
	}
	began := e.Now()
	dirs := make([]string, len(b.Starts))
	for slot, c := range b.Starts {
		var err error
		if dirs[slot], err = m.Copy(ctx, c.Arm, slot); err != nil {
			return nil, fmt.Errorf("copying the tree of %s: %w", e.Plan.Arms[c.Arm], err)
		}
		e.copies[c.Arm] = append(e.copies[c.Arm], dirs[slot])
	}
	e.recopy = e.Now().Sub(began) <= recopyWithin
	return dirs, nil
}

// keptCopies deals the copies that were made in an earlier block to this
// block's slots.
func (e *execution) keptCopies(b Block) []string {
	dirs := make([]string, len(b.Starts))
	for slot, c := range b.Starts {
		dirs[slot] = e.copies[c.Arm][c.Index]
	}
	return dirs
}

// start starts one copy and waits until it is ready. The instance is
// returned even when it is not, so that the caller stops it.
func (e *execution) start(ctx context.Context, b Block, slot int, c Copy, dir string) (*instance, error) {
	in := &instance{Copy: c, slot: slot, name: e.copyName(c), dir: dir}
	arm := e.arms[c.Arm]
	m := e.machine(e.serverHost())
	port, err := m.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	vars := e.vars(c, port)
	env, err := expandEnv(vars, e.Env, arm.Env)
	if err != nil {
		return nil, err
	}
	in.target = load.Target{
		Name: in.name, Addr: strings.TrimPrefix(vars["url"], "http://"), Vars: vars,
		Dir: dir, Env: proc.Environ(m.Environ(), env), CPUs: e.pins.Server,
	}
	if arm.Server == nil || !e.needsServer() {
		return in, nil
	}
	return in, e.startServer(ctx, b, in, port)
}

func (e *execution) vars(c Copy, port int) spec.Vars {
	p := strconv.Itoa(port)
	host, url := address(e.machine(e.serverHost()), port)
	vars := e.serviceVars(e.Plan.Arms[c.Arm])
	maps.Copy(vars, spec.Vars{
		"port": p, "host": host, "url": url,
		"arm": e.Plan.Arms[c.Arm], "copy": strconv.Itoa(c.Index), "cpu": e.pins.Server.String(),
	})
	return vars
}

func (e *execution) needsServer() bool {
	for _, s := range e.Plan.Scenarios {
		if s.Command == nil {
			return true
		}
	}
	return false
}

func (e *execution) startServer(ctx context.Context, b Block, in *instance, port int) error {
	server := e.arms[in.Arm].Server
	argv, err := server.Command.Resolve(in.target.Vars, e.Env)
	if err != nil {
		return fmt.Errorf("the server of %s: %w", in.name, err)
	}
	env, err := expandEnv(in.target.Vars, e.Env, e.arms[in.Arm].Env, server.Env)
	if err != nil {
		return fmt.Errorf("the server of %s: %w", in.name, err)
	}
	m := e.machine(server.Host)
	in.process, err = m.Start(ctx, proc.Cmd{
		Name: in.name, Argv: argv, Dir: filepath.Join(in.dir, server.Dir),
		Env: proc.Environ(m.Environ(), env), CPUs: e.pins.Server, Limits: e.Spec.Limits,
		Log: filepath.Join(e.Out, "logs", fmt.Sprintf("block%03d-%s-%d.log", b.Index+1, e.Plan.Arms[in.Arm], in.Index)),
	})
	if err != nil {
		return fmt.Errorf("starting the server of %s (%s): %w", in.name, server.Command, err)
	}
	if err := e.waitReady(ctx, in.process, server.Ready, in.target.Vars, port, in.name, prober{m, probeDir(server.Host, in.dir, e.Spec.Dir)}); err != nil {
		return err
	}
	if err := m.Reachable(ctx, in.target.Addr); err != nil {
		return fmt.Errorf("%s: %w", in.name, err)
	}
	if err := in.process.VerifyPins(e.pins.Server); err != nil {
		if e.Spec.Pins.Require {
			return fmt.Errorf("%s is not where it was pinned: %w", in.name, err)
		}
		e.warnOnce(fmt.Sprintf("%s is not where it was pinned: %v", in.name, err))
	}
	return nil
}

// waitReady waits until the process answers its probe.
func (e *execution) waitReady(ctx context.Context, p process, ready spec.Ready, vars spec.Vars, port int, name string, at prober) error {
	probe, err := e.probe(ready, vars, port, at)
	if err != nil {
		return fmt.Errorf("the readiness probe of %s: %w", name, err)
	}
	if err := p.WaitReady(ctx, probe); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

func (e *execution) stop(in *instance) error {
	if in.process == nil {
		return nil
	}
	stop := e.arms[in.Arm].Server.Stop
	if err := in.process.Stop(stop); err != nil {
		return fmt.Errorf("stopping the server of %s: %w", in.name, err)
	}
	return nil
}

// expandEnv expands layers of environment variables; later layers win.
func expandEnv(vars spec.Vars, env spec.Env, layers ...map[string]spec.Template) (map[string]string, error) {
	all := map[string]string{}
	for _, layer := range layers {
		for name, t := range layer {
			v, err := t.Expand(vars, env)
			if err != nil {
				return nil, fmt.Errorf("environment variable %s: %w", name, err)
			}
			all[name] = v
		}
	}
	return all, nil
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
