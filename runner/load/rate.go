package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/tandem-bench/tandem/spec"
)

// Bounds on what an open loop may be off by before its window does not count.
const (
	// minRateRatio is the least share of the intended requests that must
	// have been sent in the window.
	minRateRatio = 0.99
	// maxSendLag is the most that one request in a hundred may be sent late.
	// Response times count from the intended start, so lag is in them.
	maxSendLag = 10 * time.Millisecond
	// lateGrace is how long after the window's end requests that were due in
	// it are still sent; later ones are dropped.
	lateGrace = 50 * time.Millisecond
)

// rateDriver is the open loop: it sends at the times that its plan says,
// whatever the server does, with as many connections as that takes. The
// attack is vegeta's; the plan, the requests and the judgement are ours, so
// that the time that a request should have been sent at is known.
//
// Nothing is sent but what the scenario says: no proxy, no redirect followed,
// no header but Host and those that HTTP demands.
type rateDriver struct {
	*httpDriver // renders the requests
}

func newRate(s spec.Scenario, o Options) (Driver, error) {
	d := &httpDriver{scenario: s, http: *s.HTTP, options: o}
	if d.http.Timeout <= 0 {
		d.http.Timeout = defaultTimeout
	}
	if _, err := newPace(&d.http, time.Second); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.ID(), err)
	}
	switch d.http.Version {
	case "", "1.1", "2":
	default:
		return nil, fmt.Errorf("scenario %s: HTTP version %q: expected 1.1 or 2", s.ID(), d.http.Version)
	}
	ds, err := definitions(&d.http)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.ID(), err)
	}
	d.definitions = ds
	return &rateDriver{d}, nil
}

// Interleaves is false: a backlog that one target builds up must not be cut
// short by another one's turn.
func (d *rateDriver) Interleaves() bool { return false }

// Check sends each request of the scenario once.
func (d *rateDriver) Check(ctx context.Context, t Target) (*Response, error) {
	t.Expected = nil
	a, err := d.newAim(t)
	if err != nil {
		return nil, err
	}
	defer a.close()
	var first *Response
	for i := range min(len(a.requests), maxChecked) {
		ctx, cancel := context.WithTimeout(ctx, d.http.Timeout)
		r, err := a.ask(ctx, i)
		cancel()
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

// Open prepares the requests. Connections are opened as the rate needs them,
// and kept from a warm-up to the window after it.
func (d *rateDriver) Open(_ context.Context, targets []Target) (Load, error) {
	l := &rateLoad{d: d}
	for _, t := range targets {
		a, err := d.newAim(t)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.aims = append(l.aims, a)
	}
	return l, nil
}

type rateLoad struct {
	d    *rateDriver
	aims []*aim
}

// Run attacks one target after the other, each for the whole window.
func (l *rateLoad) Run(ctx context.Context, s Schedule) ([]Sample, error) {
	samples := make([]Sample, len(l.aims))
	order := make([]int, len(l.aims))
	s.Order(0, order)
	for _, i := range order {
		sample, err := l.attack(ctx, l.aims[i], s.Window)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.aims[i].dest.name, err)
		}
		samples[i] = sample
	}
	return samples, ctx.Err()
}

// Close closes the connections.
func (l *rateLoad) Close() error {
	for _, a := range l.aims {
		a.close()
	}
	return nil
}

// pacer makes vegeta send by the plan. It waits itself, since it can do that
// more exactly than the sleep that vegeta would do, and notes when the attack
// began, which vegeta does not tell.
type pacer struct {
	pace   pace
	window time.Duration
	due    int64
	wait   waiter
	began  time.Time
}

// Pace returns when the next request has become due.
func (p *pacer) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if p.began.IsZero() {
		p.began = time.Now().Add(-elapsed)
	}
	if hits >= uint64(p.due) || elapsed > p.window+lateGrace {
		return 0, true
	}
	p.wait.until(p.began.Add(p.intended(int64(hits))))
	return 0, false
}

// Rate is the rate planned for a moment, in requests per second.
func (p *pacer) Rate(elapsed time.Duration) float64 {
	const step = 1e-3
	t := elapsed.Seconds()
	return (p.pace.hits(t+step) - p.pace.hits(t)) / step
}

// intended is when the n-th request is due, since the attack began.
func (p *pacer) intended(n int64) time.Duration {
	return time.Duration(math.Round(p.pace.at(float64(n)) * float64(time.Second)))
}

