package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// Bounds on reading a server's counter.
const (
	counterTimeout = 5 * time.Second // of one reading
	maxCounterBody = 4 << 20
	counterTries   = 200 // until it has come to rest
	counterPause   = 5 * time.Millisecond
)

// serverCount is the server's own count of what it answered, around one
// window. A tool's count leaves out what was in flight when it ended, and
// some tools count what they never got; a server's does neither.
//
// Many servers count the question for their count as well. How much a reading
// adds is seen from readings with nothing in between, and taken off.
type serverCount struct {
	url    string
	what   *extractor // nil: the number is all that is there
	client http.Client

	own    int64 // what each reading adds: 0 or 1
	last   int64 // the last reading
	reads  int64 // since start
	before int64 // at start
	begin  countMark
	end    countMark
}

// countMark is a reading in the middle of a load.
type countMark struct {
	n  int64
	at time.Time
}

// newCount prepares the count for one target; nil where the scenario has no
// counter.
func (d *execDriver) newCount(t Target) (*serverCount, error) {
	if d.x.Counter == nil {
		return nil, nil
	}
	url, err := d.x.Counter.HTTP.Expand(t.Vars, d.o.Env)
	if err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	if !strings.Contains(url, "://") {
		url = t.Vars["url"] + "/" + strings.TrimPrefix(url, "/")
	}
	return &serverCount{
		url: url, what: d.counter,
		client: http.Client{Timeout: counterTimeout, Transport: &http.Transport{DisableKeepAlives: true}}, // no proxy
	}, nil
}

// counterExtractor says how the count is found in the answer; nil where it is
// all that is there.
func counterExtractor(c *spec.Counter) (*extractor, error) {
	if c == nil || c.Regex == "" && c.JSON == "" {
		return nil, nil
	}
	x, err := newExtractor(spec.Extract{Metric: "counter", Regex: c.Regex, JSON: c.JSON})
	return &x, err
}

// start takes the count before the load.
func (c *serverCount) start(ctx context.Context) error {
	n, own, err := c.settle(ctx, func(rise int64) bool { return rise == 0 || rise == 1 })
	c.before, c.own, c.reads = n, own, 0
	return err
}

// mark takes the count in the middle of the load.
func (c *serverCount) mark(ctx context.Context) (countMark, error) {
	asked := time.Now()
	err := c.read(ctx)
	return countMark{c.answered(), asked.Add(time.Since(asked) / 2)}, err
}

// stop takes the count after the load, once the server is done with what was
// in flight, and returns how many requests it has answered since start.
func (c *serverCount) stop(ctx context.Context) (int64, error) {
	if _, _, err := c.settle(ctx, func(rise int64) bool { return rise == c.own }); err != nil {
		return 0, err
	}
	n := c.answered()
	if n < 0 {
		return 0, fmt.Errorf("counter %s: it fell from %d to %d", c.url, c.before, c.last)
	}
	return n, nil
}

// answered is the count since start, without the readings.
func (c *serverCount) answered() int64 { return c.last - c.before - c.own*c.reads }

// settle reads until two rises in a row are the same and are at rest.
func (c *serverCount) settle(ctx context.Context, resting func(rise int64) bool) (n, rise int64, err error) {
	rise = -1
	for i := range counterTries {
		last := c.last
		if err := c.read(ctx); err != nil {
			return 0, 0, err
		}
		now := c.last - last
		if i > 1 && now == rise && resting(now) {
			return c.last, now, nil
		}
		rise = now
		if i > 0 && !resting(now) {
			time.Sleep(counterPause)
		}
	}
	return 0, 0, fmt.Errorf("counter %s: it does not come to rest without load: the last reading is %d, %d more than the one before", c.url, c.last, rise)
}

// read reads the counter once.
func (c *serverCount) read(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return fmt.Errorf("counter: %w", err)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("counter: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxCounterBody))
	if err != nil {
		return fmt.Errorf("counter %s: %w", c.url, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("counter %s: status %s, expected 200", c.url, res.Status)
	}
	n, err := c.find(body)
	if err != nil {
		return fmt.Errorf("counter %s: %w", c.url, err)
	}
	c.last = n
	c.reads++
	return nil
}

// find takes the count out of an answer.
func (c *serverCount) find(body []byte) (int64, error) {
	var v float64
	var err error
	if c.what != nil {
		v, err = c.what.find(body)
	} else {
		var unit string
		if v, unit, err = splitQuantity(string(body)); err == nil && unit != "" {
			err = fmt.Errorf("%.40q is more than a number: say where it stands by regex or json", body)
		}
	}
	if err == nil && (v < 0 || v != math.Trunc(v) || v > 1<<53) {
		err = fmt.Errorf("found %v, expected a count", v)
	}
	return int64(v), err
}

// follow takes the count at both ends of an endless tool's window, and tells
// when it has.
func (c *serverCount) follow(ctx context.Context, w *watcher) <-chan error {
	followed := make(chan error, 1)
	if c == nil {
		followed <- nil
		return followed
	}
	go func() {
		followed <- func() (err error) {
			for _, end := range []struct {
				came <-chan struct{}
				mark *countMark
			}{{w.begun, &c.begin}, {w.enough, &c.end}} {
				select {
				case <-end.came:
				case <-ctx.Done():
					return errNoMark
				}
				if *end.mark, err = c.mark(ctx); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	return followed
}

// errNoMark means that an endless tool ended before its window did.
var errNoMark = errors.New("the window did not come to its end")

// counted replaces the tool's count by the server's. What the tool says of
// responses that were not valid still holds, and so does that it got no valid
// one at all.
func (r *reading) counted(c *serverCount, n int64, d *execDriver, wall time.Duration) {
	bad := r.reached()
	claimed, none := r.ok+bad, d.preset != nil && r.ok == 0
	if claimed > n && !d.endless {
		r.broke(Protocol, "the tool counts %d responses, the server answered %d requests", claimed, n)
	}
	within := n
	if d.endless {
		within = max(0, min(n, c.end.n-c.begin.n))
		r.elapsed = c.end.at.Sub(c.begin.at)
	}
	if r.elapsed == 0 {
		r.elapsed = wall
	}
	r.inFlight, r.outside = 0, n-within
	r.ok = max(0, within-bad)
	if none {
		r.ok = 0
	}
	r.rates()
	r.noneValid()
}

// reached is how many of the failed requests may have reached the server.
func (r *reading) reached() (n int64) {
	for _, e := range r.tally.counts {
		switch e.Class {
		case ConnectRefused, ConnectTimeout, AddrUnavailable, FDLimit, TLSError:
		default:
			n += e.Count
		}
	}
	return n
}
