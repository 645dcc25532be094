package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// Exec runs a command to completion and returns an error unless it ended
// with status 0. It ends the command, with all processes that it started,
// when ctx ends.
type Exec func(ctx context.Context, c Command) error

// Command is one build step, resolved.
type Command struct {
	Name    string            // for messages: "build 2 of base"
	Argv    []string          // what to run
	Dir     string            // where, absolute
	Env     map[string]string // on top of what every command gets
	Log     string            // file that gets the output
	Timeout time.Duration     // for messages: ctx ends by then anyhow; 0 is none
}

// BuildError is a setup or build step that failed.
type BuildError struct {
	Arm      string
	Revision string // commit of the arm; empty for a folder outside of git
	Step     string // as the user wrote it
	Log      string // file with its whole output
	Tail     string // the end of its output
	Err      error
}

func (e *BuildError) Error() string {
	msg := fmt.Sprintf("arm %s: build step %q failed: %v", e.Arm, e.Step, e.Err)
	if e.Tail == "" {
		return msg + "; it printed nothing"
	}
	return fmt.Sprintf("%s; its output is in %s and ends:\n%s", msg, e.Log, e.Tail)
}

func (e *BuildError) Unwrap() error { return e.Err }

// step is a spec.Step with its templates expanded.
type step struct {
	text    string // as the user wrote it
	argv    []string
	dir     string // relative to the tree
	env     map[string]string
	timeout time.Duration
}

// resolveSteps are the setup and build steps of an arm, in order.
func resolveSteps(arm spec.Arm, env spec.Env) ([]step, error) {
	vars := spec.Vars{"arm": arm.Name}
	shared, err := expandAll(arm.Env, vars, env)
	if err != nil {
		return nil, err
	}
	var out []step
	for _, s := range append(append([]spec.Step(nil), arm.Setup...), arm.Build...) {
		argv, err := s.Run.Resolve(vars, env)
		if err != nil {
			return nil, fmt.Errorf("build step %q: %w", s.Run.String(), err)
		}
		own, err := expandAll(s.Env, vars, env)
		if err != nil {
			return nil, fmt.Errorf("build step %q: %w", s.Run.String(), err)
		}
		if s.Dir != "" && !filepath.IsLocal(s.Dir) {
			return nil, fmt.Errorf("build step %q: dir %q leads out of the arm's tree; name a folder inside of it", s.Run.String(), s.Dir)
		}
		all := maps.Clone(shared)
		maps.Copy(all, own)
		out = append(out, step{text: s.Run.String(), argv: argv, dir: s.Dir, env: all, timeout: s.Timeout})
	}
	return out, nil
}

func expandAll(in map[string]spec.Template, vars spec.Vars, env spec.Env) (map[string]string, error) {
	out := make(map[string]string, len(in))
	for name, t := range in {
		v, err := t.Expand(vars, env)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

// build runs the steps in dir, one after the other.
func (p *preparer) build(ctx context.Context, arm spec.Arm, dir string, steps []step) error {
	for i, s := range steps {
		p.Progress(fmt.Sprintf("arm %s: %s", arm.Name, s.text))
		log := filepath.Join(p.LogDir, fmt.Sprintf("build-%s-%d.log", fileName(arm.Name), i+1))
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err := p.run(ctx, s, Command{
			Name: fmt.Sprintf("build %d of %s", i+1, arm.Name),
			Argv: s.argv, Dir: filepath.Join(dir, s.dir), Env: p.fenced(s.env), Log: log, Timeout: s.timeout,
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return &BuildError{Arm: arm.Name, Step: s.text, Log: log, Tail: tail(log, 20), Err: err}
		}
	}
	return nil
}

// fenced is the environment of a step, in which git looks for no repository
// above the tree.
func (p *preparer) fenced(env map[string]string) map[string]string {
	out := map[string]string{"GIT_CEILING_DIRECTORIES": p.WorkDir}
	maps.Copy(out, env)
	return out
}

// errTimeout is the cause of a step's own deadline.
var errTimeout = errors.New("the step's timeout")

func (p *preparer) run(ctx context.Context, s step, c Command) error {
	if s.timeout <= 0 {
		return p.Exec(ctx, c)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	err := p.Exec(ctx, c)
	if err != nil && context.Cause(ctx) == errTimeout {
		return fmt.Errorf("it did not end within its timeout of %v; give it a longer timeout", s.timeout)
	}
	return err
}

// tail is the end of a log: at most so many lines and 8 KiB, with control
// characters other than tabs taken out.
func tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		f.Seek(max(0, end-8<<10), io.SeekStart)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\r\n \t"), "\n")
	all = all[max(0, len(all)-lines):]
	return printable(strings.Join(all, "\n"))
}

// printable is text that is safe to show on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// fileName is a name with everything that a file name cannot hold, or that a
// shell would trip over, replaced.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, s)
}
