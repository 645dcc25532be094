package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// The mappings of a bench.yaml whose keys are fixed. schema.json says the
// same; a test holds the two together.
var (
	rootObject = &object{"bench.yaml", []string{
		"version", "name", "arms", "baseline", "env", "build", "hosts", "services", "server", "before", "after", "pins", "generator", "limits", "plan",
		"matrix", "defaults", "scenarios", "judge", "alpha", "margin", "thresholds", "policy", "report", "versions", "profiles",
	}}
	armObject       = &object{"arm", []string{"git", "repo", "merge_base", "dir", "label", "setup", "build", "server", "env", "services"}}
	stepObject      = &object{"step", []string{"run", "dir", "timeout", "env"}}
	serverObject    = &object{"server", []string{"command", "dir", "env", "ready", "stop", "host"}}
	readyObject     = &object{"ready", []string{"http", "tcp", "log", "exec", "timeout"}}
	stopObject      = &object{"stop", []string{"signal", "timeout"}}
	serviceObject   = &object{"service", []string{"command", "setup", "user", "dir", "env", "ready", "stop", "reset", "port", "cpus", "host"}}
	resetObject     = &object{"reset", []string{"run", "before", "dir", "timeout", "env"}}
	hooksObject     = &object{"hooks", []string{"run", "block", "scenario", "window"}}
	hostObject      = &object{"host", []string{"ssh", "address", "dir"}}
	pinsObject      = &object{"pins", []string{"server", "load", "require"}}
	generatorObject = &object{"generator", []string{"cpus"}}
	limitsObject    = &object{"limits", []string{"memory", "nofile", "processes"}}
	planObject      = &object{"plan", []string{"blocks", "window", "warmup", "turn", "interleave", "copies", "budget", "seed"}}
	blocksObject    = &object{"blocks", []string{"min", "max"}}
	scenarioObject  = &object{"scenario", []string{
		"matrix", "http", "ws", "exec", "command", "expect", "verify", "before", "after", "prime", "control", "judge", "errors",
		"window", "warmup", "interleave", "arms",
	}}
	verifyObject = &object{"verify", []string{"run", "dir", "env", "method", "path", "headers", "body", "expect", "changes", "timeout"}}
	primeObject  = &object{"prime", []string{"time", "connections"}}
	httpObject   = &object{"http", []string{
		"method", "path", "url", "headers", "body", "connections", "pipeline", "pipeline_mode", "keepalive", "timeout", "think",
		"rate", "pacer", "version", "tls", "sign", "data", "requests", "vars",
	}}
	bodyObject    = &object{"body", []string{"file"}}
	requestObject = &object{"request", []string{"method", "path", "headers", "body", "weight"}}
	pacerObject   = &object{"pacer", []string{"kind", "from", "to", "mean", "swing", "period"}}
	tlsObject     = &object{"tls", []string{"ca", "insecure", "server_name"}}
	signObject    = &object{"sign", []string{"header", "hmac", "key", "prefix"}}
	wsObject      = &object{"ws", []string{
		"path", "url", "headers", "size", "message", "reply", "binary", "connections", "pipeline", "deflate", "timeout", "tls",
	}}
	execObject        = &object{"exec", []string{"command", "preset", "connections", "metrics", "counter", "errors", "env", "endless", "timeout", "request"}}
	counterObject     = &object{"counter", []string{"http", "regex", "json"}}
	toolRequestObject = &object{"request", []string{"method", "path", "headers", "body", "sign"}}
	extractObject     = &object{"metric", []string{"regex", "json", "better", "unit"}}
	processObject     = &object{"command", []string{"run", "dir", "env", "prepare", "cleanup", "stdin", "exit", "compare", "timeout"}}
	thresholdObject   = &object{"threshold", []string{"metric", "scenario", "mark", "warn", "fail", "message"}}
	policyObject      = &object{"policy", []string{"unsure", "new", "removed", "failed", "incomparable", "spec_changed", "spec_changed_label"}}
	reportObject      = &object{"report", []string{"markdown", "json", "html", "junit", "csv", "benchfmt", "text"}}
)

// home is a mapping, and how messages name the place of it.
type home struct {
	object *object
	path   string
}

