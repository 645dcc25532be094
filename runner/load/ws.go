package load

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/spec"
)

// wsDriver is the closed loop over websockets: each connection sends its next
// message when the reply to its last one has come. The loops are those of the
// HTTP driver; what differs is how a connection opens, and that frames take
// the place of responses.
//
// Every reply is held to opcode, length and content of what was sent, or of
// the scenario's reply, or to its expect expression.
type wsDriver struct {
	scenario spec.Scenario
	ws       *spec.WS
	options  Options
}

func newWS(s spec.Scenario, o Options) (Driver, error) {
	d := &wsDriver{scenario: s, ws: s.WS, options: o}
	if s.WS.Size < 0 {
		return nil, fmt.Errorf("scenario %s: a message of %d bytes", s.ID(), s.WS.Size)
	}
	return d, nil
}

// Interleaves is true: all targets share one loop.
func (d *wsDriver) Interleaves() bool { return true }

// loops is the HTTP driver whose loops do the work, with the targets that it
// prepared by name.
func (d *wsDriver) loops() (*httpDriver, *wsTargets) {
	w := d.ws
	targets := &wsTargets{driver: d, known: map[string]*wsUpgrade{}}
	return &httpDriver{
		scenario: d.scenario,
		http: spec.HTTP{
			TLS: w.TLS, KeepAlive: true,
			Connections: max(1, w.Connections), Pipeline: max(1, w.Pipeline), Timeout: d.timeout(),
		},
		options: d.options,
		custom:  targets.prepare,
	}, targets
}

func (d *wsDriver) timeout() time.Duration {
	if d.ws.Timeout > 0 {
		return d.ws.Timeout
	}
	return defaultTimeout
}

// wsTargets prepares targets, and keeps what all loops know of each.
type wsTargets struct {
	driver *wsDriver
	mu     sync.Mutex
	known  map[string]*wsUpgrade
}

