package proc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// Probe says how it is known that a process is ready. Exactly one of HTTP,
// TCP, Log and Exec is set.
type Probe struct {
	HTTP     string         // URL whose answer has a status of 2xx or 3xx
	TCP      string         // host:port that accepts a connection
	Log      *regexp.Regexp // matches a line of the process's log
	Exec     *Cmd           // ends with status 0; it is run again until it does
	Port     int            // the port that the process is to listen on, for Log and Exec; 0: none
	Timeout  time.Duration  // from the call of WaitReady; 0: 30 s
	Interval time.Duration  // between two tries; 0: 10 ms
	AnyOwner bool           // accept a listener that is no process of ours, such as a container's proxy
}

// NotReadyError says that a process did not get ready in time.
type NotReadyError struct {
	Name  string
	Probe string        // what was tried, "GET http://127.0.0.1:8080/healthz"
	After time.Duration // since the waiting began
	Last  error         // of the last try
	// Listens is where the process does listen; nil where that is not known.
	Listens []string
	Tail    string // the end of the log
}

func (e *NotReadyError) Error() string {
	where := ""
	switch {
	case len(e.Listens) > 0:
		where = "; it listens on " + strings.Join(e.Listens, ", ")
	case e.Listens != nil:
		where = "; it listens on no TCP port"
	}
	return fmt.Sprintf("%s was not ready after %s: %s: %v%s%s", e.Name, roundTime(e.After), e.Probe, e.Last, where, underTail(e.Tail))
}

func (e *NotReadyError) Unwrap() error { return e.Last }

// underTail sets the end of a log under an error message.
func underTail(tail string) string {
	if tail == "" {
		return ""
	}
	return "; the end of its output:\n  " + strings.ReplaceAll(tail, "\n", "\n  ")
}

// StrangerError says that another process listens where ours should.
type StrangerError struct {
	Name    string // of our process
	Port    int
	PID     int    // of the stranger; 0 where it is another user's
	Command string // of the stranger
}

func (e *StrangerError) Error() string {
	who := "a process of another user or another container"
	if e.PID != 0 {
		who = fmt.Sprintf("pid %d (%s)", e.PID, e.Command)
	}
	return fmt.Sprintf("port %d, which %s should listen on, is taken by %s; end that process or use another port", e.Port, e.Name, who)
}

// WaitReady waits until the probe is answered, by the process itself or one
// that it started. It fails at once when the process dies ([*ExitError] in
// the chain) or when a stranger listens on its port ([*StrangerError]), and
// with a [*NotReadyError] when the time is up.
func WaitReady(ctx context.Context, p *Process, probe Probe) error {
	if probe.Timeout <= 0 {
		probe.Timeout = 30 * time.Second
	}
	if probe.Interval <= 0 {
		probe.Interval = 10 * time.Millisecond
	}
	w, err := newWaiter(p, probe)
	if err != nil {
		return fmt.Errorf("readiness of %s: %w", p.name, err)
	}
	began := time.Now()
	limit, cancel := context.WithTimeout(ctx, probe.Timeout)
	defer cancel()
	for {
		last := w.attempt(limit)
		if err := w.died(); err != nil {
			return err
		}
		var stranger *StrangerError
		if last == nil || errors.As(last, &stranger) || errors.Is(last, errHopeless) {
			return last
		}
		select {
		case <-p.done:
			continue // told above
		case <-limit.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("wait for %s: %w", p.name, context.Cause(ctx))
			}
			return &NotReadyError{p.name, w.what, time.Since(began), last, p.listens(), p.Tail(20)}
		case <-time.After(probe.Interval):
		}
	}
}

// waiter makes the tries of one WaitReady.
type waiter struct {
	p     *Process
	probe Probe
	what  string
	try   func(ctx context.Context) error
	at    netip.AddrPort // where the process is to listen; the zero value where that is not known
	log   *logWatch
}

