package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// verifyInterval is the time between two requests that wait for a header to
// change.
const verifyInterval = 50 * time.Millisecond

// verify makes the scenario's verifications of every copy, once in a run: the
// copies of later blocks hold the same bytes. The first copy in plan order
// that fails one decides the check.
func (e *execution) verify(ctx context.Context, sc spec.Scenario, instances []*instance, c journal.Check) journal.Check {
	if e.verified[sc.ID()] || c.Outcome != journal.CheckOK {
		return c
	}
	for i, v := range sc.Verify {
		errs := e.verifyAll(ctx, fmt.Sprintf("verify %d of %s", i+1, sc.ID()), sc, v, instances)
		var failed *instance
		for k, in := range instances {
			if errs[k] != nil && (failed == nil || in.rank() < failed.rank()) {
				failed = in
				c.Outcome, c.Arm = journal.CheckIncomparable, in.target.Vars["arm"]
				c.Reason = in.name + ": " + strings.TrimPrefix(errs[k].Error(), in.name+": ")
			}
		}
		if failed != nil || ctx.Err() != nil {
			return c
		}
	}
	e.verified[sc.ID()] = true
	return c
}

// verifyAll makes one verification of every copy. Commands run one after the
// other, since they may share what they look at; requests run together, since
// waiting for a header to change takes its time.
func (e *execution) verifyAll(ctx context.Context, name string, sc spec.Scenario, v spec.Verify, instances []*instance) []error {
	errs := make([]error, len(instances))
	if v.Run != nil {
		for i, in := range instances {
			errs[i] = e.step(ctx, name+" on "+in.name, *v.Run, in.target.Vars)
		}
		return errs
	}
	driver, err := load.New(sc.VerifyRequest(v), e.loadOptions())
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	var wg sync.WaitGroup
	for i, in := range instances {
		wg.Go(func() { errs[i] = verifyRequest(ctx, driver, v, in.target) })
	}
	wg.Wait()
	return errs
}

// verifyRequest sends a verification's request to one copy and judges the
// answer.
func verifyRequest(ctx context.Context, d load.Driver, v spec.Verify, t load.Target) error {
	first, err := d.Check(ctx, t)
	if err != nil {
		return err
	}
	for _, r := range append([]*load.Response{first}, first.More...) {
		if err := satisfies(v.Expect, r); err != nil {
			return err
		}
	}
	return headersChange(ctx, d, v, t, first)
}

func satisfies(expect *spec.Expect, r *load.Response) error {
	if expect == nil {
		if r.Status < 200 || r.Status > 399 {
			return fmt.Errorf("it answered %s, expected a status from 200 to 399", describe(r))
		}
		return nil
	}
	ok, err := expect.Eval(r.Status, r.Body, r.Header)
	switch {
	case err != nil:
		return fmt.Errorf("it answered %s, which cannot be verified by %s: %w", describe(r), expect.Source, err)
	case !ok:
		return fmt.Errorf("it answered %s, which is not what is verified: %s", describe(r), expect.Source)
	}
	return nil
}

// headersChange sends the request again until the named headers have other
// values than in the first answer.
func headersChange(ctx context.Context, d load.Driver, v spec.Verify, t load.Target, first *load.Response) error {
	left, over := v.Changes, time.After(v.Timeout)
	for {
		var same []string
		for _, name := range left {
			if http.Header(first.Header).Get(name) == "" {
				return fmt.Errorf("the answer has no header %s, which should change from time to time", name)
			}
			same = append(same, name)
		}
		if len(same) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return fmt.Errorf("the header %s did not change within %v: it stayed %q", strings.Join(left, " and "), v.Timeout, http.Header(first.Header).Get(left[0]))
		case <-time.After(verifyInterval):
		}
		r, err := d.Check(ctx, t)
		if err != nil {
			return err
		}
		left = unchanged(same, first, r)
	}
}

// unchanged are the headers that two answers have the same value of.
func unchanged(names []string, a, b *load.Response) []string {
	var same []string
	for _, name := range names {
		if http.Header(a.Header).Get(name) == http.Header(b.Header).Get(name) {
			same = append(same, name)
		}
	}
	return same
}

// prime loads the copies by fewer connections, once in a block for all points
// of a scenario's matrix. What comes of it is not looked at: like a warm-up,
// it is no measurement.
func (w *window) prime(ctx context.Context, targets []load.Target, order func(int, []int)) error {
	p := w.sc.Prime
	// Targets that are loaded one by one are primed so, too.
	key := w.sc.Name + " " + targets[0].Name
	if p == nil || w.primed[key] {
		return nil
	}
	w.primed[key] = true
	sc := w.sc
	switch {
	case sc.HTTP != nil:
		h := *sc.HTTP
		h.Connections, h.Rate, h.Pacer = p.Connections, 0, nil
		sc.HTTP = &h
	case sc.WS != nil:
		ws := *sc.WS
		ws.Connections = p.Connections
		sc.WS = &ws
	}
	driver, err := load.New(sc, w.loadOptions())
	if err != nil {
		return err
	}
	conns, err := driver.Open(ctx, targets)
	if err != nil {
		return err
	}
	_, err = conns.Run(ctx, load.Schedule{Mode: spec.Windows, Window: p.Time, Order: order})
	return errors.Join(err, conns.Close())
}
