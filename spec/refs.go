package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// scope is a place of the spec, and so the set of names that ${...} may
// refer to there. ${env.NAME} is known everywhere, ${matrix.NAME} in
// scenarios.
type scope struct {
	where string // for messages: "a build step"
	names []string
	deps  bool // ${services.NAME.port} is known
	now   bool // the value is needed when the spec is read
}

var (
	scopeNow      = &scope{where: "a value that is read with the spec", now: true}
	scopeStep     = &scope{where: "a build step", names: []string{"arm"}}
	scopeArmEnv   = &scope{where: "the environment of an arm", names: []string{"arm"}}
	scopeProbe    = &scope{where: "a version probe", names: []string{"arm"}}
	scopeService  = &scope{where: "a service", names: []string{"port", "host", "url", "data"}, deps: true}
	scopeServer   = &scope{where: "a server", names: []string{"port", "host", "url", "arm", "copy", "cpu"}, deps: true}
	scopeScenario = &scope{where: "a scenario", names: []string{"port", "host", "url", "arm", "copy", "cpu", "window", "connections"}, deps: true}
	scopeTool     = &scope{where: "a load tool's command", names: append([]string{"request"}, scopeScenario.names...), deps: true}
	scopeProcess  = &scope{where: "a command scenario", names: []string{"arm", "copy", "cpu", "window"}, deps: true}
	scopeVerify   = &scope{where: "a verification", names: []string{"port", "host", "url", "arm", "copy", "cpu"}, deps: true}
	scopeRun      = &scope{where: "a command around the run", deps: true}
	scopeBlock    = &scope{where: "a command around a block", names: []string{"block"}, deps: true}
	scopeWindow   = &scope{where: "a command around a scenario or a window", names: []string{"block", "scenario"}, deps: true}
)

// allNames are the names that some place knows, for hints.
var allNames = slices.Concat(scopeTool.names, []string{"data"}, scopeWindow.names)

// template reads text whose references the run resolves. References to the
// matrix are resolved here.
func (d *decoder) template(v value, want string, sc *scope) (Template, bool) {
	if v.kind != scalarKind || v.tag != tagStr {
		hint := ""
		if v.kind == scalarKind && !v.isNull() {
			hint = "quote it: \"" + v.text + "\""
		}
		d.typeError(v, want, hint)
		return "", false
	}
	return d.references(v, sc)
}

// maxBadRefs is how many references of one text are reported.
const maxBadRefs = 10

// references checks the references of a scalar and resolves those to the
// matrix.
func (d *decoder) references(v value, sc *scope) (Template, bool) {
	if !strings.Contains(v.text, "${") {
		return Template(v.text), true
	}
	parts, err := parseTemplate(v.text)
	var malformed *templateError
	if errors.As(err, &malformed) {
		d.errorIn(v.node, malformed.at, malformed.size, kindReference, v.key+": "+malformed.msg, malformed.hint)
		return "", false
	}
	bad := 0
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.name == "":
			b.WriteString(escapeTemplate(p.text))
			continue
		case !d.knownRef(v, p, sc):
			if bad++; bad == maxBadRefs {
				return "", false
			}
			continue
		}
		if axis, isAxis := strings.CutPrefix(p.name, "matrix."); isAxis {
			b.WriteString(escapeTemplate(d.axisValue(axis)))
			continue
		}
		b.WriteString(p.text)
	}
	return Template(b.String()), bad == 0
}

