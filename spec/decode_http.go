package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	defaultConnections = 10
	maxConnections     = 1_000_000
)

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// http decodes an HTTP scenario.
func (d *decoder) http(v value) *HTTP {
	h := &HTTP{Method: "GET", Path: "/", Connections: defaultConnections, Pipeline: 1, KeepAlive: true, Timeout: 5 * time.Second}
	m, ok := d.object(v, httpObject)
	if !ok {
		return h
	}
	m.on("vars", func(v value) { h.Vars = d.vars(v) })
	d.request = requestRefs{vars: h.Vars}
	defer func() { d.request = requestRefs{} }()
	m.on("data", func(v value) {
		h.Data = d.file(v, "a CSV or JSON-lines file")
		d.request.hasData, d.request.columns = true, d.dataColumns(v, h.Data)
	})
	m.on("method", func(v value) { h.Method = d.method(v) })
	m.on("path", func(v value) { h.Path = d.requestPath(v) })
	m.on("url", func(v value) { h.URL = d.url(v, "http://", "https://", "unix:") })
	m.on("headers", func(v value) { h.Headers = d.headers(v) })
	m.on("body", func(v value) { h.Body, h.BodyFile = d.body(v) })
	m.on("connections", func(v value) { d.count(v, 1, maxConnections, &h.Connections) })
	m.on("pipeline", func(v value) { d.count(v, 1, 4096, &h.Pipeline) })
	m.on("pipeline_mode", func(v value) { h.PipelineMode, _ = d.choice(v, "sliding", "batch") })
	m.on("keepalive", func(v value) {
		if b, ok := d.boolean(v); ok {
			h.KeepAlive = b
		}
	})
	m.on("timeout", func(v value) { d.span(v, time.Millisecond, &h.Timeout) })
	m.on("think", func(v value) { d.span(v, 0, &h.Think) })
	m.on("version", func(v value) { h.Version = d.httpVersion(v) })
	m.on("tls", func(v value) { h.TLS = d.tls(v) })
	m.on("sign", func(v value) { h.Sign = d.sign(v) })
	m.on("requests", func(v value) { h.Requests = d.requests(v) })
	m.on("rate", func(v value) { h.Rate, _ = d.rate(v) })
	m.on("pacer", func(v value) { h.Pacer = d.pacer(v) })
	d.httpConflicts(m, h)
	return h
}

// httpConflicts reports keys of an HTTP scenario that do not go together.
func (d *decoder) httpConflicts(m mapping, h *HTTP) {
	m.one("rate", "pacer")
	m.one("url", "path")
	open := h.Rate > 0 || h.Pacer != nil
	if k := m.keyNode("pipeline"); k != nil && open && h.Pipeline > 1 {
		d.errorOn(k, kindConflict, "http: a rate sends requests one by one; pipeline goes with connections alone", "remove pipeline, or the rate")
	}
	if k := m.keyNode("think"); k != nil && open {
		d.errorOn(k, kindConflict, "http: think waits between the requests of a connection, and a rate says when to send", "remove one of them")
	}
	if k := m.keyNode("pipeline"); k != nil && !h.KeepAlive && h.Pipeline > 1 {
		d.errorOn(k, kindConflict, "http: pipeline needs keepalive", "")
	}
	if k := m.keyNode("pipeline_mode"); k != nil && h.Pipeline == 1 && !m.has("pipeline") {
		d.errorOn(k, kindConflict, "http: pipeline_mode goes with pipeline, which is missing", "")
	}
	if m.has("requests") {
		for _, key := range []string{"method", "path", "url", "body"} {
			if k := m.keyNode(key); k != nil {
				d.errorOn(k, kindConflict, fmt.Sprintf("http: %q and \"requests\" exclude each other", key), "say it in each entry of requests")
			}
		}
	}
	if k := m.keyNode("body"); k != nil && (h.Method == "GET" || h.Method == "HEAD") && !m.has("requests") {
		d.warnOn(k, kindConflict, fmt.Sprintf("http: a %s request with a body", h.Method), "add method: POST")
	}
}

func (d *decoder) method(v value) string {
	s, ok := d.str(v, "a method such as GET or POST")
	if !ok {
		return "GET"
	}
	if slices.Contains(methods, s) {
		return s
	}
	hint := "methods: " + strings.Join(methods, ", ")
	if near := Nearest(s, methods); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.errorOn(v.node, kindBadValue, fmt.Sprintf("method: expected a method such as GET or POST, found %s", found(v, s)), hint)
	return "GET"
}

