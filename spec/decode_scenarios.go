package spec

import (
	"fmt"
	"slices"
	"strings"
)

const scenariosHint = "write scenarios: { hello: { http: { path: /, connections: 100 } } }"

// scenarios decodes every scenario at every point of its matrix.
func (d *decoder) scenarios(m mapping, s *Spec) {
	if !m.require("scenarios", scenariosHint) {
		return
	}
	var outer *node
	m.on("matrix", func(v value) { outer = v.node })
	var defaults *node
	m.on("defaults", func(v value) {
		if m, ok := d.object(v, scenarioObject); ok {
			defaults = v.node
			d.checkDefaults(m, s)
		}
	})
	v, _ := m.get("scenarios")
	ids := map[string]*node{}
	d.names(v, "a mapping of names to scenarios", scenariosHint, func(name string, key *node, v value) {
		d.name(key, "scenario", true)
		body, points := d.scenario(name, key, v, defaults, outer, s)
		for _, sc := range points {
			id := sc.ID()
			if first, dup := ids[id]; dup {
				msg := fmt.Sprintf("scenario %s is here twice", quote(id))
				if first != key {
					msg += fmt.Sprintf("; it is first defined at line %d", first.pos.line)
				}
				d.errorOn(key, kindDuplicate, msg, "two points of the matrix have the same values")
				return
			}
			ids[id] = key
			if len(s.Scenarios) == maxScenarios {
				d.errorOn(key, kindLimit, fmt.Sprintf("the spec has more than %d scenarios", maxScenarios), "")
			}
			if len(s.Scenarios) < maxScenarios {
				s.Scenarios = append(s.Scenarios, sc)
				d.marks.scenarios = append(d.marks.scenarios, scenarioMark{key, body})
			}
		}
	})
	d.axes = nil
}

// checkDefaults reads the defaults by themselves, since a driver in them may
// be one that no scenario uses.
func (d *decoder) checkDefaults(m mapping, s *Spec) {
	d.dry = true
	m.on("matrix", func(v value) { d.grid(v) })
	m.on("http", func(v value) { d.http(v) })
	m.on("ws", func(v value) { d.ws(v) })
	m.on("exec", func(v value) { d.exec(v) })
	m.on("command", func(v value) { d.process(v) })
	sc := Scenario{}
	d.common(m, &sc, s)
	d.dry = false
}

// scenario decodes one scenario at each of its points.
func (d *decoder) scenario(name string, key *node, v value, defaults, outer *node, s *Spec) (*node, []Scenario) {
	if v.kind == mapKind && defaults != nil {
		v.node = override(driverDefaults(defaults, v.node), v.node, "scenario")
	}
	m, ok := d.object(v, scenarioObject)
	if !ok {
		return nil, nil
	}
	points, ok := d.points(outer, m)
	if !ok {
		return nil, nil
	}
	d.axes = map[string]bool{}
	for _, p := range points {
		for _, a := range p {
			d.axes[a.Name] = true
		}
	}
	var out []Scenario
	for _, p := range points {
		d.matrix = p
		out = append(out, d.point(name, key, m, s))
	}
	d.matrix, d.axes = nil, nil
	return m.node, out
}

// points lists the points of a scenario: those of the spec's matrix, times
// those of its own. An axis of its own replaces one of the spec's.
func (d *decoder) points(outer *node, m mapping) ([][]Axis, bool) {
	var shared, own grid
	ok := true
	if outer != nil {
		shared, ok = d.grid(value{outer, "matrix"})
	}
	inner := m.node.get("matrix")
	if inner != nil {
		var good bool
		own, good = d.grid(value{inner, "matrix"})
		ok = ok && good
	}
	if !ok {
		return nil, false
	}
	shared.axes = slices.DeleteFunc(slices.Clone(shared.axes), func(a gridAxis) bool {
		return slices.ContainsFunc(own.axes, func(o gridAxis) bool { return o.name == a.name })
	})
	points := [][]Axis{nil}
	if outer != nil {
		points = d.expand(shared, nil, outer)
	}
	if inner == nil {
		return points, true
	}
	var out [][]Axis
	for _, p := range points {
		if out = append(out, d.expand(own, p, inner)...); len(out) > maxScenarios {
			d.errorOn(inner, kindLimit, fmt.Sprintf("the matrix has more than %d points", maxScenarios), "")
			return nil, false
		}
	}
	return out, true
}

// driverDefaults are the defaults without the drivers that a scenario does
// not use: defaults for http do not make an http scenario of a ws one.
func driverDefaults(defaults, sc *node) *node {
	out := *defaults
	out.fields = slices.DeleteFunc(slices.Clone(defaults.fields), func(f field) bool {
		return slices.Contains(drivers, f.key.text) && sc.get(f.key.text) == nil
	})
	return &out
}

var drivers = []string{"http", "ws", "exec", "command"}

