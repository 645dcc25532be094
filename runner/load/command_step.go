package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// step is a prepare or cleanup step, resolved for one target. A nil step
// does nothing.
type step struct {
	name    string
	child   child
	timeout time.Duration
}

func newStep(name string, s *spec.Step, t Target, base []string, env spec.Env) (*step, error) {
	if s == nil {
		return nil, nil
	}
	own, err := environ(base, s.Env, t.Vars, env)
	if err != nil {
		return nil, err
	}
	argv, err := s.Run.Resolve(t.Vars, env)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(t.Dir, s.Dir)
	path, err := lookPath(argv, dir, own)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &step{name: name, timeout: s.Timeout, child: child{path: path, argv: argv, dir: dir, env: own, cpus: t.CPUs}}, nil
}

// run runs the step to its end; any other end than exit status 0 is an error
// that carries the end of what it printed.
func (s *step) run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no end after %v", s.timeout))
		defer cancel()
	}
	var out bytes.Buffer
	cmd := groupCommand(ctx, s.child)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := startPinned(cmd, s.child.cpus)
	if err == nil {
		err = cmd.Wait()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("%s step %q: %w%s", s.name, strings.Join(s.child.argv, " "), err, tailHint(out.Bytes()))
	}
	return nil
}

// groupCommand is an exec.Cmd in a process group of its own, which is killed
// whole when ctx ends.
func groupCommand(ctx context.Context, c child) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.path)
	cmd.Args, cmd.Dir, cmd.Env = c.argv, c.dir, c.env
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would mean ours
	}
	// A descendant that keeps a pipe open must not keep Wait waiting.
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	return cmd
}

// environ is base with extra on top; a name of extra replaces the one of base.
func environ(base []string, extra map[string]spec.Template, v spec.Vars, env spec.Env) ([]string, error) {
	out := slices.Clone(base)
	for _, name := range sortedKeys(extra) {
		value, err := extra[name].Expand(v, env)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", name, err)
		}
		out = slices.DeleteFunc(out, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		out = append(out, name+"="+value)
	}
	return out, nil
}

// lookPath finds the program of argv as the child will see it: relative to
// its folder, or along the PATH of its own environment.
func lookPath(argv []string, dir string, env []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("an empty command")
	}
	name := argv[0]
	if strings.ContainsRune(name, os.PathSeparator) || strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if err := executable(file); err != nil {
			return "", fmt.Errorf("%q cannot be run: %w", name, err)
		}
		// Absolute, so that it means the same with and without a change of
		// folder first.
		return filepath.Abs(file)
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, p := range filepath.SplitList(path) {
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if file := filepath.Join(p, name); executable(file) == nil {
			return filepath.Abs(file)
		}
	}
	return "", fmt.Errorf("%q was not found in PATH=%s: install it, or name its file", name, path)
}

func executable(file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return errors.Unwrap(err)
	}
	if st.IsDir() {
		return errors.New("it is a folder")
	}
	if st.Mode()&0o111 == 0 {
		return errors.New("it is not executable")
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// tailHint is the last lines of a tool's output as the end of an error text.
func tailHint(out []byte) string {
	const most = 400
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return ""
	}
	if len(out) > most {
		out = append([]byte("..."), out[len(out)-most:]...)
	}
	return ": " + string(out)
}
