package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// presets are the load tools whose output is understood without metrics.
var presets = []string{"wrk", "autocannon", "ab", "hey", "h2load", "bombardier", "vegeta", "oha", "k6", "wrk2", "load_test", "http_load_test"}

// requestPresets are those of them that take a whole request by arguments:
// method, headers, body and URL.
var requestPresets = []string{"wrk", "autocannon", "ab", "hey", "h2load", "bombardier", "vegeta", "oha", "wrk2"}

// Presets lists the load tools whose output an exec scenario understands by
// itself (exec.preset).
func Presets() []string { return slices.Clone(presets) }

// exec decodes a scenario that another load tool drives.
func (d *decoder) exec(v value) *Exec {
	e := &Exec{Timeout: 5 * time.Minute}
	m, ok := d.object(v, execObject)
	if !ok || !m.require("command", "command: says how the load tool is started, with ${url} and ${connections} where they go") {
		return e
	}
	m.on("command", func(v value) { e.Command, _ = d.command(v, scopeTool) })
	m.on("preset", func(v value) { e.Preset, _ = d.choice(v, presets...) })
	m.on("connections", func(v value) { d.count(v, 1, maxConnections, &e.Connections) })
	m.on("env", func(v value) { e.Env = d.env(v, scopeScenario) })
	m.on("endless", func(v value) { e.Endless, _ = d.boolean(v) })
	m.on("timeout", func(v value) { d.span(v, time.Millisecond, &e.Timeout) })
	m.on("metrics", func(v value) { e.Metrics = d.extracts(v) })
	m.on("counter", func(v value) { e.Counter = d.counter(v) })
	m.on("errors", func(v value) {
		d.list(v, "a list of regular expressions", "", func(item value) {
			if re := d.regex(item); re != "" {
				e.Errors = append(e.Errors, re)
			}
		})
	})
	d.toldBy(m, e)
	m.on("request", func(v value) { e.Request = d.toolRequest(v) })
	if !d.dry {
		d.execReferences(m, e)
	}
	return e
}

// execReferences checks the references of a tool's command that have a value
// only where the exec gives them one.
func (d *decoder) execReferences(m mapping, e *Exec) {
	c, _ := m.get("command")
	if strings.Contains(string(e.Command.Shell), "${connections}") && e.Connections == 0 {
		d.errorIn(c.node, strings.Index(c.text, "${connections}"), len("${connections}"), kindReference, "command: ${connections} has no value", "add connections: N to the exec")
	}
	uses := slices.Contains(e.Command.Shell.Refs(), "request")
	at := c.node
	for i, a := range e.Command.Argv {
		if !slices.Contains(a.Refs(), "request") {
			continue
		}
		uses, at = true, c.node.items[i]
		if a != "${request}" {
			d.errorOn(at, kindReference, "command: ${request} stands for several arguments, and here it is a part of one", "make it an entry of its own in the list")
		}
	}
	switch {
	case uses && e.Request == nil && !m.has("request"):
		d.errorOn(at, kindReference, "command: ${request} has no value", "add request: { method: POST, path: /, body: ... } to the exec")
	case uses && e.Preset != "" && !slices.Contains(requestPresets, e.Preset):
		d.errorOn(at, kindReference, fmt.Sprintf("command: %s cannot be given a request by arguments", e.Preset), "those that can: "+strings.Join(requestPresets, ", "))
	case uses && !m.has("preset"):
		d.errorOn(at, kindReference, "command: ${request} is written in the way of a preset's tool, and there is no preset", "add preset: to the exec, one of "+strings.Join(requestPresets, ", "))
	case !uses && e.Request != nil && !e.Command.IsZero():
		d.errorOn(m.node.keyNode("request"), kindReference, "request: nothing hands it to the load tool", "put ${request} where the command takes its options and its URL")
	}
}

// toolRequest decodes the request that a load tool sends.
func (d *decoder) toolRequest(v value) *Request {
	r := &Request{Method: "GET", Path: "/"}
	m, ok := d.object(v, toolRequestObject)
	if !ok {
		return nil
	}
	m.on("method", func(v value) { r.Method = d.method(v) })
	m.on("path", func(v value) { r.Path = d.requestPath(v) })
	m.on("headers", func(v value) { r.Headers = d.headers(v) })
	m.on("body", func(v value) { r.Body, r.BodyFile = d.body(v) })
	m.on("sign", func(v value) { r.Sign = d.sign(v) })
	if k := m.keyNode("body"); k != nil && (r.Method == "GET" || r.Method == "HEAD") {
		d.warnOn(k, kindConflict, fmt.Sprintf("request: a %s request with a body", r.Method), "add method: POST")
	}
	return r
}