func (d *decoder) axisValue(name string) string {
	for _, a := range d.matrix {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// knownRef reports a reference that its place does not know.
func (d *decoder) knownRef(v value, p part, sc *scope) bool {
	fail := func(hint, format string, args ...any) bool {
		d.errorIn(v.node, p.at, len(p.text), kindReference, v.key+": "+fmt.Sprintf(format, args...), hint)
		return false
	}
	if name, ok := p.envName(); ok {
		return d.knownEnv(name, p, fail)
	}
	if axis, ok := strings.CutPrefix(p.name, "matrix."); ok {
		return d.knownAxis(axis, p, fail)
	}
	if svc, ok := strings.CutPrefix(p.name, "services."); ok && sc.deps {
		return d.knownService(svc, p, fail)
	} else if ok && (sc == scopeStep || sc == scopeArmEnv) {
		return fail("name it in the env of server, or of a scenario's command", "%s is not known in %s: services start after the builds", p.text, sc.where)
	}
	if known, ok := d.knownRequestRef(p, sc, fail); known {
		return ok
	}
	if slices.Contains(sc.names, p.name) {
		return true
	}
	if slices.Contains(allNames, p.name) {
		if sc.now {
			return fail("", "%s is known only while a run is going on, and this value is read before", p.text)
		}
		return fail("it knows "+refList(sc), "%s is not known in %s", p.text, sc.where)
	}
	hint := "it knows " + refList(sc)
	if near := Nearest(p.name, slices.Concat(sc.names, d.axisRefs())); near != "" {
		hint = "did you mean ${" + near + "}?"
	} else if strings.ToUpper(p.name) == p.name || d.isEnv(p.name) {
		hint = "write ${env." + p.name + "} for the environment, or $" + p.name + " for a variable of the shell"
	} else if d.axes[p.name] {
		hint = "did you mean ${matrix." + p.name + "}?"
	}
	return fail(hint, "%s is not a name that is known here", p.text)
}

func (d *decoder) isEnv(name string) bool {
	if d.o.Env == nil {
		return false
	}
	_, ok := d.o.Env(name)
	return ok
}

func refList(sc *scope) string {
	var names []string
	for _, n := range sc.names {
		names = append(names, "${"+n+"}")
	}
	return strings.Join(append(names, "${env.NAME}"), ", ")
}

func (d *decoder) axisRefs() []string {
	var names []string
	for _, a := range d.matrix {
		names = append(names, "matrix."+a.Name)
	}
	return names
}

type failFunc func(hint, format string, args ...any) bool

func (d *decoder) knownEnv(name string, p part, fail failFunc) bool {
	if !isEnvName(name) {
		return fail("", "%q is not a name of an environment variable", name)
	}
	if d.o.Env == nil || p.op == ":-" {
		return true
	}
	s, ok := d.o.Env(name)
	switch {
	case p.op == ":?" && s == "":
		return fail("", "the environment variable %s is not set: %s", name, p.arg)
	case !ok:
		return fail("set it, or give a default: ${env."+name+":-DEFAULT}", "the environment variable %s is not set", name)
	}
	return true
}

func isEnvName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func (d *decoder) knownAxis(axis string, p part, fail failFunc) bool {
	if d.dry {
		return true
	}
	var axes []string
	for _, a := range d.matrix {
		if a.Name == axis {
			return true
		}
		axes = append(axes, a.Name)
	}
	switch {
	case d.axes == nil:
		return fail("a matrix belongs to scenarios; name the scenario's values there", "%s is not known here", p.text)
	case len(axes) == 0:
		return fail("add one: matrix: { "+axis+": [...] }", "%s: the scenario has no matrix", p.text)
	}
	hint := "its axes are " + strings.Join(axes, ", ")
	if near := Nearest(axis, axes); near != "" {
		hint = "did you mean ${matrix." + near + "}?"
	}
	return fail(hint, "%s: the matrix has no axis %q", p.text, axis)
}

func (d *decoder) knownService(ref string, p part, fail failFunc) bool {
	i := strings.LastIndexByte(ref, '.')
	if i < 0 {
		return fail("write ${services.NAME.port}, .host or .url", "%s does not say what of the service is meant", p.text)
	}
	name, field := ref[:i], ref[i+1:]
	if !slices.Contains([]string{"port", "host", "url"}, field) {
		return fail("write ${services."+name+".port}, .host or .url", "%s: a service has no %q", p.text, field)
	}
	if !slices.Contains(d.marks.services, name) {
		hint := ""
		if near := Nearest(name, d.marks.services); near != "" {
			hint = "did you mean ${services." + near + "." + field + "}?"
		}
		return fail(hint, "%s: there is no service %q", p.text, name)
	}
	return true
}

// errorIn reports a place inside a scalar: bytes at to at+size of its text.
func (d *decoder) errorIn(n *node, at, size int, kind, msg, hint string) {
	p, exact := d.inside(n, at)
	if !exact {
		d.errorOn(n, kind, msg, hint)
		return
	}
	d.errorAt(p, runes(n.text[at:min(at+size, len(n.text))]), kind, msg, hint)
}