// requestPath reads the path of a request.
func (d *decoder) requestPath(v value) Template {
	t, ok := d.template(v, "a path such as /", scopeScenario)
	if !ok {
		return "/"
	}
	s := string(t)
	switch {
	case isURL(s):
		d.errorOn(v.node, kindBadValue, "path: expected a path such as /, found a whole URL", "write the part after the host; each copy has its own host and port (url: names one target for all arms)")
	case s == "" || s[0] != '/' && !strings.HasPrefix(s, "${"):
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("path: expected a path that starts with /, found %s", quote(s)), "write /"+s)
	case strings.ContainsAny(s, " \t\r\n\x00") && !strings.Contains(s, "${"):
		d.errorOn(v.node, kindBadValue, "path: a path has no spaces", "write %20")
	case strings.Contains(s, "#"):
		d.errorOn(v.node, kindBadValue, "path: the part after # is never sent", "remove it, or write %23")
	}
	return t
}

// url reads a whole URL.
func (d *decoder) url(v value, schemes ...string) Template {
	t, ok := d.template(v, "a URL", scopeScenario)
	if !ok {
		return ""
	}
	s := string(t)
	for _, p := range append(schemes, "${") {
		if strings.HasPrefix(s, p) {
			return t
		}
	}
	d.errorOn(v.node, kindBadValue, fmt.Sprintf("url: expected a URL that starts with %s, found %s", strings.Join(schemes, " or "), quote(s)), "")
	return t
}

// body reads a body: text, or a file that holds it.
func (d *decoder) body(v value) (Template, string) {
	if v.kind != mapKind {
		hint := ""
		if v.isNumber() || v.tag == tagBool || v.kind == seqKind {
			hint = "quote it"
		}
		if v.kind == scalarKind && v.tag == tagStr {
			t, _ := d.template(v, "text, or { file: PATH }", scopeScenario)
			return t, ""
		}
		d.typeError(v, "text, or { file: PATH }", hint)
		return "", ""
	}
	if v.node.get("file") == nil {
		d.errorOn(v.node, kindWrongType, "body: expected text, or { file: PATH }, found a mapping", `put JSON in single quotes: body: '{"key": 13}'`)
		return "", ""
	}
	m, ok := d.object(v, bodyObject)
	if !ok {
		return "", ""
	}
	f, _ := m.get("file")
	return "", d.file(f, "a file")
}

func (d *decoder) httpVersion(v value) string {
	want := `1.1 or 2`
	s, _, ok := d.scalar(v, want)
	if !ok {
		return ""
	}
	switch s {
	case "1.1", "2":
		return s
	case "2.0", "h2", "http2", "HTTP/2":
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("version: expected %s, found %s", want, found(v, s)), "write 2")
	default:
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("version: expected %s, found %s", want, found(v, s)), "")
	}
	return ""
}

func (d *decoder) tls(v value) *TLS {
	m, ok := d.object(v, tlsObject)
	if !ok {
		return nil
	}
	t := &TLS{}
	m.on("ca", func(v value) { t.CA = d.file(v, "a PEM file") })
	m.on("insecure", func(v value) { t.Insecure, _ = d.boolean(v) })
	m.on("server_name", func(v value) { t.ServerName, _ = d.str(v, "a host name") })
	return t
}

func (d *decoder) sign(v value) *Sign {
	m, ok := d.object(v, signObject)
	if !ok {
		return nil
	}
	s := &Sign{}
	for _, key := range []string{"header", "hmac", "key"} {
		m.require(key, "write sign: { header: x-signature, hmac: sha256, key: \"${env.KEY}\" }")
	}
	m.on("header", func(v value) {
		s.Header, _ = d.str(v, "the name of a header")
		if s.Header != "" && !isToken(s.Header) {
			d.errorOn(v.node, kindName, fmt.Sprintf("header: %s is not a name of a header", quote(s.Header)), "")
		}
	})
	m.on("hmac", func(v value) { s.HMAC, _ = d.choice(v, "sha1", "sha256", "sha512") })
	m.on("key", func(v value) { s.Key, _ = d.template(v, "text", scopeScenario) })
	m.on("prefix", func(v value) { s.Prefix, _ = d.str(v, "text") })
	return s
}

