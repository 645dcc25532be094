package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// git runs git in one repository. It only ever reads the repository: an index
// that is written is one of our own, and hooks and background helpers of the
// user's configuration stay out of it.
type git struct {
	dir   string // where git starts looking for the repository
	env   spec.Env
	limit time.Duration // of one command; 0 means gitLimit
}

// gitLimit is how long one command may take: a checkout may fetch gigabytes
// by LFS, but a filter or a credential helper may also wait for ever.
const gitLimit = 15 * time.Minute

// quietConfig keeps git from writing to the repository, or starting what the
// user's configuration would have it start.
var quietConfig = []string{
	"core.fsmonitor=false", "core.splitIndex=false",
	"core.untrackedCache=false", "index.sparse=false", "submodule.recurse=false",
	"gc.auto=0", "maintenance.auto=false", "advice.detachedHead=false",
}

// out runs git and returns its standard output, without the final newline.
func (g git) out(ctx context.Context, args ...string) (string, error) {
	return g.with(ctx, nil, args...)
}

// with is out with more variables in the environment.
func (g git) with(ctx context.Context, vars []string, args ...string) (string, error) {
	out, err := g.raw(ctx, vars, args...)
	return strings.TrimSuffix(out, "\n"), err
}

// raw returns all of git's standard output.
func (g git) raw(ctx context.Context, vars []string, args ...string) (string, error) {
	argv := []string{"--no-optional-locks", "-C", g.dir, "-c", "core.hooksPath=" + os.DevNull}
	for _, c := range quietConfig {
		argv = append(argv, "-c", c)
	}
	path, ok := lookPath("git", g.env)
	if !ok {
		return "", errNoGit
	}
	limit := cmp.Or(g.limit, gitLimit)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, path, append(argv, args...)...)
	cmd.Env = append(gitEnviron(g.env), vars...)
	cmd.WaitDelay = 5 * time.Second // a helper of git's may hold the pipes
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if limited.Err() != nil {
		err = fmt.Errorf("it was ended after %v; a filter, a credential helper or a remote of the repository may be waiting: try it by hand", limit)
		return "", &gitError{Verb: gitVerb(args), Dir: g.dir, Err: err}
	}
	if err != nil {
		return "", &gitError{Verb: gitVerb(args), Dir: g.dir, Said: gitSaid(stderr.String()), Err: err}
	}
	return stdout.String(), nil
}

var errNoGit = errors.New("git was not found on PATH; a git: arm needs it")

// gitError is git's own complaint.
type gitError struct {
	Verb, Dir, Said string
	Err             error
}

func (e *gitError) Error() string {
	said := e.Said
	if said == "" {
		said = e.Err.Error()
	}
	return fmt.Sprintf("git %s in %s: %s", e.Verb, e.Dir, said)
}

func (e *gitError) Unwrap() error { return e.Err }

// gitVerb is the command of git's arguments, behind its own options.
func gitVerb(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

// gitSaid is what matters of git's standard error: its fatal and error lines,
// or else its last line.
func gitSaid(stderr string) string {
	var keep []string
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, l := range lines {
		for _, prefix := range []string{"fatal: ", "error: "} {
			if rest, ok := strings.CutPrefix(l, prefix); ok {
				keep = append(keep, rest)
			}
		}
	}
	if len(keep) == 0 {
		keep = lines[len(lines)-1:]
	}
	return strings.Join(keep[:min(len(keep), 3)], "; ")
}

// gitNames are the variables of the environment that git is given: where it
// and its helpers are, whose configuration they read, how they reach a
// server. GIT_DIR and its like, which a hook that runs us would have set, are
// not among them.
var gitNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
	"SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_NO_VERIFY",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_PARAMETERS",
	"GIT_EXEC_PATH", "GIT_LFS_SKIP_SMUDGE", "GIT_ALLOW_PROTOCOL",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY",
	"USERPROFILE", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", "PATHEXT", "COMSPEC",
}

func gitEnviron(env spec.Env) []string {
	out := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0"}
	add := func(name string) {
		if v, ok := env(name); ok {
			out = append(out, name+"="+v)
		}
	}
	for _, name := range gitNames {
		add(name)
	}
	count, _ := env("GIT_CONFIG_COUNT")
	if n, err := strconv.Atoi(count); err == nil && n > 0 && n < 1000 {
		add("GIT_CONFIG_COUNT")
		for i := range n {
			add(fmt.Sprintf("GIT_CONFIG_KEY_%d", i))
			add(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i))
		}
	}
	return out
}
