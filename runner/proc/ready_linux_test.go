package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// freeAddr is an address on which nothing listens.
func freeAddr(t *testing.T) (addr string, port int) {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port), port
}

func TestReady(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		addr, port := freeAddr(t)
		began := time.Now()
		p := r.start("serve", addr, "300ms")
		probeExec := r.cmd("exit", "0")
		for name, probe := range map[string]Probe{
			"log":  {Log: regexp.MustCompile(`^listening on .*:\d+$`)},
			"tcp":  {TCP: addr},
			"http": {HTTP: "http://" + addr + "/"},
			"exec": {Exec: &probeExec, Port: port},
		} {
			probe.Timeout = 10 * time.Second
			if err := WaitReady(t.Context(), p, probe); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if e := time.Since(began); e < 300*time.Millisecond {
			t.Errorf("ready after %v, but HTTP answers with 503 for 300 ms", e)
		}
		if owns, err := p.OwnsPort(port); !owns || err != nil {
			t.Errorf("OwnsPort: found %v, %v", owns, err)
		}
	})
}

// TestReadyOfOthers waits for servers whose listener is not the first process.
func TestReadyOfOthers(t *testing.T) {
	for _, kind := range [][]string{{"fork", "1"}, {"orphan"}, {"daemon"}, {"daemon-and-stay"}} {
		t.Run(kind[0], func(t *testing.T) {
			eachWay(t, func(t *testing.T, r *rig) {
				addr, port := freeAddr(t)
				p := r.start(append(kind, "serve", addr)...)
				if err := WaitReady(t.Context(), p, Probe{TCP: addr, Timeout: 10 * time.Second}); err != nil {
					t.Fatal(err)
				}
				if owns, err := p.OwnsPort(port); !owns || err != nil {
					t.Errorf("OwnsPort: found %v, %v", owns, err)
				}
			})
		})
	}
}

func TestNeverReady(t *testing.T) {
	r := newRig(t, Options{})
	addr, port := freeAddr(t)
	p := r.start("stubborn")
	says(t, p, "ready")
	failing := r.cmd("exit", "1")
	for name, probe := range map[string]Probe{
		"log":  {Log: regexp.MustCompile("no such line")},
		"tcp":  {TCP: addr},
		"http": {HTTP: "http://" + addr},
		"exec": {Exec: &failing},
	} {
		probe.Timeout = 100 * time.Millisecond
		err := WaitReady(t.Context(), p, probe)
		var not *NotReadyError
		if !errors.As(err, &not) || !strings.Contains(err.Error(), "stubborn was not ready after") || not.Tail != "ready" {
			t.Errorf("%s: found %v", name, err)
		}
	}
	if owns, err := p.OwnsPort(port); owns || err != nil {
		t.Errorf("OwnsPort: found %v, %v", owns, err)
	}
	missing := r.cmd("exit")
	missing.Argv = []string{"/no/such"}
	if err := WaitReady(t.Context(), p, Probe{Exec: &missing, Timeout: time.Hour}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("found %v, expected no waiting for a program to appear", err)
	}
	if err := WaitReady(t.Context(), p, Probe{}); err == nil || !strings.Contains(err.Error(), "no probe was given") {
		t.Errorf("found %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user has had enough"))
	if err := WaitReady(ctx, p, Probe{TCP: addr}); err == nil || !strings.Contains(err.Error(), "had enough") {
		t.Errorf("found %v, expected the cause of the cancellation", err)
	}
}

// TestReadyOnTheWrongPort tells where a server does listen.
func TestReadyOnTheWrongPort(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		right, _ := freeAddr(t)
		wrong, _ := freeAddr(t)
		p := r.start("serve", wrong)
		says(t, p, "listening")
		err := WaitReady(t.Context(), p, Probe{TCP: right, Timeout: 50 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "it listens on "+wrong+";") {
			t.Errorf("found %v", err)
		}
		p = r.start("stubborn")
		says(t, p, "ready")
		err = WaitReady(t.Context(), p, Probe{TCP: right, Timeout: 50 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "it listens on no TCP port") {
			t.Errorf("found %v", err)
		}
	})
}

func TestDeathBeforeReady(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		for _, code := range []string{"0", "3"} {
			addr, _ := freeAddr(t)
			p := r.start("exit", code)
			err := WaitReady(t.Context(), p, Probe{TCP: addr, Timeout: time.Hour})
			var exit *ExitError
			if !errors.As(err, &exit) || !strings.Contains(err.Error(), "exit status "+code) || !strings.Contains(err.Error(), "last words") {
				t.Errorf("found %v", err)
			}
		}
	})
}

func TestStrangerOnThePort(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		for _, addr := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			port := l.Addr().(*net.TCPAddr).Port
			p := r.start("sleep")
			for _, probe := range []Probe{
				{TCP: fmt.Sprintf("127.0.0.1:%d", port)},
				{HTTP: fmt.Sprintf("http://localhost:%d/", port)},
				{Log: regexp.MustCompile("."), Port: port},
			} {
				err = WaitReady(t.Context(), p, probe)
				var s *StrangerError
				if !errors.As(err, &s) || s.PID != os.Getpid() || !strings.Contains(err.Error(), os.Args[0]) {
					t.Errorf("found %v, expected this test named as the stranger", err)
				}
			}
			if owns, err := p.OwnsPort(port); owns || err == nil {
				t.Errorf("OwnsPort: found %v, %v", owns, err)
			}
		}
	})
}

// TestStrangerElsewhere has a stranger with our port number on an address
// that the probe does not reach.
func TestStrangerElsewhere(t *testing.T) {
	r := newRig(t, Options{})
	addr, port := freeAddr(t)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := r.start("serve", addr)
	if err := WaitReady(t.Context(), p, Probe{TCP: addr, Timeout: 10 * time.Second}); err != nil {
		t.Error(err)
	}
}

func TestFreePort(t *testing.T) {
	lo, hi, err := portRange()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		port, err := FreePort()
		if err != nil || port >= lo && port <= hi {
			t.Errorf("found %d, %v; connections use %d to %d", port, err, lo, hi)
		}
	}
}

func TestLogWatch(t *testing.T) {
	file := t.TempDir() + "/log"
	add := func(s string) {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	add("ready on 80\n") // of an earlier start
	l := &logWatch{path: file, offset: 12}
	re := regexp.MustCompile(`^ready on \d+$`)
	for i, step := range []struct {
		add  string
		want bool
	}{
		{"", false}, {"starting\nrea", false}, {"dy on 8", false}, {"080\r\n", true}, {"ready on 1", false}, {"", true},
	} {
		add(step.add)
		if got := l.match(re) == nil; got != step.want {
			t.Errorf("step %d, %q: found %v", i, step.add, got)
		}
	}
}