func (d *decoder) vars(v value) map[string]Template {
	var out map[string]Template
	d.names(v, "a mapping of names to values", "write vars: { name: value }", func(name string, key *node, v value) {
		if !d.name(key, "variable", false) {
			return
		}
		if t, ok := d.plainTemplate(v, "a value", scopeScenario); ok {
			if out == nil {
				out = map[string]Template{}
			}
			out[name] = t
		}
	})
	return out
}

func (d *decoder) requests(v value) []WeightedRequest {
	var out []WeightedRequest
	d.list(v, "a list of requests", "write requests: [{ path: /a, weight: 3 }, { path: /b }]", func(item value) {
		r := WeightedRequest{Method: "GET", Path: "/", Weight: 1}
		m, ok := d.object(value{item.node, "request"}, requestObject)
		if !ok || !m.require("path", "") {
			return
		}
		m.on("method", func(v value) { r.Method = d.method(v) })
		m.on("path", func(v value) { r.Path = d.requestPath(v) })
		m.on("headers", func(v value) { r.Headers = d.headers(v) })
		m.on("body", func(v value) { r.Body, _ = d.template(v, "text", scopeScenario) })
		m.on("weight", func(v value) { d.count(v, 1, 1_000_000, &r.Weight) })
		out = append(out, r)
	})
	return out
}

// pacer decodes a rate that varies.
func (d *decoder) pacer(v value) *Pacer {
	m, ok := d.object(v, pacerObject)
	if !ok || !m.require("kind", "write pacer: { kind: ramp, from: 100/s, to: 1000/s }") {
		return nil
	}
	p := &Pacer{}
	m.on("kind", func(v value) { p.Kind, _ = d.choice(v, "ramp", "sine") })
	need := map[string][]string{"ramp": {"from", "to"}, "sine": {"mean", "swing", "period"}}
	for _, key := range need[p.Kind] {
		if !d.dry {
			m.require(key, "")
		}
	}
	for kind, keys := range need {
		for _, key := range keys {
			if k := m.keyNode(key); k != nil && p.Kind != "" && kind != p.Kind {
				d.errorOn(k, kindConflict, fmt.Sprintf("pacer: %q goes with kind: %s", key, kind), "")
			}
		}
	}
	m.on("from", func(v value) { p.From, _ = d.rate(v) })
	m.on("to", func(v value) { p.To, _ = d.rate(v) })
	m.on("mean", func(v value) { p.Mean, _ = d.rate(v) })
	m.on("swing", func(v value) {
		p.Swing, _ = d.rate(v)
		if p.Mean > 0 && p.Swing >= p.Mean {
			d.errorOn(v.node, kindBadValue, "swing: expected less than the mean, or the rate falls to nothing", "")
		}
	})
	m.on("period", func(v value) { d.span(v, time.Millisecond, &p.Period) })
	return p
}

// ws decodes a websocket scenario.
func (d *decoder) ws(v value) *WS {
	w := &WS{Path: "/", Size: 20, Connections: defaultConnections, Pipeline: 1, Timeout: 5 * time.Second}
	m, ok := d.object(v, wsObject)
	if !ok {
		return w
	}
	m.one("url", "path")
	m.on("path", func(v value) { w.Path = d.requestPath(v) })
	m.on("url", func(v value) { w.URL = d.url(v, "ws://", "wss://") })
	m.on("headers", func(v value) { w.Headers = d.headers(v) })
	m.on("message", func(v value) {
		w.Message, _ = d.template(v, "text", scopeScenario)
		w.Size = len(w.Message)
	})
	m.on("size", func(v value) {
		if n, ok := d.size(v, 0, math.MaxInt32); ok {
			w.Size = int(n)
		}
	})
	m.one("size", "message")
	m.on("reply", func(v value) { w.Reply, _ = d.template(v, "text", scopeScenario) })
	m.on("binary", func(v value) { w.Binary, _ = d.boolean(v) })
	m.on("connections", func(v value) { d.count(v, 1, maxConnections, &w.Connections) })
	m.on("pipeline", func(v value) { d.count(v, 1, 4096, &w.Pipeline) })
	m.on("deflate", func(v value) { w.Deflate, _ = d.boolean(v) })
	m.on("timeout", func(v value) { d.span(v, time.Millisecond, &w.Timeout) })
	m.on("tls", func(v value) { w.TLS = d.tls(v) })
	return w
}