// toldBy checks that something says what the tool measured.
func (d *decoder) toldBy(m mapping, e *Exec) {
	if m.has("metrics") || m.has("preset") || d.dry {
		return
	}
	hint := "metrics says what to read from the output; preset names a tool that is known: " + strings.Join(presets, ", ")
	switch {
	case !m.has("counter"):
		d.errorOn(m.node, kindMissingKey, "exec: expected metrics, preset or counter, found none", hint)
	case e.Endless:
		d.errorOn(m.keyNode("counter"), kindMissingKey, "exec: an endless tool with a counter alone does not tell when it is at work", hint)
	}
}

// counter decodes where a server tells how many requests it has answered.
func (d *decoder) counter(v value) *Counter {
	c := &Counter{}
	m, ok := d.object(v, counterObject)
	if !ok {
		return c
	}
	if !m.has("http") && !m.meant["http"] {
		d.errorOn(m.node, kindMissingKey, `counter: the key "http" is missing`, "http: says where the server tells its count, such as /stats")
		return c
	}
	m.one("regex", "json")
	m.on("http", func(v value) { c.HTTP = d.readyHTTP(v, scopeScenario) })
	m.on("regex", func(v value) { c.Regex = d.numberRegex(v) })
	m.on("json", func(v value) { c.JSON, _ = d.str(v, "a dotted path such as requests.total") })
	return c
}

// numberRegex decodes a regular expression with one group for a number.
func (d *decoder) numberRegex(v value) string {
	text := d.regex(v)
	if re, err := regexp.Compile(text); err == nil && text != "" && re.NumSubexp() != 1 {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("regex: expected one group for the number, found %d", re.NumSubexp()), `put ( ) around the number: ([0-9.]+), and (?: ) around others`)
	}
	return text
}

// extracts decodes what is read from a tool's output, in file order.
func (d *decoder) extracts(v value) []Extract {
	var out []Extract
	hint := `write metrics: { rps: { regex: 'Requests/sec:\s+([0-9.]+)' } }`
	d.names(v, "a mapping of metrics to what is read", hint, func(name string, key *node, v value) {
		if !isMetricName(name) {
			d.errorOn(key, kindName, fmt.Sprintf("metric %s: expected a name such as rps or latency.p99", quote(name)), "names of metrics have small letters, digits, _ and one dot")
			return
		}
		if x, ok := d.extract(name, v); ok {
			out = append(out, x)
		}
	})
	return out
}

var metricNameRule = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)?$`)

func isMetricName(s string) bool { return len(s) <= maxName && metricNameRule.MatchString(s) }

func (d *decoder) extract(name string, v value) (Extract, bool) {
	x := Extract{Metric: name, Better: "higher"}
	if known, ok := LookupMetric(name); ok {
		x.Better, x.Unit = known.Better, known.Unit
	}
	m, ok := d.object(v, extractObject)
	if !ok {
		return x, false
	}
	if m.one("regex", "json") == "" {
		d.errorOn(m.node, kindMissingKey, fmt.Sprintf("metric %s: expected regex or json, found neither", name), "regex: has one group for the number; json: is a dotted path")
		return x, false
	}
	m.on("regex", func(v value) { x.Regex = d.numberRegex(v) })
	m.on("json", func(v value) { x.JSON, _ = d.str(v, "a dotted path such as requests.average") })
	m.on("better", func(v value) { x.Better, _ = d.choice(v, "higher", "lower") })
	m.on("unit", func(v value) { x.Unit, _ = d.str(v, "a unit such as s, ms, B or 1/s") })
	return x, true
}

// process decodes a scenario whose every sample is one process.
func (d *decoder) process(v value) *Process {
	p := &Process{Timeout: 5 * time.Minute}
	m, ok := d.object(v, processObject)
	if !ok || !m.require("run", "run: COMMAND says what is measured") {
		return p
	}
	m.on("run", func(v value) { p.Run, _ = d.command(v, scopeProcess) })
	m.on("dir", func(v value) { p.Dir = d.inTree(v) })
	m.on("env", func(v value) { p.Env = d.env(v, scopeProcess) })
	m.on("prepare", func(v value) { p.Prepare = d.around(v) })
	m.on("cleanup", func(v value) { p.Cleanup = d.around(v) })
	m.on("stdin", func(v value) { p.Stdin = d.file(v, "a file") })
	m.on("exit", func(v value) { d.count(v, 0, 255, &p.Exit) })
	m.on("compare", func(v value) { p.Compare, _ = d.boolean(v) })
	m.on("timeout", func(v value) { d.span(v, time.Millisecond, &p.Timeout) })
	return p
}

// around decodes a command that runs around each sample.
func (d *decoder) around(v value) *Step {
	st, ok := d.step(v, scopeProcess)
	if !ok {
		return nil
	}
	return &st
}
