package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Of returns the commands around a part.
func (h Hooks) Of(p Part) []Step {
	switch p {
	case RunPart:
		return h.Run
	case BlockPart:
		return h.Block
	case ScenarioPart:
		return h.Scenario
	case WindowPart:
		return h.Window
	}
	return nil
}

// hooks decodes the commands around the parts of a run.
func (d *decoder) hooks(v value) Hooks {
	var h Hooks
	if v.kind == seqKind || v.kind == scalarKind && !v.isNull() {
		d.typeError(v, "a mapping ("+keyList(hooksObject.keys, 4)+")", "write "+v.key+": { run: COMMAND } for once, or block:, scenario: or window: for each of those")
		return h
	}
	m, ok := d.object(v, hooksObject)
	if !ok {
		return h
	}
	m.on("run", func(v value) { h.Run = d.someSteps(v, scopeRun) })
	m.on("block", func(v value) { h.Block = d.someSteps(v, scopeBlock) })
	m.on("scenario", func(v value) { h.Scenario = d.someSteps(v, scopeWindow) })
	m.on("window", func(v value) { h.Window = d.someSteps(v, scopeWindow) })
	return h
}

// someSteps decodes one command or a list of them.
func (d *decoder) someSteps(v value, sc *scope) []Step {
	if v.kind == seqKind {
		return d.steps(v, sc)
	}
	if st, ok := d.step(v, sc); ok {
		return []Step{st}
	}
	return nil
}

// reset decodes how a service is put back: one command, several, or a
// command and when it runs.
func (d *decoder) reset(v value) *Reset {
	r := &Reset{Before: RunPart}
	if v.kind != mapKind || colonHint(v.node, resetObject.keys) != "" {
		r.Steps = d.someSteps(v, scopeService)
		return r
	}
	m, ok := d.object(v, resetObject)
	if !ok {
		return r
	}
	m.on("before", func(v value) {
		if p, ok := d.choice(v, string(RunPart), string(BlockPart), string(ScenarioPart), string(WindowPart)); ok {
			r.Before = Part(p)
		}
	})
	if st, ok := d.stepOf(m, scopeService); ok {
		r.Steps = []Step{st}
	}
	return r
}

// verify decodes what every copy must pass: one check or a list of them.
func (d *decoder) verify(v value) []Verify {
	var out []Verify
	one := func(item value) {
		if c, ok := d.verification(item); ok {
			out = append(out, c)
		}
	}
	if v.kind != seqKind {
		one(v)
		return out
	}
	d.list(v, "a list of checks", "write verify: [{ path: /, expect: status == 200 }]", one)
	return out
}

// verification decodes one check.
func (d *decoder) verification(v value) (Verify, bool) {
	if v.kind != mapKind {
		st, ok := d.step(v, scopeVerify)
		return Verify{Run: &st}, ok
	}
	c := Verify{Timeout: 10 * time.Second}
	m, ok := d.object(value{v.node, "verify"}, verifyObject)
	if !ok {
		return c, false
	}
	if m.has("run") {
		return d.verifyCommand(m)
	}
	for _, key := range []string{"dir", "env"} {
		if k := m.keyNode(key); k != nil {
			d.errorOn(k, kindConflict, fmt.Sprintf("verify: %q goes with run, and this is a request", key), "")
		}
	}
	m.on("method", func(v value) { c.Method = d.method(v) })
	m.on("path", func(v value) { c.Path = d.requestPath(v) })
	m.on("headers", func(v value) { c.Headers = d.headers(v) })
	m.on("body", func(v value) { c.Body, _ = d.template(v, "text", scopeScenario) })
	m.on("expect", func(v value) { c.Expect = d.expect(v) })
	m.on("changes", func(v value) { c.Changes = d.headerNames(v) })
	m.on("timeout", func(v value) { d.span(v, time.Millisecond, &c.Timeout) })
	if !m.has("path") && !m.has("expect") && !m.has("changes") && len(m.meant) == 0 {
		d.errorOn(m.node, kindMissingKey, "verify: expected run, path, expect or changes, found none", "write { path: /, expect: status == 200 }, or a command")
	}
	return c, true
}

