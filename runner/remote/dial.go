package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

// Options is everything that [Dial] needs.
type Options struct {
	Host       spec.Host
	Supervisor *proc.Supervisor // of the ssh client; its processes end before it is closed
	Environ    []string         // of the ssh client, with the agent and the home of the user
	CPUs       proc.CPUs        // on which the ssh client runs
	LogDir     string           // what ssh says is kept there
	Lost       func(error)      // called once if the connection breaks, with a [*LostError]
}

// Host is a machine that an agent serves. Its methods may be called from
// several goroutines.
type Host struct {
	o      Options
	dir    string // on the host, absolute
	ip     string // where this machine reaches it
	facts  Facts
	ssh    *proc.Process
	client *rpc.Client
	last   atomic.Int64 // when something was heard, on processStart's clock

	losing  sync.Once
	lost    chan struct{} // closed when the connection broke
	lostErr error         // written before
	closing atomic.Bool
}

// Dial connects to a host and starts an agent on it. The whole must be done
// within the time that ctx leaves.
func Dial(ctx context.Context, o Options) (*Host, error) {
	h := &Host{o: o, lost: make(chan struct{})}
	if err := h.dial(ctx); err != nil {
		h.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", h, err)
	}
	return h, nil
}

// String is the host as messages name it.
func (h *Host) String() string { return fmt.Sprintf("host %s (ssh %s)", h.o.Host.Name, h.o.Host.SSH) }

// Name is the host's name in the spec.
func (h *Host) Name() string { return h.o.Host.Name }

// Address is the IP address at which this machine reaches the host.
func (h *Host) Address() string { return h.ip }

// Facts is what the agent told of its machine.
func (h *Host) Facts() Facts { return h.facts }

// Lost is closed when the connection broke.
func (h *Host) Lost() <-chan struct{} { return h.lost }

func (h *Host) dial(ctx context.Context) (err error) {
	if h.ip, err = h.resolve(ctx); err != nil {
		return err
	}
	program, err := h.install(ctx)
	if err != nil {
		return err
	}
	if err := h.startAgent(ctx, program); err != nil {
		return err
	}
	go h.beats()
	return h.call(ctx, "Hello", Empty{}, &h.facts)
}

// resolve finds the address that servers on the host are reached at.
func (h *Host) resolve(ctx context.Context) (string, error) {
	name := h.o.Host.Address
	if name == "" {
		out, err := h.command(ctx, "-G", nil)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(line, "hostname "); ok {
				name = strings.TrimSpace(rest)
			}
		}
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return "", fmt.Errorf("finding the address of its servers: %w (say where they are reached: hosts.%s.address)", err, h.o.Host.Name)
	}
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			return ip.String(), nil
		}
	}
	return ips[0].String(), nil
}

// startAgent runs the agent over an ssh client that stays.
func (h *Host) startAgent(ctx context.Context, program string) error {
	inR, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer inR.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		inW.Close()
		return err
	}
	defer outW.Close()
	line := &talk{r: bufio.NewReader(outR), h: h, in: inW, out: outR}
	// It outlives ctx: an interrupted run says goodbye.
	h.ssh, err = h.o.Supervisor.Start(context.WithoutCancel(ctx), proc.Cmd{
		Name: "ssh " + h.o.Host.SSH, Argv: h.argv("-T", script(agentScript, h.dir, program, agentArg)),
		Env: h.o.Environ, CPUs: h.o.CPUs, Log: h.log(), Input: inR, Output: outW,
	})
	if err != nil {
		return errors.Join(err, line.Close())
	}
	outW.Close() // so that its end is the end of the stream
	greeted := make(chan error, 1)
	go func() { greeted <- line.greet() }()
	select {
	case err = <-greeted:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return errors.Join(h.explain(err), line.Close())
	}
	h.client = rpc.NewClient(line)
	return nil
}

// talk is our end of the connection to an agent.
type talk struct {
	r       *bufio.Reader
	h       *Host
	in, out *os.File
}

// greet reads up to the agent's greeting.
func (t *talk) greet() error {
	const most = 64 << 10
	var seen strings.Builder
	for seen.Len() < most {
		b, err := t.r.ReadByte()
		if err != nil {
			return fmt.Errorf("the agent did not start: %w", err)
		}
		seen.WriteByte(b)
		if b == '\n' && strings.HasSuffix("\n"+seen.String(), greeting) {
			t.h.touch()
			return nil
		}
	}
	return fmt.Errorf("the agent did not start: its login printed %d kB", most>>10)
}

