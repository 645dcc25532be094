package spec

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const armsHint = "write arms: { base: { git: main }, head: { dir: . } }"

// arms decodes the arms, each complete with what it shares with the others.
func (d *decoder) arms(m mapping, s *Spec) {
	if !m.require("arms", armsHint) {
		return
	}
	v, _ := m.get("arms")
	d.names(v, "a mapping of names to arms", armsHint, func(name string, key *node, v value) {
		d.name(key, "arm", false)
		d.marks.arms = append(d.marks.arms, key)
		s.Arms = append(s.Arms, d.arm(name, v, m))
	})
	if v.kind == mapKind && len(v.fields) == 1 {
		d.errorOn(v.node, kindBadValue, "arms: expected two or more arms, found one", "a version is compared with another; "+armsHint)
	}
	if len(s.Arms) > 0 {
		s.Baseline = s.Arms[0].Name
	}
	m.on("baseline", func(v value) {
		name, ok := d.str(v, "the name of an arm")
		if !ok || len(s.Arms) == 0 {
			return
		}
		s.Baseline = name
		d.armRef(v.node, "baseline", name, s.Arms)
	})
}

// armRef reports a name that is no arm's.
func (d *decoder) armRef(n *node, key, name string, arms []Arm) bool {
	var names []string
	for _, a := range arms {
		names = append(names, a.Name)
	}
	if slices.Contains(names, name) {
		return true
	}
	hint := "arms: " + strings.Join(names, ", ")
	if near := Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.errorOn(n, kindUndefined, fmt.Sprintf("%s: there is no arm %q", key, name), hint)
	return false
}

// arm decodes one arm over what the top level says for all.
func (d *decoder) arm(name string, v value, root mapping) Arm {
	a := Arm{Name: name}
	m, ok := d.object(v, armObject)
	if !ok {
		return a
	}
	d.armSource(m, &a)
	shared := d.marks.services
	m.on("services", func(v value) { a.Services = d.services(v) })
	m.on("label", func(v value) { a.Label, _ = d.str(v, "text") })
	m.on("setup", func(v value) { a.Setup = d.steps(v, scopeStep) })
	if build, ok := m.shared("build", root); ok {
		a.Build = d.steps(build, scopeStep)
	}
	if server, ok := m.shared("server", root); ok {
		a.Server = d.server(server)
	}
	if env, ok := m.shared("env", root); ok {
		a.Env = d.env(env, scopeArmEnv)
	}
	d.marks.armServices = append(d.marks.armServices, d.marks.services[len(shared):]...)
	d.marks.services = shared[:len(shared):len(shared)]
	return a
}

// shared returns what an arm says under a key laid over what the top level
// says there.
func (m mapping) shared(key string, root mapping) (value, bool) {
	base, over := root.node.get(key), m.node.get(key)
	switch {
	case over == nil && base == nil:
		return value{}, false
	case over == nil:
		return value{base, key}, true
	case base != nil && key != "build":
		return value{override(base, over, key), key}, true
	}
	return value{over, key}, true
}

func (d *decoder) armSource(m mapping, a *Arm) {
	switch m.one("git", "dir") {
	case "":
		if m.meant["git"] || m.meant["dir"] {
			return
		}
		d.errorOn(m.node, kindMissingKey, fmt.Sprintf("arm %s: expected git or dir, found neither", a.Name), "write git: REF for a revision, or dir: PATH for a folder")
		return
	case "dir":
		for _, key := range []string{"repo", "merge_base"} {
			if k := m.keyNode(key); k != nil {
				d.errorOn(k, kindConflict, fmt.Sprintf("arm %s: %q goes with git, and this arm is a dir", a.Name, key), "")
			}
		}
		m.on("dir", func(v value) {
			if p, ok := d.str(v, "a folder"); ok {
				a.Path = d.folder(v, p)
			}
		})
		return
	}
	g := &Git{MergeBase: true}
	m.on("git", func(v value) {
		if v.isNumber() { // 1.2 and 2024 are tags that people have
			g.Ref = v.text
			return
		}
		g.Ref, _ = d.str(v, "a revision")
		if strings.HasPrefix(g.Ref, "-") || strings.ContainsAny(g.Ref, " \t\n~^:?*[\\") && strings.ContainsAny(g.Ref, " \t\n:?*[\\") {
			d.errorOn(v.node, kindBadValue, fmt.Sprintf("git: %s is not a revision", quote(g.Ref)), "a branch, a tag, a commit, or one of these with ~N")
		}
	})
	g.Repo = d.repository()
	m.on("repo", func(v value) {
		if p, ok := d.str(v, "a folder"); ok {
			g.Repo = d.folder(v, p)
		}
	})
	m.on("merge_base", func(v value) { g.MergeBase, _ = d.boolean(v) })
	a.Git = g
	d.marks.git = append(d.marks.git, gitMark{m.node.get("git"), g})
}

