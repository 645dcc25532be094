// Package scaffold writes a first bench.yaml for a repository.
//
// tandem init hands it the repository's files; it looks at the manifests
// and start scripts that it knows, and answers with the text of a spec that
// validates, with comments that say what to look at. It reads, and never
// writes or runs anything.
package scaffold

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Options is what the files alone do not tell.
type Options struct {
	Name    string // of the benchmark
	Branch  string // the default branch; "": the folder is in no git repository
	Subtree string // the folder of the spec below the repository's root, with slashes; "" or ".": the root itself
}

// Result is a spec, and what was found that led to it.
type Result struct {
	Text  string
	Found []string // for example "package.json: npm ci, node server.js"
}

// project is what was found out about a repository.
type project struct {
	found  string   // what it was found by
	build  []string // commands
	server string   // the command of a server; "" where it is a tool
	env    string   // the variable that tells the server its port; "" where the command does
	tool   string   // the command of a tool
	ready  string   // a path that is meant for readiness
	routes []string // paths that answer GET
	notes  []string // what to look at
	probe  string   // a command that prints a version, and what it is of
}

// detectors look for one kind of project each, the surest first.
var detectors = []func(fs.FS) *project{nodeProject, goProject, cargoProject, procfileProject, pythonProject, dockerProject, scriptProject, makeProject}

// Make looks at the files of a repository and writes a spec for it.
func Make(files fs.FS, o Options) Result {
	p := &project{found: "nothing that is known", server: "./server --port ${port}", notes: []string{"nothing here says how this project is built and started: write it below"}}
	for _, detect := range detectors {
		if d := detect(files); d != nil {
			p = d
			break
		}
	}
	var b strings.Builder
	p.write(&b, o)
	return Result{Text: b.String(), Found: []string{p.summary()}}
}

func (p *project) summary() string {
	parts := append([]string{}, p.build...)
	if p.server != "" {
		parts = append(parts, p.server)
	} else if p.tool != "" {
		parts = append(parts, p.tool)
	}
	return p.found + ": " + strings.Join(parts, ", ")
}

func (p *project) write(b *strings.Builder, o Options) {
	line := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	line("# yaml-language-server: $schema=https://raw.githubusercontent.com/tandem-bench/tandem/main/schema.json")
	line("# A benchmark of two versions against each other: tandem run")
	line("version: 1")
	line("name: %s", quoted(o.Name))
	line("")
	p.arms(line, o)
	p.steps(line, o)
	if p.server != "" {
		p.start(line, o)
	}
	line("")
	line("plan:")
	line("  blocks: { min: 4, max: 20 }   # fresh starts of every copy; ends early when all is settled")
	line("  window: 1s                    # measuring time of each copy, block and scenario")
	line("  budget: 15m")
	line("")
	p.scenarios(line, o)
	line("")
	p.thresholds(line)
	if p.probe != "" {
		line("")
		line("versions:                       # recorded with every run")
		line("  %s", p.probe)
	}
}

func (p *project) arms(line func(string, ...any), o Options) {
	line("arms:")
	root := "."
	if sub := path.Clean(o.Subtree); o.Subtree != "" && sub != "." {
		root = strings.TrimSuffix(strings.Repeat("../", strings.Count(sub, "/")+1), "/")
	}
	if o.Branch == "" {
		line("  base: { dir: %s }   # name the folder of the version to compare with", root)
	} else {
		line("  base: { git: %s }   # the merge base of HEAD and this branch", quoted(o.Branch))
	}
	line("  head: { dir: %s }   # the files as they are here, uncommitted changes included", root)
}

// steps writes the build; commands run in the arm's tree, below the folder
// of the spec.
func (p *project) steps(line func(string, ...any), o Options) {
	if len(p.build) == 0 {
		return
	}
	line("")
	line("build:                          # in each arm's own tree")
	for _, c := range p.build {
		if dir := subtree(o); dir != "" {
			line("  - { run: %s, dir: %s }", quoted(c), quoted(dir))
		} else {
			line("  - %s", quoted(c))
		}
	}
}

func subtree(o Options) string {
	if sub := path.Clean(o.Subtree); o.Subtree != "" && sub != "." {
		return sub
	}
	return ""
}

func (p *project) start(line func(string, ...any), o Options) {
	line("")
	for _, n := range p.notes {
		line("# %s", n)
	}
	line("server:")
	line("  command: %s", quoted(p.server))
	if dir := subtree(o); dir != "" {
		line("  dir: %s", quoted(dir))
	}
	if p.env != "" {
		line("  env: { %s: \"${port}\" }      # each copy gets a free port of its own", p.env)
	}
	if p.ready != "" {
		line("  ready: { http: %s, timeout: 30s }", quoted(p.ready))
	} else {
		line("  ready: { timeout: 30s }       # its port accepts a connection; http: PATH is surer")
	}
}

func (p *project) scenarios(line func(string, ...any), o Options) {
	line("scenarios:")
	if p.server == "" {
		for _, n := range p.notes {
			line("  # %s", n)
		}
		line("  tool:")
		line("    command:")
		line("      run: %s", quoted(p.tool))
		if dir := subtree(o); dir != "" {
			line("      dir: %s", quoted(dir))
		}
		return
	}
	routes := p.routes
	if len(routes) == 0 {
		routes = []string{"/"}
	}
	for _, r := range routes {
		line("  %s:", scenarioName(r))
		line("    http: { path: %s, connections: 32 }", quoted(r))
	}
}

func (p *project) thresholds(line func(string, ...any)) {
	line("# worse is the change, signed so that a positive value is a worsening; noise is")
	line("# the change that a row has to exceed to be called moved.")
	line("thresholds:")
	if p.server == "" {
		line("  - { metric: wall, mark: worse > noise, fail: 'worse > max(noise, 0.05)' }")
		return
	}
	line("  - { metric: rps, mark: worse > noise, fail: 'worse > max(noise, 0.05)' }")
	line("  - { metric: cpu_per_request, mark: worse > noise, fail: 'worse > max(noise, 0.05)' }")
}

// scenarioName makes a name of a path.
func scenarioName(route string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.Trim(route, "/"))
	name = strings.Trim(name, "._-")
	if name == "" {
		name = "root"
	}
	return "http/" + name[:min(len(name), 50)]
}

// quoted writes text as a YAML scalar, in quotes where it needs them. What
// is no text (a branch may have any bytes as its name) is replaced, since
// YAML cannot say it.
func quoted(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s) // Go's escapes are among those of YAML
	}
	plain := s != "" && !strings.ContainsAny(s, "{}[],#&*!?|>'\"%@`\n\t\\") && !strings.Contains(s, ": ") && !strings.HasSuffix(s, ":") &&
		!strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "?") && !strings.HasPrefix(s, ":") && strings.TrimSpace(s) == s && !notText(s)
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// notText reports whether YAML reads a plain scalar as something other than
// text, or readers of YAML disagree about it.
func notText(s string) bool {
	low := strings.ToLower(s)
	if slices.Contains([]string{"true", "false", "null", "~", "yes", "no", "on", "off", "y", "n"}, low) {
		return true
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && !strings.ContainsRune("+-._eExXoOaAbBcCdDfF:infINF", r)
	}) < 0
}

// read returns the text of a file, "" where there is none.
func read(files fs.FS, name string) string {
	const most = 1 << 20
	info, err := fs.Stat(files, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return ""
	}
	b, err := fs.ReadFile(files, name)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "")
}

func exists(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.Mode().IsRegular()
}
