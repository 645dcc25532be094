package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// defaultTimeout bounds a request whose scenario does not say.
const defaultTimeout = 10 * time.Second

// Times of the loops, in nanoseconds.
const (
	firstBackoff = int64(time.Millisecond) // after a failure; doubled for each in a row
	lastBackoff  = int64(time.Second)
	drainLimit   = int64(2 * time.Second) // what a response may take that nobody counts any more
)

// httpDriver is the closed loop over HTTP/1.1: each connection sends its
// next request when its last one has been answered.
type httpDriver struct {
	scenario    spec.Scenario
	http        spec.HTTP
	options     Options
	definitions []definition
	custom      func(Target) (*destination, error) // prepares targets instead of prepare; nil: HTTP requests
}

// pending is a request that has been sent and not answered.
type pending struct {
	at      int64 // when its first byte was sent
	variant int32
}

// newHTTP returns the closed-loop driver.
func newHTTP(s spec.Scenario, o Options) (Driver, error) {
	d := &httpDriver{scenario: s, http: *s.HTTP, options: o}
	h := &d.http
	if h.Version != "" && h.Version != "1.1" {
		return nil, fmt.Errorf("scenario %s: the closed loop speaks HTTP/1.1, not %q; give it a rate to use another version", s.ID(), h.Version)
	}
	h.Connections = max(1, h.Connections)
	h.Pipeline = max(1, h.Pipeline)
	if h.Pipeline > 1 && !h.KeepAlive {
		return nil, fmt.Errorf("scenario %s: a pipeline of %d needs keepalive", s.ID(), h.Pipeline)
	}
	if h.Timeout <= 0 {
		h.Timeout = defaultTimeout
	}
	ds, err := definitions(h)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.ID(), err)
	}
	d.definitions = ds
	return d, nil
}

// Interleaves is true: all targets share one loop.
func (d *httpDriver) Interleaves() bool { return true }

// destination is a target with everything rendered for it.
type destination struct {
	name     string
	endpoint endpoint
	variants []*variant
	round    []int32  // indexes into variants, in the order in which they are sent
	reply    *wsReply // what replies over a websocket are held to; nil: HTTP
}

// prepare renders the requests for a target.
func (d *httpDriver) prepare(t Target) (*destination, error) {
	if d.custom != nil {
		return d.custom(t)
	}
	e, err := newEndpoint(&d.http, t, d.options.Env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	r := renderer{env: d.options.Env, host: e.host, base: e.base, close: !d.http.KeepAlive, sign: d.http.Sign}
	dest := &destination{name: t.Name, endpoint: e}
	rows := []row{nil}
	if d.http.Data != "" {
		if rows, err = readData(d.http.Data); err != nil {
			return nil, err
		}
	}
	if n := len(rows) * len(d.definitions); n > maxVariants {
		return nil, fmt.Errorf("the rows of %s make %d requests: expected at most %d, cut the file", d.http.Data, n, maxVariants)
	}
	var weights []int
	for _, def := range d.definitions {
		weights = append(weights, def.weight)
	}
	round := rotationOf(weights)
	for k, data := range rows {
		vars, err := values(&d.http, t.Vars, data, d.options.Env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		for _, i := range round {
			dest.round = append(dest.round, int32(k*len(d.definitions))+i)
		}
		for _, def := range d.definitions {
			wire, err := r.render(def, vars)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			v := &variant{wire: wire}
			v.asked.toHead = def.method == "HEAD"
			v.hold(t.Expected.nth(len(dest.variants)), d.scenario.Expect)
			dest.variants = append(dest.variants, v)
		}
	}
	return dest, nil
}

// prepareAll renders the requests for all targets, and reports whether none
// of them speaks TLS.
func (d *httpDriver) prepareAll(targets []Target) (dests []*destination, plain bool, err error) {
	plain = true
	for _, t := range targets {
		dest, err := d.prepare(t)
		if err != nil {
			return nil, false, err
		}
		dests = append(dests, dest)
		plain = plain && dest.endpoint.tls == nil
	}
	return dests, plain, nil
}

// nth is the answer to the i-th request of a rotation; nil where unknown.
func (r *Response) nth(i int) *Response {
	switch {
	case r == nil || i == 0:
		return r
	case i <= len(r.More):
		return r.More[i-1]
	default:
		return nil
	}
}

// Check sends each request of the scenario once, on a connection of its own;
// of the many that a data file makes, the first hundred.
func (d *httpDriver) Check(ctx context.Context, t Target) (*Response, error) {
	t.Expected = nil
	dest, err := d.prepare(t)
	if err != nil {
		return nil, err
	}
	var first *Response
	for _, v := range dest.variants[:min(len(dest.variants), maxChecked)] {
		r, err := d.ask(ctx, dest, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		if first == nil {
			first = r
		} else {
			first.More = append(first.More, r)
		}
	}
	return first, nil
}

// ask sends one request and reads its response whole, with the parser that
// serves the load.
func (d *httpDriver) ask(ctx context.Context, dest *destination, v *variant) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, d.http.Timeout)
	defer cancel()
	started := time.Now()
	c, err := dest.endpoint.dial(ctx)
	if err != nil {
		return nil, &failure{classifyConnect(err), fmt.Errorf("connect: %w", err)}
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write(v.wire); err != nil {
		return nil, &failure{classify(err), fmt.Errorf("send the request: %w", err)}
	}
	whole := asked{toHead: v.asked.toHead, keep: true}
	var p parser
	if err := readWhole(c, &p, &whole); err != nil {
		if ctx.Err() != nil {
			return nil, &failure{Timeout, fmt.Errorf("no response within %v: %w", d.http.Timeout, ctx.Err())}
		}
		return nil, err
	}
	return &Response{
		Status:  p.head.status,
		Header:  headerMap(p.raw),
		Body:    append([]byte(nil), p.body...),
		Elapsed: time.Since(started),
	}, nil
}

// readWhole reads one response from r.
func readWhole(r io.Reader, p *parser, a *asked) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			used, done, bad := p.feed(buf[:n], a)
			switch {
			case bad != nil:
				return &failure{Protocol, bad}
			case done && used < n:
				return failf(Protocol, "%d bytes after the end of the response", n-used)
			case done:
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_, err := p.end(a)
			return err
		case err != nil:
			return &failure{classify(err), fmt.Errorf("read the response: %w", err)}
		}
	}
}