func (t *talk) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	t.h.touch()
	return n, err
}

func (t *talk) Write(b []byte) (int, error) { return t.in.Write(b) }

// Close hangs up.
func (t *talk) Close() error { return errors.Join(t.in.Close(), t.out.Close()) }

func (h *Host) touch() { h.last.Store(int64(time.Since(processStart))) }

// beats gives signs of life and waits for those of the agent.
func (h *Host) beats() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	answered := make(chan bool, 1)
	for {
		select {
		case <-h.lost:
			return
		case <-h.ssh.Done():
			if !h.closing.Load() {
				h.lose(h.explain(errors.New("ssh ended")).Error())
			}
			return
		case <-tick.C:
		}
		select {
		case answered <- true:
			go func() { // sending may block for as long as the link does
				h.client.Call("agent.Beat", Empty{}, &Empty{})
				<-answered
			}()
		default: // the last one is still on its way
		}
		if quiet := time.Since(processStart) - time.Duration(h.last.Load()); quiet > Silence {
			h.lose(fmt.Sprintf("no sign of life for %v", quiet.Round(time.Second)))
			return
		}
	}
}

// lose gives the connection up.
func (h *Host) lose(why string) {
	h.losing.Do(func() {
		h.lostErr = &LostError{Host: h.String(), Why: why}
		close(h.lost)
		h.client.Close() // whoever is stuck in a write is not any more
		if h.o.Lost != nil && !h.closing.Load() {
			h.o.Lost(h.lostErr)
		}
	})
}

// call asks the agent and waits for the answer, which is to be read only
// where there is no error.
func (h *Host) call(ctx context.Context, method string, args, answer any) error {
	select {
	case <-h.lost:
		return h.lostErr
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	c := h.client.Go("agent."+method, args, answer, make(chan *rpc.Call, 1))
	select {
	case <-c.Done:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.lost:
		return h.lostErr
	}
	var told rpc.ServerError
	switch {
	case c.Error == nil:
		return nil
	case errors.As(c.Error, &told):
		return fmt.Errorf("%s on %s", string(told), h.o.Host.Name)
	}
	h.lose(h.explain(c.Error).Error())
	return h.lostErr
}

// explain says why there is no answer: in ssh's own words where it has ended.
func (h *Host) explain(err error) error {
	select {
	case <-h.ssh.Done():
	case <-time.After(2 * time.Second):
		return err
	}
	if tail := h.ssh.Tail(5); tail != "" {
		return errors.New(tail)
	}
	return errors.Join(err, h.ssh.Err())
}

// Close ends everything on the host, and the connection. It waits until that
// is done, and may be called at any time. An error names what is left.
func (h *Host) Close() error {
	if h.ssh == nil || h.closing.Swap(true) {
		return nil
	}
	var err error
	if h.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		if err = h.call(ctx, "EndAll", Empty{}, &Empty{}); errors.As(err, new(*LostError)) {
			err = nil // which was told when it happened
		}
		h.client.Close()
	}
	select {
	case <-h.ssh.Done():
		var exit *proc.ExitError
		if errors.As(h.ssh.Err(), &exit) && exit.Code != 0 && !h.gone() {
			err = errors.Join(err, fmt.Errorf("%s: clearing up: %w", h, h.explain(exit)))
		}
	case <-time.After(closePatience):
		if !h.gone() {
			err = errors.Join(err, fmt.Errorf("%s: the agent has not cleared up within %v", h, closePatience))
		}
	case <-h.lost:
	}
	return errors.Join(err, h.ssh.Stop(spec.Stop{Signal: "KILL"}))
}

// closePatience is how long an agent may take to end what it has started and
// to remove its files.
const closePatience = 30 * time.Second

// gone reports whether the connection broke.
func (h *Host) gone() bool {
	select {
	case <-h.lost:
		return true
	default:
		return false
	}
}

func (h *Host) log() string { return filepath.Join(h.o.LogDir, "ssh-"+h.o.Host.Name+".log") }