// attack runs one window against one target, with an attacker of its own.
func (l *rateLoad) attack(ctx context.Context, a *aim, window time.Duration) (Sample, error) {
	plan, err := newPace(&l.d.http, window)
	if err != nil {
		return Sample{}, err
	}
	p := &pacer{pace: plan, window: window, due: due(plan, window)}
	client := &http.Client{Transport: a.during(ctx), Timeout: l.d.http.Timeout}
	attacker := vegeta.NewAttacker(
		vegeta.Client(client),
		vegeta.Workers(uint64(max(1, l.d.http.Connections))),
		vegeta.MaxWorkers(math.MaxUint64),
		vegeta.Redirects(vegeta.NoFollow),
	)
	targeter := func(t *vegeta.Target) error {
		t.Method, t.URL = http.MethodGet, a.url // replaced on the way out
		return nil
	}
	stop := context.AfterFunc(ctx, func() { attacker.Stop() })
	defer stop()
	use, in, out, start := processUse(), a.bytesIn.Load(), a.bytesOut.Load(), time.Now()
	t := newRateTally()
	for r := range attacker.Attack(targeter, p, 0, "") {
		t.add(a, p, r, ctx.Err() != nil)
	}
	t.Generator = GeneratorUse{Wall: time.Since(start)}
	after := processUse()
	t.Generator.CPU, t.Generator.Involuntary = after.CPU-use.CPU, after.Involuntary-use.Involuntary
	t.BytesIn, t.BytesOut = a.bytesIn.Load()-in, a.bytesOut.Load()-out
	return t.finish(p), nil
}

// rateTally adds up the results of an attack.
type rateTally struct {
	Sample
	failures tally
	busy     time.Duration // sum of the service times
	seconds  []int64       // valid responses by the second in which they ended
}

func newRateTally() *rateTally {
	t := &rateTally{}
	t.Latency = newHistogram()
	t.Hists = map[string]*hdrhistogram.Histogram{"response_time": newHistogram(), "send_lag": newHistogram()}
	return t
}

// add counts one result. Those that an interruption cut off are in flight.
func (t *rateTally) add(a *aim, p *pacer, r *vegeta.Result, interrupted bool) {
	t.Started++
	began := r.Timestamp.Sub(p.began)
	lag := max(0, began-p.intended(int64(r.Seq)))
	record(t.Hists["send_lag"], lag.Nanoseconds())
	t.busy += r.Latency
	if r.Code == 0 {
		if interrupted {
			t.InFlight++
			return
		}
		t.Failed++
		t.failures.add(classOfText(r.Error), 1, errors.New(r.Error))
		return
	}
	if f := a.judge(r.Seq, int(r.Code), r.Body, r.Headers); f != nil {
		t.Failed++
		t.failures.add(f.class, 1, f)
		return
	}
	t.OK++
	record(t.Latency, r.Latency.Nanoseconds())
	record(t.Hists["response_time"], (lag + r.Latency).Nanoseconds())
	second := int((began + r.Latency) / time.Second)
	for len(t.seconds) <= second {
		t.seconds = append(t.seconds, 0)
	}
	t.seconds[second]++
}

// finish makes the sample. Its time is the window: the rate is that of the
// plan, not that of the moments at which responses happened to come.
func (t *rateTally) finish(p *pacer) Sample {
	t.Elapsed, t.TotalElapsed = p.window, p.window
	t.Turns, t.Cycles = 1, 1
	t.Errors = t.failures.counts
	t.InUse = t.busy.Seconds() / p.window.Seconds()
	whole := min(len(t.seconds), int(p.window/time.Second))
	for _, n := range t.seconds[:whole] {
		t.Interval = append(t.Interval, float64(n))
	}
	ratio := 0.0
	if p.due > 0 {
		ratio = float64(t.Started) / float64(p.due)
	}
	t.Metrics = map[string]float64{
		"target_rps": float64(p.due) / p.window.Seconds(),
		"rate_ratio": ratio,
		"dropped":    float64(p.due - t.Started),
	}
	lag := time.Duration(t.Hists["send_lag"].ValueAtQuantile(99))
	switch {
	case ratio < minRateRatio:
		t.Invalid = fmt.Sprintf("the rate was not reached: %d of %d requests were sent in time", t.Started, p.due)
	case lag > maxSendLag:
		t.Invalid = fmt.Sprintf("the generator was late: one request in a hundred was sent %v or more after its time, at most %v is allowed", lag.Round(10*time.Microsecond), maxSendLag)
	}
	return t.Sample
}

// waiter waits for moments. The zero value is ready.
type waiter struct{ locked bool }

// until waits until a moment as exactly as the system can.
func (w *waiter) until(t time.Time) {
	if time.Until(t) <= 0 {
		return
	}
	if !w.locked {
		// The thread keeps its timer slack; it ends with vegeta's goroutine.
		runtime.LockOSThread()
		w.locked = true
		exactTimers()
	}
	for left := time.Until(t); left > 0; left = time.Until(t) {
		nap(left)
	}
}
