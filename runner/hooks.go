package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

// hookError is a command around a part of the run, or a reset of a service,
// that failed. It fails its block, and not the run.
type hookError struct{ err error }

func (e *hookError) Error() string { return e.err.Error() }
func (e *hookError) Unwrap() error { return e.err }

// afterGrace is how long the commands after a part may take once the run was
// interrupted: they may have something to put away.
const afterGrace = 10 * time.Second

// around runs the commands before a part, the part itself, and, whatever came
// of it, the commands after it. own are the steps of a scenario itself, which
// stand inside of those of the spec.
func (e *execution) around(ctx context.Context, part spec.Part, vars spec.Vars, own spec.Scenario, do func() error) error {
	before, after := e.Spec.Before.Of(part), e.Spec.After.Of(part)
	if part == spec.ScenarioPart {
		before = append(before[:len(before):len(before)], own.Before...)
		after = append(own.After[:len(own.After):len(own.After)], after...)
	}
	err := e.resetServices(ctx, part, vars)
	if err == nil {
		err = e.hooks(ctx, "before "+string(part), before, vars)
	}
	if err != nil {
		err = &hookError{err}
	} else {
		err = do()
	}
	if len(after) == 0 {
		return err
	}
	if ctx.Err() != nil {
		late, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), afterGrace, fmt.Errorf("the run was interrupted, which leaves it %v", afterGrace))
		defer cancel()
		ctx = late
	}
	switch failed := e.hooks(ctx, "after "+string(part), after, vars); {
	case failed == nil:
		return err
	case err == nil:
		return &hookError{failed}
	default:
		return errors.Join(err, failed)
	}
}

// hooks runs commands one after the other, until one fails.
func (e *execution) hooks(ctx context.Context, name string, steps []spec.Step, vars spec.Vars) error {
	all := maps.Clone(vars)
	if all == nil {
		all = spec.Vars{}
	}
	maps.Copy(all, e.serviceVars(""))
	for i, st := range steps {
		title := name
		if len(steps) > 1 {
			title = fmt.Sprintf("%s, command %d", name, i+1)
		}
		if err := e.step(ctx, title, st, all); err != nil {
			return err
		}
	}
	return nil
}

// partVars are what commands around parts of a block may name.
func partVars(b Block, scenario string) spec.Vars {
	v := spec.Vars{"block": strconv.Itoa(b.Index + 1)}
	if scenario != "" {
		v["scenario"] = scenario
	}
	return v
}

// step runs one step of the spec in the spec's folder. Its output goes to a
// log of the run, and the end of it to the error.
func (e *execution) step(ctx context.Context, name string, step spec.Step, vars spec.Vars) error {
	return e.stepOf(ctx, nil, name, step, vars)
}

// place is where a command runs, and who runs it; nil: we.
type place struct {
	dir  string
	user *proc.User
}

// stepOf runs one step of a service, or with nil of the spec.
func (e *execution) stepOf(ctx context.Context, s *service, name string, step spec.Step, vars spec.Vars) error {
	argv, err := step.Run.Resolve(vars, e.Env)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	env, err := expandEnv(vars, e.Env, step.Env)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	at := place{dir: e.Spec.Dir}
	if s != nil {
		at = s.place(e, env)
	}
	c := source.Command{
		Name: name, Argv: argv, Dir: filepath.Join(at.dir, step.Dir), Env: env, Timeout: step.Timeout,
		Log: filepath.Join(e.Out, "logs", logName(name)+".log"),
	}
	var tail string
	if s != nil && s.Host != "" {
		tail, err = e.commandThere(ctx, e.hosts[s.Host], c)
	} else {
		tail, err = e.command(ctx, c, at.user)
	}
	if err != nil {
		return fmt.Errorf("%s (%s): %w%s", name, step.Run, err, tail)
	}
	return nil
}

// logName is a title as a file name.
func logName(title string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		case r == ',':
			return -1
		}
		return '-'
	}, title)
	return name
}
