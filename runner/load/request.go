package load

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// variant is one request of a scenario, rendered for one target, and what is
// known of its response.
type variant struct {
	wire   []byte // the request as it is sent
	status int    // the status expected; 0: any from 200 to 399
	asked  asked  // the parser's part
	expect *spec.Expect

	byHeader bool   // expect looks at header fields
	passed   []byte // the last body that satisfied expect, with its status and head
	passCode int
	passHead []byte
}

// definition is one request as the scenario defines it, before rendering.
type definition struct {
	method  string
	path    spec.Template
	headers []spec.Header
	body    spec.Template
	file    []byte // the body, where it comes from a file
	weight  int
}

// definitions lists the requests of a scenario.
func definitions(h *spec.HTTP) ([]definition, error) {
	if len(h.Requests) == 0 {
		d := definition{method: h.Method, path: h.Path, headers: h.Headers, body: h.Body, weight: 1}
		if h.BodyFile != "" {
			b, err := os.ReadFile(h.BodyFile)
			if err != nil {
				return nil, fmt.Errorf("body file of the request: %w", err)
			}
			d.file = b
		}
		return []definition{d}, nil
	}
	var ds []definition
	for _, r := range h.Requests {
		headers := append(h.Headers[:len(h.Headers):len(h.Headers)], r.Headers...)
		ds = append(ds, definition{method: r.Method, path: r.Path, headers: headers, body: r.Body, weight: max(1, r.Weight)})
	}
	return ds, nil
}

// renderer turns definitions into bytes.
type renderer struct {
	env   spec.Env
	host  string // Host field, unless the scenario sets one
	base  string // path that all paths start with
	close bool   // ask for the connection to be closed
	sign  *spec.Sign
}

// render writes one request. The driver adds no field that HTTP/1.1 does not
// demand: Host, Content-Length where there is a body or the method is one
// that should have one, and Connection: close without keep-alive.
func (r *renderer) render(d definition, vars spec.Vars) ([]byte, error) {
	q, err := r.expand(d, vars)
	if err != nil {
		return nil, err
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, "%s %s HTTP/1.1\r\n", q.method, q.path)
	if !q.sets("host") {
		fmt.Fprintf(&w, "Host: %s\r\n", r.host)
	}
	if needsLength(q.method, q.body) && !q.sets("content-length") && !q.sets("transfer-encoding") {
		w.WriteString("Content-Length: " + strconv.Itoa(len(q.body)) + "\r\n")
	}
	if r.close && !q.sets("connection") {
		w.WriteString("Connection: close\r\n")
	}
	for _, f := range q.fields {
		fmt.Fprintf(&w, "%s: %s\r\n", f.name, f.value)
	}
	w.WriteString("\r\n")
	w.Write(q.body)
	return w.Bytes(), nil
}

// expanded is a request with every reference resolved, before the driver's
// own fields.
type expanded struct {
	method, path string
	fields       []fieldLine // in the scenario's order, the signature last
	body         []byte
}

type fieldLine struct{ name, value string }

func (q *expanded) sets(name string) bool {
	return slices.ContainsFunc(q.fields, func(f fieldLine) bool { return strings.EqualFold(f.name, name) })
}

// expand resolves a definition for one target.
func (r *renderer) expand(d definition, vars spec.Vars) (*expanded, error) {
	q := &expanded{method: d.method, body: d.file}
	if q.method == "" {
		q.method = "GET"
	}
	path, err := d.path.Expand(vars, r.env)
	if err != nil {
		return nil, fmt.Errorf("path of the request: %w", err)
	}
	if path == "/" && r.base != "" {
		path = ""
	}
	if q.path = r.base + path; q.path == "" {
		q.path = "/"
	}
	if !validName([]byte(q.method)) || strings.Contains(q.method, " ") {
		return nil, fmt.Errorf("method %q: expected a word such as GET", q.method)
	}
	if i := strings.IndexFunc(q.path, func(c rune) bool { return c <= ' ' || c == 0x7f }); i >= 0 {
		return nil, fmt.Errorf("path %q: it holds %q, which must be written as %%%02X", q.path, q.path[i], q.path[i])
	}
	if q.body == nil {
		text, err := d.body.Expand(vars, r.env)
		if err != nil {
			return nil, fmt.Errorf("body of the request: %w", err)
		}
		q.body = []byte(text)
	}
	q.fields, err = r.expandFields(d.headers, q.body, vars)
	return q, err
}

// expandFields resolves the scenario's header fields, and signs the body.
func (r *renderer) expandFields(headers []spec.Header, body []byte, vars spec.Vars) ([]fieldLine, error) {
	var out []fieldLine
	for _, h := range headers {
		value, err := h.Value.Expand(vars, r.env)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", h.Name, err)
		}
		if !validName([]byte(h.Name)) || strings.Contains(h.Name, " ") {
			return nil, fmt.Errorf("header name %q: expected letters, digits and dashes", h.Name)
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("header %s: its value holds a line end or a NUL", h.Name)
		}
		out = append(out, fieldLine{h.Name, value})
	}
	if r.sign == nil {
		return out, nil
	}
	value, err := signature(r.sign, body, vars, r.env)
	if err != nil {
		return nil, err
	}
	return append(out, fieldLine{r.sign.Header, value}), nil
}

// needsLength reports whether a request says how long its body is
// (RFC 9110, section 8.6).
func needsLength(method string, body []byte) bool {
	return len(body) > 0 || method == "POST" || method == "PUT" || method == "PATCH"
}

// signature computes the header that signs a body.
func signature(s *spec.Sign, body []byte, vars spec.Vars, env spec.Env) (string, error) {
	key, err := s.Key.Expand(vars, env)
	if err != nil {
		return "", fmt.Errorf("key of sign: %w", err)
	}
	sums := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}
	sum, ok := sums[s.HMAC]
	if !ok {
		return "", fmt.Errorf("hmac %q of sign: expected sha1, sha256 or sha512", s.HMAC)
	}
	mac := hmac.New(sum, []byte(key))
	mac.Write(body)
	return s.Prefix + hex.EncodeToString(mac.Sum(nil)), nil
}

// rotationOf spreads requests by their weights as evenly as they go (smooth
// weighted round robin, as nginx does it) and returns one round of indexes.
func rotationOf(weights []int) []int32 {
	total := 0
	for _, w := range weights {
		total += w
	}
	current := make([]int, len(weights))
	round := make([]int32, 0, total)
	for range total {
		best := 0
		for i, w := range weights {
			current[i] += w
			if current[i] > current[best] {
				best = i
			}
		}
		current[best] -= total
		round = append(round, int32(best))
	}
	return round
}
