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
	method := d.method
	if method == "" {
		method = "GET"
	}
	path, err := d.path.Expand(vars, r.env)
	if err != nil {
		return nil, fmt.Errorf("path of the request: %w", err)
	}
	if path == "" || path == "/" && r.base != "" {
		path = ""
	}
	if path = r.base + path; path == "" {
		path = "/"
	}
	if !validName([]byte(method)) || strings.Contains(method, " ") {
		return nil, fmt.Errorf("method %q: expected a word such as GET", method)
	}
	if i := strings.IndexFunc(path, func(c rune) bool { return c <= ' ' || c == 0x7f }); i >= 0 {
		return nil, fmt.Errorf("path %q: it holds %q, which must be written as %%%02X", path, path[i], path[i])
	}
	body := d.file
	if body == nil {
		text, err := d.body.Expand(vars, r.env)
		if err != nil {
			return nil, fmt.Errorf("body of the request: %w", err)
		}
		body = []byte(text)
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, "%s %s HTTP/1.1\r\n", method, path)
	if err := r.fields(&w, d.headers, vars, method, body); err != nil {
		return nil, err
	}
	w.WriteString("\r\n")
	w.Write(body)
	return w.Bytes(), nil
}

// fields writes the header fields: the driver's own first, unless the
// scenario sets them.
func (r *renderer) fields(w *bytes.Buffer, headers []spec.Header, vars spec.Vars, method string, body []byte) error {
	set := map[string]bool{}
	var own bytes.Buffer
	for _, h := range headers {
		value, err := h.Value.Expand(vars, r.env)
		if err != nil {
			return fmt.Errorf("header %s: %w", h.Name, err)
		}
		if !validName([]byte(h.Name)) || strings.Contains(h.Name, " ") {
			return fmt.Errorf("header name %q: expected letters, digits and dashes", h.Name)
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("header %s: its value holds a line end or a NUL", h.Name)
		}
		set[strings.ToLower(h.Name)] = true
		fmt.Fprintf(&own, "%s: %s\r\n", h.Name, value)
	}
	if !set["host"] {
		fmt.Fprintf(w, "Host: %s\r\n", r.host)
	}
	if needsLength(method, body) && !set["content-length"] && !set["transfer-encoding"] {
		w.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	if r.close && !set["connection"] {
		w.WriteString("Connection: close\r\n")
	}
	w.Write(own.Bytes())
	if r.sign != nil {
		value, err := signature(r.sign, body, vars, r.env)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s\r\n", r.sign.Header, value)
	}
	return nil
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