// prepare renders the handshake and the message for a target.
func (w *wsTargets) prepare(t Target) (*destination, error) {
	d := w.driver
	h, err := d.asHTTP(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	e, err := newEndpoint(h, t, d.options.Env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	r := renderer{env: d.options.Env, host: e.host, base: e.base}
	request, err := r.render(definition{method: "GET", path: d.ws.Path, headers: d.ws.Headers}, t.Vars)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	wire, reply, err := d.messages(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[t.Name] == nil {
		w.known[t.Name] = newWSUpgrade(request, d.ws.Deflate)
	}
	e.upgrade = w.known[t.Name]
	return &destination{
		name: t.Name, endpoint: e, reply: reply,
		variants: []*variant{{wire: wire}}, round: []int32{0},
	}, nil
}

// asHTTP is what the websocket's URL says in the words of HTTP.
func (d *wsDriver) asHTTP(t Target) (*spec.HTTP, error) {
	h := &spec.HTTP{TLS: d.ws.TLS}
	if d.ws.URL == "" {
		return h, nil
	}
	text, err := d.ws.URL.Expand(t.Vars, d.options.Env)
	if err != nil {
		return nil, fmt.Errorf("url of the scenario: %w", err)
	}
	rest, ok := strings.CutPrefix(text, "ws")
	if !ok || !strings.HasPrefix(rest, "://") && !strings.HasPrefix(rest, "s://") {
		return nil, fmt.Errorf("url %q of the scenario: expected ws://HOST:PORT or wss://HOST:PORT", text)
	}
	h.URL = spec.Template("http" + strings.ReplaceAll(rest, "${", "$${"))
	return h, nil
}

// messages returns the frame that is sent and what its reply is held to. All
// messages of a target share one mask, chosen at random: masking each anew
// would cost the generator more and tell nothing about a server.
func (d *wsDriver) messages(t Target) (wire []byte, reply *wsReply, err error) {
	payload, err := wsPayload(d.ws, t.Vars, d.options.Env)
	if err != nil {
		return nil, nil, err
	}
	reply = &wsReply{opcode: wsText, payload: payload, deflate: d.ws.Deflate}
	if d.ws.Binary {
		reply.opcode = wsBinary
	}
	opcode, bits := reply.opcode, byte(0)
	if d.ws.Reply != "" {
		text, err := d.ws.Reply.Expand(t.Vars, d.options.Env)
		if err != nil {
			return nil, nil, fmt.Errorf("reply: %w", err)
		}
		reply.payload = []byte(text)
	} else {
		reply.expect = d.scenario.Expect
	}
	if d.ws.Deflate {
		if payload, err = deflated(payload); err != nil {
			return nil, nil, fmt.Errorf("compress the message: %w", err)
		}
		bits = wsDeflated
	}
	var mask [4]byte
	if _, err := rand.Read(mask[:]); err != nil {
		return nil, nil, err
	}
	return wsFrame(opcode, bits, payload, mask), reply, nil
}

// Check opens a websocket, sends one message and returns the reply: as
// Status the handshake's 101, as Header its fields, as Body the message.
func (d *wsDriver) Check(ctx context.Context, t Target) (*Response, error) {
	_, targets := d.loops()
	dest, err := targets.prepare(t)
	if err != nil {
		return nil, err
	}
	r, err := d.ask(ctx, dest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return r, nil
}

func (d *wsDriver) ask(ctx context.Context, dest *destination) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	start := time.Now()
	c, err := dest.endpoint.dial(ctx)
	if err != nil {
		return nil, &failure{classifyConnect(err), fmt.Errorf("connect: %w", err)}
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if _, err := c.Write(dest.variants[0].wire); err != nil {
		return nil, &failure{classify(err), fmt.Errorf("send the message: %w", err)}
	}
	f := &frames{reply: dest.reply, write: func(b []byte) { _, _ = c.Write(b) }}
	buf := make([]byte, 16<<10)
	for {
		n, err := c.Read(buf)
		_, done, bad := f.feed(buf[:n])
		switch {
		case bad != nil:
			return nil, bad
		case done && f.failed != nil:
			return nil, f.failed
		case done:
			body := f.message
			if f.deflated {
				body = f.plain
			}
			return &Response{Status: 101, Header: dest.endpoint.upgrade.head0, Body: body, Elapsed: time.Since(start)}, nil
		case err != nil:
			return nil, &failure{classify(err), fmt.Errorf("read the reply: %w", err)}
		}
	}
}

// Open opens the websockets of all targets.
func (d *wsDriver) Open(ctx context.Context, targets []Target) (Load, error) {
	loops, known := d.loops()
	l, err := loops.Open(ctx, targets)
	if err != nil {
		return nil, err
	}
	w := &wsLoad{Load: l}
	for _, t := range targets {
		w.upgrades = append(w.upgrades, known.known[t.Name])
	}
	return w, nil
}

// wsLoad is a Load of the HTTP driver that speaks of messages.
type wsLoad struct {
	Load
	upgrades []*wsUpgrade
}

// Run plays the schedule. The time from a message to its reply is in Latency
// and, as that of round trips, in Hists; that of the handshakes, from the
// request to its answer, is there, too, for all that the load has made.
func (w *wsLoad) Run(ctx context.Context, s Schedule) ([]Sample, error) {
	samples, err := w.Load.Run(ctx, s)
	for i := range samples {
		sample := &samples[i]
		u := w.upgrades[i]
		u.mu.Lock()
		shakes := hdrhistogram.Import(u.times.Export())
		u.mu.Unlock()
		sample.Hists = map[string]*hdrhistogram.Histogram{"rtt": sample.Latency, "handshake": shakes}
		if sample.Elapsed > 0 {
			sample.Metrics = map[string]float64{"msgs": float64(sample.OK) / sample.Elapsed.Seconds()}
		}
	}
	return samples, err
}