func (d *decoder) verifyCommand(m mapping) (Verify, bool) {
	for _, key := range []string{"method", "path", "headers", "body", "expect", "changes"} {
		if k := m.keyNode(key); k != nil {
			d.errorOn(k, kindConflict, fmt.Sprintf("verify: \"run\" and %q exclude each other", key), "make them two checks")
		}
	}
	st, ok := d.stepOf(m, scopeVerify)
	return Verify{Run: &st}, ok
}

// headerNames decodes names of headers; they ignore case.
func (d *decoder) headerNames(v value) []string {
	var out []string
	d.list(v, "a list of headers", "write "+v.key+": [date]", func(item value) {
		name, ok := d.str(item, "the name of a header")
		switch {
		case !ok:
		case !isToken(name):
			d.errorOn(item.node, kindName, fmt.Sprintf("%s: %s is not a name of a header", v.key, quote(name)), "")
		case slices.ContainsFunc(out, func(s string) bool { return strings.EqualFold(s, name) }):
			d.errorOn(item.node, kindDuplicate, fmt.Sprintf("%s: %q is here twice", v.key, name), "")
		default:
			out = append(out, name)
		}
	})
	return out
}

func (d *decoder) prime(v value) *Prime {
	p := &Prime{Connections: 8}
	m, ok := d.object(v, primeObject)
	if !ok || !m.require("time", "time: says how long, such as 5s") {
		return p
	}
	m.on("time", func(v value) { d.span(v, time.Millisecond, &p.Time) })
	m.on("connections", func(v value) { d.count(v, 1, maxConnections, &p.Connections) })
	return p
}

// checkHooked checks what surrounds a scenario against its kind.
func (d *decoder) checkHooked(m mapping, sc *Scenario) {
	if k := m.keyNode("prime"); k != nil && (sc.Exec != nil || sc.Command != nil) {
		d.errorOn(k, kindConflict, fmt.Sprintf("scenario %s: prime is load of tandem's own generator, and this is %s", sc.Name, sc.kindName()), "warmup goes with any kind")
	}
	v, ok := m.get("verify")
	if !ok {
		return
	}
	items := []*node{v.node}
	if v.kind == seqKind {
		items = v.items
	}
	for _, n := range items {
		if n.kind != mapKind || n.get("run") != nil {
			continue
		}
		switch {
		case sc.Command != nil:
			d.errorOn(n, kindConflict, fmt.Sprintf("scenario %s: a command answers no requests", sc.Name), "verify it with a command, or with expect")
		case sc.HTTP == nil && n.get("path") == nil:
			d.errorOn(n, kindMissingKey, fmt.Sprintf("scenario %s: the path to verify is missing", sc.Name), "add path: /")
		}
	}
}

// VerifyRequest is the scenario that sends a verification's request: as the
// scenario's own, but for what the verification says.
func (s Scenario) VerifyRequest(v Verify) Scenario {
	h := HTTP{Method: "GET", Path: "/", KeepAlive: true}
	switch {
	case s.HTTP != nil:
		h = *s.HTTP
	case s.WS != nil:
		h.TLS = s.WS.TLS
	}
	h.Connections, h.Pipeline, h.Rate, h.Pacer, h.Timeout = 1, 1, 0, nil, v.Timeout
	if v.Path != "" {
		h.Path, h.URL, h.Requests = v.Path, "", nil
		h.Method, h.Body, h.BodyFile, h.Sign = "GET", "", "", nil
	}
	if v.Method != "" {
		h.Method = v.Method
	}
	if v.Body != "" {
		h.Body, h.BodyFile = v.Body, ""
	}
	h.Headers = slices.DeleteFunc(slices.Clone(h.Headers), func(old Header) bool {
		return slices.ContainsFunc(v.Headers, func(n Header) bool { return strings.EqualFold(n.Name, old.Name) })
	})
	h.Headers = append(h.Headers, v.Headers...)
	out := s
	out.HTTP, out.WS, out.Exec, out.Expect = &h, nil, nil, nil
	return out
}
