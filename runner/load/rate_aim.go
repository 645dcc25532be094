package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// aim is a target of the open loop: its requests, and the connections to it.
type aim struct {
	dest      *destination
	url       string
	requests  []aimRequest
	transport *http.Transport

	bytesIn, bytesOut atomic.Int64 // as they pass the socket

	expectPassed []passed // by request: the last answer that satisfied the expression
}

// aimRequest is one request as net/http sends it.
type aimRequest struct {
	head *http.Request // without body; shared, and never changed
	body []byte
}

// passed is an answer that satisfied an expression.
type passed struct {
	status int
	body   []byte
}

// newAim renders the requests for a target, and takes them apart again for
// net/http: so both loops send the same.
func (d *rateDriver) newAim(t Target) (*aim, error) {
	dest, err := d.prepare(t)
	if err != nil {
		return nil, err
	}
	a := &aim{dest: dest, expectPassed: make([]passed, len(dest.variants))}
	scheme := "http"
	if dest.endpoint.tls != nil {
		scheme = "https"
	}
	a.url = scheme + "://" + dest.endpoint.host + "/"
	for _, v := range dest.variants {
		r, err := parseWire(v.wire, scheme, dest.endpoint.host)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		a.requests = append(a.requests, r)
	}
	a.transport = d.newTransport(a)
	return a, nil
}

// parseWire turns a rendered request into one of net/http, with nothing for
// net/http to add.
func parseWire(wire []byte, scheme, host string) (aimRequest, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(wire)))
	if err != nil {
		return aimRequest{}, fmt.Errorf("the request cannot be sent by an open loop: %w", err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return aimRequest{}, fmt.Errorf("the request's body cannot be sent by an open loop: %w", err)
	}
	r.URL.Scheme, r.URL.Host = scheme, host
	r.RequestURI, r.RemoteAddr = "", ""
	r.ContentLength = int64(len(body))
	r.Body, r.GetBody = nil, nil
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = []string{""} // or net/http would name itself
	}
	return aimRequest{head: r, body: body}, nil
}

// make returns a fresh request.
func (q *aimRequest) make(ctx context.Context) *http.Request {
	r := q.head.WithContext(ctx)
	if len(q.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(q.body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(q.body)), nil }
	} else if needsLength(r.Method, nil) {
		r.Body = http.NoBody
	}
	return r
}

func (d *rateDriver) newTransport(a *aim) *http.Transport {
	e := &a.dest.endpoint
	protocols := new(http.Protocols)
	config := e.tls.Clone()
	switch {
	case d.http.Version != "2":
		protocols.SetHTTP1(true)
	case config != nil:
		protocols.SetHTTP2(true)
		config.NextProtos = nil // net/http's own
	default:
		protocols.SetUnencryptedHTTP2(true)
	}
	dialer := &net.Dialer{}
	return &http.Transport{
		Protocols:           protocols,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: d.http.Timeout,
		DisableKeepAlives:   !d.http.KeepAlive,
		DisableCompression:  true, // or it would ask for it
		MaxIdleConnsPerHost: 1 << 20,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, e.network, e.addr)
			if err != nil {
				return nil, err
			}
			return &countedConn{c, a}, nil
		},
	}
}

func (a *aim) close() { a.transport.CloseIdleConnections() }

// countedConn counts the bytes that pass it.
type countedConn struct {
	net.Conn
	a *aim
}

// Read counts what came in.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.a.bytesIn.Add(int64(n))
	return n, err
}

// Write counts what went out.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.a.bytesOut.Add(int64(n))
	return n, err
}

// variant is the index of the request that is sent as the seq-th.
func (a *aim) variant(seq uint64) int {
	return int(a.dest.round[seq%uint64(len(a.dest.round))])
}

// during returns the transport for an attack that ends with ctx. It replaces
// vegeta's request by the one whose turn it is, and so drops what vegeta adds
// to it.
func (a *aim) during(ctx context.Context) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		seq, err := strconv.ParseUint(r.Header.Get("X-Vegeta-Seq"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the number of the request is missing: %w", err)
		}
		own, cancel := context.WithCancel(r.Context())
		stop := context.AfterFunc(ctx, cancel)
		res, err := a.transport.RoundTrip(a.requests[a.variant(seq)].make(own))
		if err != nil {
			stop()
			cancel()
			return nil, err
		}
		res.Body = &endedBody{res.Body, func() { stop(); cancel() }}
		return res, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// endedBody frees what belongs to a request when its body is closed.
type endedBody struct {
	io.ReadCloser
	end func()
}

// Close closes the body.
func (b *endedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// ask sends one request and reads its answer whole.
func (a *aim) ask(ctx context.Context, i int) (*Response, error) {
	start := time.Now()
	res, err := a.transport.RoundTrip(a.requests[i].make(ctx))
	if err != nil {
		return nil, &failure{classOfText(err.Error()), err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, &failure{classOfText(err.Error()), err}
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body, Elapsed: time.Since(start)}, nil
}

// judge holds an answer against the check's, or the scenario's expression.
func (a *aim) judge(seq uint64, status int, body []byte, header http.Header) *failure {
	i := a.variant(seq)
	v := a.dest.variants[i]
	switch {
	case v.expect != nil:
		return a.judgeByExpression(i, status, body, header)
	case !v.asked.compare && !success(status):
		return failf(Status, "status %d %s: expected one from 200 to 399", status, http.StatusText(status))
	case !v.asked.compare:
		return nil
	case status != v.status:
		return failf(Status, "status %d %s: expected %d as in the check", status, http.StatusText(status), v.status)
	case !bytes.Equal(body, v.asked.want):
		return failf(Body, "a body of %d bytes is not the one of %d bytes that the check got", len(body), len(v.asked.want))
	}
	return nil
}

func (a *aim) judgeByExpression(i, status int, body []byte, header http.Header) *failure {
	v, last := a.dest.variants[i], &a.expectPassed[i]
	if !v.byHeader && last.status == status && bytes.Equal(last.body, body) {
		return nil
	}
	ok, err := v.expect.Eval(status, body, header)
	switch {
	case err != nil:
		return failf(Body, "expect %q: %w", v.expect.Source, err)
	case !ok && !success(status):
		return failf(Status, "status %d does not satisfy %q", status, v.expect.Source)
	case !ok:
		return failf(Body, "status %d with body %q does not satisfy %q", status, clip(body), v.expect.Source)
	}
	last.status, last.body = status, append(last.body[:0], body...)
	return nil
}
