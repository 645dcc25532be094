//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// tallied is a server that counts what it answers.
type tallied struct {
	addr             string
	requests, echoes atomic.Int64
	asked            atomic.Int64 // for the count itself
}

func newTallied(ctx context.Context) (*tallied, error) {
	t := &tallied{}
	up := websocket.Upgrader{}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		t.requests.Add(1)
		_, _ = io.WriteString(w, "Hello, World!")
	})
	mux.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) {
		t.asked.Add(1)
		_, _ = fmt.Fprint(w, t.requests.Load())
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		for {
			kind, b, err := c.ReadMessage()
			if err != nil {
				return
			}
			t.echoes.Add(1)
			if c.WriteMessage(kind, b) != nil {
				return
			}
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t.addr = l.Addr().String()
	s := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }()
	return t, nil
}

// counted is one driver whose count is held against the server's.
type counted struct {
	name     string
	scenario spec.Scenario
	window   time.Duration
	target   int64 // requests
	served   func(t *tallied) int64
}

// count runs every driver until it has made its requests, and compares its
// counts with the server's own. A difference is an error.
func count(ctx context.Context, c config) error {
	all := []counted{
		{"http", spec.Scenario{HTTP: &spec.HTTP{Method: "GET", Path: "/", Connections: 64, Pipeline: 4, KeepAlive: true}}, time.Second, c.requests, requestsOf},
		{"ws", spec.Scenario{WS: &spec.WS{Path: "/echo", Size: wsSize, Connections: 64, Pipeline: 8}}, time.Second, c.requests, func(t *tallied) int64 { return t.echoes.Load() }},
		{"rate", spec.Scenario{HTTP: &spec.HTTP{Method: "GET", Path: "/", Rate: c.rate, Connections: 64, KeepAlive: true, Timeout: 10 * time.Second}}, 5 * time.Second, c.requests, requestsOf},
		{"exec", spec.Scenario{Exec: &spec.Exec{
			Command: spec.Command{Shell: "wrk -t1 -c64 -d${window} ${url}/"}, Preset: "wrk", Counter: &spec.Counter{HTTP: "/count"}, Timeout: time.Minute,
		}}, 5 * time.Second, c.requests, requestsOf},
	}
	for _, one := range all {
		if !slices.Contains(strings.Split(c.drivers, ","), one.name) {
			continue
		}
		if err := one.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

func requestsOf(t *tallied) int64 { return t.requests.Load() }

// run loads a server of its own until there are enough requests.
func (one counted) run(ctx context.Context) error {
	t, err := newTallied(ctx)
	if err != nil {
		return err
	}
	one.scenario.Name = one.name
	d, err := load.New(one.scenario, load.Options{})
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(t.addr)
	if err != nil {
		return err
	}
	target := load.Target{Name: one.name, Addr: t.addr, Env: os.Environ(), Vars: spec.Vars{"url": "http://" + t.addr, "host": host, "port": port}}
	if target.Expected, err = d.Check(ctx, target); err != nil {
		return err
	}
	l, err := d.Open(ctx, []load.Target{target})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	checks := one.served(t)
	var started, ok, failed, open, windows, invalid int64
	began := time.Now()
	for ok < one.target {
		samples, err := l.Run(ctx, load.Schedule{Mode: spec.Windows, Window: one.window, Order: identity})
		if err != nil {
			return err
		}
		r := samples[0]
		if r.Invalid != "" { // a rate that was not reached, say; what was sent is counted all the same
			invalid++
		}
		started, ok, failed, open = started+r.Started, ok+r.OK, failed+r.Failed, open+r.InFlight
		windows++
	}
	served := one.served(t) - checks
	fmt.Printf("%-5s %8d started = %d ok + %d failed + %d in flight; the server answered %d; %d windows, %d of them invalid, %v\n", one.name, started, ok, failed, open, served, windows, invalid, time.Since(began).Round(time.Second))
	if served != started || failed != 0 {
		return fmt.Errorf("the server answered %d, the driver counts %d", served, started)
	}
	return nil
}