// point decodes a scenario at the current point of its matrix.
func (d *decoder) point(name string, key *node, m mapping, s *Spec) Scenario {
	sc := Scenario{Name: name, Matrix: d.matrix, Window: s.Plan.Window, Warmup: s.Plan.Warmup, Interleave: s.Plan.Interleave}
	switch m.one(drivers...) {
	case "":
		if slices.ContainsFunc(drivers, func(name string) bool { return m.meant[name] }) {
			break
		}
		d.errorOn(m.node, kindMissingKey, fmt.Sprintf("scenario %s: expected one of http, ws, exec and command, found none", name), "write http: { path: /, connections: 100 }")
	case "http":
		m.on("http", func(v value) { sc.HTTP = d.http(v) })
	case "ws":
		m.on("ws", func(v value) { sc.WS = d.ws(v) })
	case "exec":
		sc.Interleave = Windows
		m.on("exec", func(v value) { sc.Exec = d.exec(v) })
	case "command":
		sc.Interleave = Windows
		m.on("command", func(v value) { sc.Command = d.process(v) })
	}
	d.common(m, &sc, s)
	d.checkHooked(m, &sc)
	if sc.Judge == nil {
		sc.Judge = d.defaultJudge(&sc, s)
	}
	return sc
}

// common decodes what scenarios of all kinds have.
func (d *decoder) common(m mapping, sc *Scenario, s *Spec) {
	m.on("expect", func(v value) { sc.Expect = d.expect(v) })
	m.on("verify", func(v value) { sc.Verify = d.verify(v) })
	m.on("before", func(v value) { sc.Before = d.someSteps(v, scopeWindow) })
	m.on("after", func(v value) { sc.After = d.someSteps(v, scopeWindow) })
	m.on("prime", func(v value) { sc.Prime = d.prime(v) })
	m.on("control", func(v value) { sc.Control, _ = d.boolean(v) })
	m.on("judge", func(v value) { sc.Judge = d.metricNames(v) })
	m.on("errors", func(v value) { sc.Errors, _ = d.number(v, 0, 1) })
	m.on("window", func(v value) { d.span(v, 1e6, &sc.Window) })
	m.on("warmup", func(v value) { d.span(v, 0, &sc.Warmup) })
	m.on("interleave", func(v value) { d.scenarioInterleave(v, sc) })
	m.on("arms", func(v value) { sc.Arms = d.armList(v, s.Arms) })
}

// scenarioInterleave keeps drivers that cannot take turns at windows.
func (d *decoder) scenarioInterleave(v value, sc *Scenario) {
	mode := sc.Interleave
	d.interleave(v, &mode)
	if (sc.Exec != nil || sc.Command != nil) && mode != Windows {
		d.errorOn(v.node, kindPlan, fmt.Sprintf("interleave: other programs cannot take turns, found %q", mode), "remove it; they run in windows")
		return
	}
	sc.Interleave = mode
}

func (d *decoder) armList(v value, arms []Arm) []string {
	var out []string
	d.list(v, "a list of arms", "write "+v.key+": [base, head]", func(item value) {
		name, ok := d.str(item, "the name of an arm")
		if !ok || !d.armRef(item.node, v.key, name, arms) {
			return
		}
		if slices.Contains(out, name) {
			d.errorOn(item.node, kindDuplicate, fmt.Sprintf("%s: %q is here twice", v.key, name), "")
			return
		}
		out = append(out, name)
	})
	return out
}

// defaultJudge is what a scenario judges where neither it nor the spec says:
// nil stands for the spec's list.
func (d *decoder) defaultJudge(sc *Scenario, s *Spec) []string {
	var want []string
	switch {
	case sc.Command != nil:
		want = []string{"wall", "cpu"}
	case sc.WS != nil:
		want = []string{"msgs", "cpu_per_request"}
	case sc.HTTP != nil && (sc.HTTP.Rate > 0 || sc.HTTP.Pacer != nil):
		want = []string{"response_time.p50", "cpu_per_request"}
	default:
		return nil
	}
	if d.marks.judge == nil {
		return want
	}
	for _, name := range s.Judge {
		if sc.HasMetric(name) {
			return nil
		}
	}
	return want
}

// headers decodes header fields, in file order.
func (d *decoder) headers(v value) []Header {
	if v.kind == mapKind && len(v.fields) == 0 {
		return nil
	}
	var out []Header
	seen := map[string]bool{}
	d.names(v, "a mapping of headers", "write headers: { accept: application/json }", func(name string, key *node, v value) {
		if !isToken(name) {
			hint := ""
			if strings.Contains(name, ":") {
				hint = "write the name without a colon"
			}
			d.errorOn(key, kindName, fmt.Sprintf("headers: %s is not a name of a header", quote(name)), hint)
			return
		}
		if low := strings.ToLower(name); seen[low] {
			d.errorOn(key, kindDuplicate, fmt.Sprintf("headers: %s is here twice; names of headers ignore case", quote(name)), "")
			return
		} else {
			seen[low] = true
		}
		t, ok := d.plainTemplate(v, "a value", scopeScenario)
		if !ok {
			return
		}
		if strings.ContainsAny(string(t), "\r\n\x00") {
			d.errorOn(v.node, kindBadValue, fmt.Sprintf("headers: the value of %s has a line break in it", name), "")
			return
		}
		out = append(out, Header{Name: name, Value: t})
	})
	return out
}

// isToken is RFC 9110's rule for names of headers and methods.
func isToken(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)) {
			return false
		}
	}
	return s != ""
}