// newWaiter chooses what a try is.
func newWaiter(p *Process, probe Probe) (*waiter, error) {
	w := &waiter{p: p, probe: probe}
	if probe.Port != 0 {
		w.at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(probe.Port))
	}
	var err error
	switch {
	case probe.HTTP != "":
		w.what = "GET " + probe.HTTP
		w.try = w.tryHTTP
		var u *url.URL
		if u, err = url.Parse(probe.HTTP); err == nil {
			port := u.Port()
			if port == "" {
				port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
			}
			w.at, err = localAddr(net.JoinHostPort(u.Hostname(), port))
		}
	case probe.TCP != "":
		w.what = "connect to " + probe.TCP
		w.try = w.tryTCP
		w.at, err = localAddr(probe.TCP)
	case probe.Log != nil:
		w.what = fmt.Sprintf("a line of its output that matches %q", probe.Log)
		w.log = &logWatch{path: p.log, offset: p.offset}
		w.try = func(context.Context) error { return w.log.match(probe.Log) }
		if p.log == "" {
			err = errors.New("it has no log to look for a line in")
		}
	case probe.Exec != nil:
		w.what = "command " + strings.Join(probe.Exec.Argv, " ")
		w.try = w.tryExec
	default:
		err = errors.New("no probe was given: expected one of http, tcp, log and exec")
	}
	return w, err
}

// localAddr is the address of a probe where it is of this machine, for which
// the owner of a listener can be told; the zero value for another machine's.
func localAddr(hostport string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() && !ip.IsUnspecified() && !isOurs(ip) {
		return netip.AddrPort{}, nil
	}
	n, err := net.LookupPort("tcp", port)
	return netip.AddrPortFrom(ip, uint16(n)), err
}

// isOurs reports whether an address is of an interface of this machine.
func isOurs(ip netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == ip {
			return true
		}
	}
	return false
}

// attempt makes one try and looks who answered it.
func (w *waiter) attempt(ctx context.Context) error {
	owner := w.owner()
	var stranger *StrangerError
	if errors.As(owner, &stranger) {
		return owner
	}
	if err := w.try(ctx); err != nil {
		return err
	}
	// Whoever listened before may not be who answered.
	owner = w.owner()
	if errors.Is(owner, errNoListener) && (w.log != nil || w.probe.Exec != nil) {
		return nil // it may listen elsewhere, on a socket file perhaps
	}
	return owner
}

// owner is nil where the process, or nobody that could be told, listens.
func (w *waiter) owner() error {
	if !w.at.IsValid() || w.probe.AnyOwner {
		return nil
	}
	err := w.p.checkPort(w.at)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// errNoListener says that nobody listens on a port.
var errNoListener = errors.New("nobody listens there yet")

// died tells of the process's end.
func (w *waiter) died() error {
	select {
	case <-w.p.done:
	default:
		return nil
	}
	err := w.p.Err()
	if err == nil {
		err = fmt.Errorf("%s was asked to end", w.p.name)
	}
	return fmt.Errorf("%w, before it was ready (%s)%s", err, w.what, underTail(w.p.Tail(20)))
}

// tryHTTP sends one request on a connection of its own.
func (w *waiter) tryHTTP(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.probe.HTTP, nil)
	if err != nil {
		return err
	}
	client := &http.Client{
		// No proxy; and any certificate will do, since it is told otherwise
		// whose server this is.
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	var told *url.Error // names the URL, as the message around it does
	if errors.As(err, &told) {
		err = told.Err
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("found status %s, expected 2xx or 3xx", resp.Status)
	}
	return nil
}

// tryTCP opens a connection and closes it.
func (w *waiter) tryTCP(ctx context.Context) error {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := d.DialContext(ctx, "tcp", w.probe.TCP)
	if err != nil {
		return err
	}
	return c.Close()
}

// errHopeless marks the error of a try that is not worth repeating.
var errHopeless = errors.New("this will not change by waiting")

// tryExec runs the command once.
func (w *waiter) tryExec(ctx context.Context) error {
	_, err := w.p.sup.Run(ctx, *w.probe.Exec)
	var exit *ExitError
	if err == nil || errors.As(err, &exit) || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("readiness of %s: %w (%w)", w.p.name, err, errHopeless)
}

// logWatch reads a log as it grows.
type logWatch struct {
	path   string
	offset int64
	open   string // a last line that is not complete
}

// match reads what is new and looks for a line that matches. A last line
// without a line break counts once it has not grown between two tries.
func (l *logWatch) match(re *regexp.Regexp) error {
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, l.offset, 1<<20))
	if err != nil {
		return err
	}
	l.offset += int64(len(b))
	lines := strings.Split(l.open+string(b), "\n")
	l.open = lines[len(lines)-1]
	if len(b) > 0 {
		lines = lines[:len(lines)-1]
	}
	for _, line := range lines {
		if re.MatchString(strings.TrimSuffix(line, "\r")) {
			return nil
		}
	}
	return errors.New("no such line yet")
}