// homes are the mappings that a key which stands in the wrong place is
// looked for in, with where they belong.
var homes = []home{
	{rootObject, "the top level"},
	{planObject, "plan"},
	{httpObject, "a scenario's http"},
	{serverObject, "server"},
	{scenarioObject, "a scenario"},
	{readyObject, "server.ready"},
	{stopObject, "server.stop"},
	{pinsObject, "pins"},
	{armObject, "an arm"},
	{thresholdObject, "an entry of thresholds"},
	{policyObject, "policy"},
	{wsObject, "a scenario's ws"},
	{processObject, "a scenario's command"},
	{execObject, "a scenario's exec"},
	{limitsObject, "limits"},
	{stepObject, "a step of build"},
	{verifyObject, "a scenario's verify"},
	{reportObject, "report"},
	{hostObject, "an entry of hosts"},
}

const commaHint = "inside { } a comma ends an unquoted value; put the whole value in quotes"

// unknownKey reports a key that its mapping does not know.
func (d *decoder) unknownKey(f field, m mapping) {
	msg := fmt.Sprintf("%sunknown key %s", m.what(), quote(f.key.text))
	d.errorOn(f.key, kindUnknownKey, msg, d.unknownKeyHint(f, m))
}

func (d *decoder) unknownKeyHint(f field, m mapping) string {
	key := f.key.text
	switch {
	case m.flow && f.val.isNull() && f.val.text == "":
		return commaHint
	case key == "on" && m.object == rootObject:
		return "a bench.yaml has no triggers; they belong in the workflow"
	}
	near := Nearest(key, m.object.keys)
	elsewhere := homeOfSynonym(key, m.object)
	if word := synonym(key, m.object.keys); near == "" || elsewhere != "" && levenshtein.Distance(key, near, nil) > 1 {
		near = word
	}
	if near != "" {
		m.meant[near] = true
		return fmt.Sprintf("did you mean %q?", near)
	}
	if home := homeOf(key, m.object); home != nil {
		m.meant[home.object.name] = true
		return fmt.Sprintf("%q belongs under %s", key, home.path)
	}
	if strings.Contains(key, " ") || strings.HasPrefix(f.val.text, " ") {
		return "quote a value that has \": \" in it"
	}
	if elsewhere != "" {
		return elsewhere
	}
	return "known keys: " + strings.Join(m.object.keys, ", ")
}

// homeOf says where a key belongs that is known elsewhere.
func homeOf(key string, not *object) *home {
	for i, h := range homes {
		if h.object != not && slices.Contains(h.object.keys, key) {
			return &homes[i]
		}
	}
	return nil
}

// homeOfSynonym says what key of ours, elsewhere, another tool's word means.
func homeOfSynonym(key string, not *object) string {
	for _, h := range homes {
		if s := synonym(key, h.object.keys); s != "" && h.object != not {
			return fmt.Sprintf("%q under %s may be what you mean", s, h.path)
		}
	}
	return ""
}

// objectHint shows how to write a mapping that was given as something else.
func objectHint(v value, o *object) string {
	if v.kind == seqKind {
		hint := fmt.Sprintf("write %s: { %s: ... }", v.key, o.keys[0])
		if !v.flow {
			hint += ", without dashes"
		}
		return hint
	}
	if v.kind != scalarKind || v.isNull() {
		return ""
	}
	text := v.text
	if strings.ContainsAny(text, ",{}[]: #'\"") {
		text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	switch o {
	case serverObject, serviceObject:
		return fmt.Sprintf("write %s: { command: %s }", v.key, text)
	case processObject:
		return fmt.Sprintf("write %s: { run: %s }", v.key, text)
	case execObject:
		return fmt.Sprintf("write %s: { command: %s }", v.key, text)
	case httpObject, wsObject, toolRequestObject:
		return fmt.Sprintf("write %s: { path: %s }", v.key, text)
	case counterObject:
		return fmt.Sprintf("write %s: { http: %s }", v.key, text)
	case extractObject:
		return fmt.Sprintf("write %s: { regex: %s }", v.key, text)
	case armObject:
		if strings.HasPrefix(v.text, ".") || strings.HasPrefix(v.text, "/") {
			return fmt.Sprintf("write %s: { dir: %s }", v.key, text)
		}
		return fmt.Sprintf("write %s: { git: %s }", v.key, text)
	case readyObject:
		if strings.HasPrefix(v.text, "/") {
			return fmt.Sprintf("write %s: { http: %s }", v.key, text)
		}
		return fmt.Sprintf("write %s: { tcp: %s }", v.key, text)
	case hostObject:
		return fmt.Sprintf("write %s: { ssh: %s }", v.key, text)
	case stopObject:
		return fmt.Sprintf("write %s: { signal: %s }", v.key, strings.TrimPrefix(text, "SIG"))
	case pinsObject:
		return fmt.Sprintf("write %s: { server: %s, load: %s }", v.key, text, text)
	}
	return ""
}