const stepsHint = "write build: [npm ci], or one command a line with dashes"

func (d *decoder) steps(v value, sc *scope) []Step {
	var out []Step
	d.list(v, "a list of commands", stepsHint, func(item value) {
		if st, ok := d.step(item, sc); ok {
			out = append(out, st)
		}
	})
	return out
}

const defaultStepTimeout = 10 * time.Minute

// step decodes a command, or a mapping with the command and more.
func (d *decoder) step(v value, sc *scope) (Step, bool) {
	st := Step{Timeout: defaultStepTimeout}
	if v.kind != mapKind {
		c, ok := d.command(v, sc)
		st.Run = c
		return st, ok
	}
	if hint := colonHint(v.node, stepObject.keys); hint != "" {
		d.errorOn(v.node, kindWrongType, fmt.Sprintf("%s: expected a command, found a mapping", v.key), hint)
		return st, false
	}
	m, ok := d.object(value{v.node, "of " + v.key}, stepObject)
	if !ok {
		return st, false
	}
	return d.stepOf(m, sc)
}

// stepOf decodes a command and what goes with it from a mapping.
func (d *decoder) stepOf(m mapping, sc *scope) (Step, bool) {
	st, ok := Step{Timeout: defaultStepTimeout}, false
	if !m.require("run", "run: COMMAND says what the step does") {
		return st, false
	}
	m.on("run", func(v value) { st.Run, ok = d.command(v, sc) })
	m.on("dir", func(v value) { st.Dir = d.inTree(v) })
	m.on("timeout", func(v value) { d.span(v, time.Millisecond, &st.Timeout) })
	m.on("env", func(v value) { st.Env = d.env(v, sc) })
	return st, ok
}

// colonHint recognises a command with ": " in it that YAML read as a mapping.
func colonHint(n *node, keys []string) string {
	if len(n.fields) == 0 {
		return ""
	}
	k := n.fields[0].key
	if slices.Contains(keys, k.text) || strings.HasPrefix(k.text, "x-") || !strings.ContainsAny(k.text, " /\"'") {
		return ""
	}
	return "YAML reads \": \" as a key and a value; put the whole command in quotes"
}

// command decodes a line for the shell, or a list of arguments.
func (d *decoder) command(v value, sc *scope) (Command, bool) {
	want := "a command"
	switch v.kind {
	case seqKind:
		var c Command
		good := true
		d.list(v, "a command", "", func(item value) {
			a, ok := d.argument(item, sc)
			c.Argv, good = append(c.Argv, a), good && ok
		})
		if good && len(c.Argv) > 0 && c.Argv[0] == "" {
			d.errorOn(v.items[0], kindEmpty, v.key+": the first argument names the program, and it is empty", "")
			good = false
		}
		return c, good && len(c.Argv) > 0
	case mapKind:
		hint := "write it as text, or as a list of arguments"
		if h := colonHint(v.node, nil); h != "" {
			hint = h
		}
		d.typeError(v, want, hint)
		return Command{}, false
	}
	t, ok := d.template(v, want, sc)
	if ok && strings.TrimSpace(string(t)) == "" {
		d.errorOn(v.node, kindEmpty, v.key+": expected a command, found empty text", "")
		return Command{}, false
	}
	return Command{Shell: t}, ok
}

