package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// keyFacts is everything that decides what a build makes, as far as it can be
// known. Its digest is the name of the build in the cache; a secret in an
// environment is thus part of the name without standing in it.
//
// What it cannot know: what a step fetches from a network without a lock
// file, and tools that a step's tools call. Removing the cache's folder makes
// everything be built again.
type keyFacts struct {
	Version int
	System  []string // operating system, architecture, release
	Content string   // the tree
	History string   // what git says of it
	PathLen int      // of the folder it is built in: see the package comment
	Steps   []stepFacts
	Tools   map[string]string // name to what is known of it
	Ambient map[string]string // variables of the environment that compilers read
}

type stepFacts struct {
	Argv []string
	Dir  string
	Env  map[string]string
}

// ambient are the variables that change what common toolchains make. A step
// gets them only where the runner passes them on.
var ambient = []string{
	"AR", "AS", "CC", "CXX", "LD", "CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "LD_LIBRARY_PATH", "LIBRARY_PATH",
	"CPATH", "PKG_CONFIG_PATH", "MAKEFLAGS", "CGO_ENABLED", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS",
	"GOOS", "GOTOOLCHAIN", "RUSTFLAGS", "RUSTUP_TOOLCHAIN", "CARGO_BUILD_TARGET", "NODE_ENV", "NODE_OPTIONS",
	"NODE_PATH", "PYTHONPATH", "PYTHONOPTIMIZE", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS",
	"SOURCE_DATE_EPOCH", "DOTNET_ROOT", "CONFIGURATION",
}

// versionOf are the arguments that make a tool print its version.
var versionOf = map[string][]string{
	"go": {"version"}, "zig": {"version"}, "java": {"-version"}, "javac": {"-version"},
	"node": {"--version"}, "npm": {"--version"}, "yarn": {"--version"}, "pnpm": {"--version"}, "bun": {"--version"}, "deno": {"--version"},
	"cc": {"--version"}, "c++": {"--version"}, "gcc": {"--version"}, "g++": {"--version"}, "clang": {"--version"}, "clang++": {"--version"},
	"make": {"--version"}, "cmake": {"--version"}, "ninja": {"--version"}, "meson": {"--version"},
	"cargo": {"--version"}, "rustc": {"--version"}, "dotnet": {"--version"}, "ghc": {"--version"},
	"python": {"--version"}, "python3": {"--version"}, "pip": {"--version"}, "pip3": {"--version"}, "poetry": {"--version"}, "uv": {"--version"},
	"ruby": {"--version"}, "bundle": {"--version"}, "php": {"--version"}, "composer": {"--version"},
}

// companions are the tools that a tool works with.
var companions = map[string][]string{
	"npm": {"node"}, "npx": {"node"}, "yarn": {"node"}, "pnpm": {"node"}, "corepack": {"node"},
	"make": {"cc", "c++"}, "cmake": {"cc", "c++"}, "ninja": {"cc", "c++"}, "meson": {"cc", "c++"},
	"go": {"cc"}, "cargo": {"rustc", "cc"}, "pip": {"python3"}, "pip3": {"python3"}, "poetry": {"python3"}, "uv": {"python3"},
	"mvn": {"java"}, "gradle": {"java"}, "bundle": {"ruby"}, "composer": {"php"},
}

// key is the cache's name for what the steps make of an origin.
func (p *preparer) key(ctx context.Context, src *origin, steps []step) (string, error) {
	f := keyFacts{
		Version: 1,
		System:  []string{runtime.GOOS, runtime.GOARCH, osRelease()},
		Content: src.content, History: src.history,
		PathLen: len(p.buildDir()),
		Tools:   map[string]string{}, Ambient: map[string]string{},
	}
	for _, s := range steps {
		f.Steps = append(f.Steps, stepFacts{s.argv, s.dir, s.env})
		for _, name := range toolsOf(s.argv) {
			f.Tools[name] = p.toolFacts(ctx, name, s)
			for _, other := range companions[name] {
				f.Tools[other] = p.toolFacts(ctx, other, s)
			}
		}
	}
	for _, name := range ambient {
		if v, ok := p.Env(name); ok {
			f.Ambient[name] = v
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	data, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// osRelease is what the distribution says of itself: a new release has new
// libraries. Empty where there is no such file.
func osRelease() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	return string(data)
}

// toolsOf are the names of the programs that a step runs. Of a shell line it
// takes the first word of every simple command, without parsing the shell's
// language: a word too many is one that is not found on PATH.
func toolsOf(argv []string) []string {
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		var out []string
		cut := func(r rune) bool { return strings.ContainsRune(";&|\n(){}`", r) }
		for part := range strings.FieldsFuncSeq(argv[2], cut) {
			for word := range strings.FieldsSeq(part) {
				if strings.Contains(word, "=") || slices.Contains([]string{"exec", "env", "time", "nice", "then", "do", "else", "if", "!"}, word) {
					continue
				}
				out = append(out, strings.Trim(word, `"'$`))
				break
			}
		}
		return out
	}
	return argv[:min(1, len(argv))]
}

// toolFacts is what is known of a tool on the step's PATH: the file, and the
// version that it prints (which a shim, one file for all versions, needs).
// Empty where there is no such tool; one with a slash in its name is the
// tree's, or known by its path alone.
func (p *preparer) toolFacts(ctx context.Context, name string, s step) string {
	if strings.ContainsRune(name, '/') {
		return ""
	}
	env := func(n string) (string, bool) {
		if v, ok := s.env[n]; ok {
			return v, true
		}
		return p.Env(n)
	}
	path, ok := lookPath(name, env)
	if !ok {
		return ""
	}
	if known, ok := p.tools[path]; ok {
		return known
	}
	facts := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		facts += " " + real
		if info, err := os.Stat(real); err == nil {
			facts += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
		}
	}
	if args, ok := versionOf[name]; ok {
		facts += " " + p.version(ctx, name, append([]string{path}, args...), s.env)
	}
	p.tools[path] = facts
	return facts
}

// version is what a tool prints when asked for its version, by the same way
// that runs builds and so with the same environment.
func (p *preparer) version(ctx context.Context, name string, argv []string, env map[string]string) string {
	const limit = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log := filepath.Join(p.LogDir, "version-"+fileName(name)+".log")
	_ = os.Remove(log) // a version too many only builds once more
	err := p.Exec(ctx, Command{Name: "version of " + name, Argv: argv, Dir: p.WorkDir, Env: env, Log: log, Timeout: limit})
	said := tail(log, 5)
	if err != nil {
		return said + " failed"
	}
	return said
}

// lookPath finds a program on the PATH of an environment.
func lookPath(name string, env spec.Env) (string, bool) {
	if runtime.GOOS == "windows" { // where PATHEXT has its say
		path, err := exec.LookPath(name)
		return path, err == nil
	}
	path, _ := env("PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // the folder of whoever runs is no part of a toolchain
		}
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full, true
		}
	}
	return "", false
}