// argument reads one argument of a command; a number stands for its text.
func (d *decoder) argument(v value, sc *scope) (Template, bool) {
	if v.isNumber() {
		return Template(v.text), true
	}
	return d.template(v, "an argument", sc)
}

// env decodes a mapping of variables; numbers and booleans stand for their text.
func (d *decoder) env(v value, sc *scope) map[string]Template {
	if v.kind == mapKind && len(v.fields) == 0 {
		return nil
	}
	var out map[string]Template
	hint := "write env: { NAME: value }"
	if name, val, ok := strings.Cut(v.text, "="); ok && isEnvName(name) {
		hint = fmt.Sprintf("write env: { %s: %s }", name, val)
	}
	d.names(v, "a mapping of variables", hint, func(name string, key *node, v value) {
		if !isEnvName(name) {
			d.errorOn(key, kindName, fmt.Sprintf("env: %s is not a name of an environment variable", quote(name)), "names have letters, digits and _, and do not start with a digit")
			return
		}
		if out == nil {
			out = make(map[string]Template, 4)
		}
		if v.isNull() {
			d.nullError(v, "a value", "write '' for an empty value")
			return
		}
		if t, ok := d.plainTemplate(v, "a value", sc); ok {
			out[name] = t
		}
	})
	return out
}

// plainTemplate reads a template where numbers and booleans stand for their
// text, too.
func (d *decoder) plainTemplate(v value, want string, sc *scope) (Template, bool) {
	if v.isNumber() || v.kind == scalarKind && v.tag == tagBool {
		return Template(v.text), true
	}
	return d.template(v, want, sc)
}

// server decodes how a copy is started.
func (d *decoder) server(v value) *Server {
	m, ok := d.object(v, serverObject)
	if !ok || !m.require("command", "command: says how one copy of an arm is started") {
		return nil
	}
	s := &Server{Ready: defaultReady(), Stop: defaultStop()}
	m.on("command", func(v value) {
		if c, ok := d.command(v, scopeServer); ok {
			s.Command = c
		}
	})
	m.on("dir", func(v value) { s.Dir = d.inTree(v) })
	m.on("env", func(v value) { s.Env = d.env(v, scopeServer) })
	m.on("ready", func(v value) { s.Ready = d.ready(v, scopeServer) })
	m.on("stop", func(v value) { s.Stop = d.stop(v) })
	m.on("host", func(v value) { s.Host = d.hostRef(v) })
	return s
}

func defaultReady() Ready {
	return Ready{TCP: "${port}", Timeout: 30 * time.Second}
}

func defaultStop() Stop { return Stop{Signal: "TERM", Timeout: 5 * time.Second} }

func (d *decoder) ready(v value, sc *scope) Ready {
	r := defaultReady()
	m, ok := d.object(v, readyObject)
	if !ok {
		return r
	}
	if m.one("http", "tcp", "log", "exec") != "" {
		r.TCP = ""
	}
	m.on("http", func(v value) { r.HTTP = d.readyHTTP(v, sc) })
	m.on("tcp", func(v value) { r.TCP = d.readyTCP(v, sc) })
	m.on("log", func(v value) { r.Log = d.regex(v) })
	m.on("exec", func(v value) {
		if c, ok := d.command(v, sc); ok {
			r.Exec = &c
		}
	})
	m.on("timeout", func(v value) { d.span(v, time.Millisecond, &r.Timeout) })
	return r
}

func (d *decoder) readyHTTP(v value, sc *scope) Template {
	t, ok := d.template(v, "a path such as /healthz, or a URL", sc)
	if ok && !strings.HasPrefix(string(t), "/") && !isURL(string(t)) && !strings.HasPrefix(string(t), "${") {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("http: expected a path such as /healthz, or a URL, found %s", quote(v.text)), "a path starts with /")
	}
	return t
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

func (d *decoder) readyTCP(v value, sc *scope) Template {
	if v.isNumber() {
		n, _ := d.integer(v, 1, 65535)
		if n == 0 {
			return ""
		}
		return Template(v.text)
	}
	t, ok := d.template(v, "a port, or host:port", sc)
	if !ok {
		return ""
	}
	text := string(t)
	if !strings.Contains(text, "${") {
		port := text[strings.LastIndexByte(text, ':')+1:]
		if n, err := parseInt(port); err != nil || n < 1 || n > 65535 {
			d.errorOn(v.node, kindBadValue, fmt.Sprintf("tcp: expected a port from 1 to 65535, or host:port, found %s", quote(text)), "")
		}
	}
	return t
}

func (d *decoder) stop(v value) Stop {
	s := defaultStop()
	m, ok := d.object(v, stopObject)
	if !ok {
		return s
	}
	m.on("signal", func(v value) {
		if sig, ok := d.choice(v, "TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2"); ok {
			s.Signal = sig
		}
	})
	m.on("timeout", func(v value) { d.span(v, 0, &s.Timeout) })
	return s
}

// services decodes helper processes, in the order in which they start.
func (d *decoder) services(v value) []Service {
	var out []Service
	hint := "write services: { db: { command: ... } }"
	if v.kind == mapKind {
		for _, f := range v.fields {
			d.marks.services = append(d.marks.services, f.key.text)
		}
	}
	d.names(v, "a mapping of names to services", hint, func(name string, key *node, v value) {
		d.name(key, "service", false)
		if s, ok := d.service(name, v); ok {
			out = append(out, s)
		}
	})
	return out
}

func (d *decoder) service(name string, v value) (Service, bool) {
	s := Service{Name: name, Ready: defaultReady(), Stop: defaultStop()}
	m, ok := d.object(v, serviceObject)
	if !ok || !m.require("command", "command: says how the service is started") {
		return s, false
	}
	m.on("command", func(v value) { s.Command, _ = d.command(v, scopeService) })
	m.on("setup", func(v value) { s.Setup = d.steps(v, scopeService) })
	m.on("user", func(v value) { s.User = d.user(v) })
	m.on("dir", func(v value) { s.Dir = d.inTree(v) })
	m.on("env", func(v value) { s.Env = d.env(v, scopeService) })
	m.on("ready", func(v value) { s.Ready = d.ready(v, scopeService) })
	m.on("stop", func(v value) { s.Stop = d.stop(v) })
	m.on("host", func(v value) { s.Host = d.serviceHost(v, m) })
	m.on("reset", func(v value) { s.Reset = d.reset(v) })
	m.on("port", func(v value) { d.count(v, 1, 65535, &s.Port) })
	m.on("cpus", func(v value) { s.CPUs = d.cpuList(v, "") })
	return s, true
}

// user reads the name of a user of this machine. Whether there is one of that
// name is asked when it is needed: another machine may have it.
func (d *decoder) user(v value) string {
	name, ok := d.str(v, "the name of a user such as nobody")
	if ok && !userNameRule.MatchString(name) {
		d.errorOn(v.node, kindName, fmt.Sprintf("user: %s is not a name of a user", quote(name)), "write a name such as postgres or nobody")
		return ""
	}
	return name
}

// userNameRule is what useradd lets through, without a trailing $.
var userNameRule = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// inTree reads a folder that is relative to a tree and stays in it.
func (d *decoder) inTree(v value) string {
	p, ok := d.str(v, "a folder")
	if !ok {
		return ""
	}
	if !filepath.IsLocal(p) && p != "." {
		hint := "it is relative to the tree of the arm, and stays in it"
		d.errorOn(v.node, kindPath, fmt.Sprintf("%s: %s is outside the tree", v.key, quote(p)), hint)
	}
	return filepath.ToSlash(filepath.Clean(p))
}
