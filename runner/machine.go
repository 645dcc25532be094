package runner

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/remote"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

// process is a command that stays, on whichever machine.
type process interface {
	Done() <-chan struct{}
	Err() error
	Tail(lines int) string
	Usage() (proc.Usage, error)
	VerifyPins(proc.CPUs) error
	Stop(spec.Stop) error
	WaitReady(context.Context, proc.Probe) error
}

// machine is where servers and services run: this one, or a host of the spec.
// Folders are absolute on this one and relative to the run's work folder on a
// host.
type machine interface {
	Address() string   // where the generator reaches what listens there
	Environ() []string // from which the environment of its processes is chosen
	FreePort(ctx context.Context) (int, error)
	Start(ctx context.Context, c proc.Cmd) (process, error)
	Run(ctx context.Context, c proc.Cmd) (proc.Result, error)
	Tree(ctx context.Context, arm int) (dir string, err error) // the built tree of an arm
	Copy(ctx context.Context, arm, slot int) (dir string, err error)
	Remove(dir string) error
	Reachable(ctx context.Context, addr string) error // from here
}

// here is this machine.
type here struct{ e *execution }

func (h here) Address() string   { return "127.0.0.1" }
func (h here) Environ() []string { return h.e.Environ }

func (h here) FreePort(context.Context) (int, error) { return proc.FreePort() }

func (h here) Start(ctx context.Context, c proc.Cmd) (process, error) {
	p, err := h.e.sup.Start(ctx, c)
	if err != nil {
		return nil, err // and no process that is not nil
	}
	return localProcess{p}, nil
}

func (h here) Run(ctx context.Context, c proc.Cmd) (proc.Result, error) { return h.e.sup.Run(ctx, c) }

func (h here) Tree(_ context.Context, arm int) (string, error) { return h.e.trees[arm].Dir, nil }

func (h here) Copy(ctx context.Context, arm, slot int) (string, error) {
	dir := source.CopyDir(h.e.work, slot)
	return dir, h.e.trees[arm].Copy(ctx, dir)
}

func (h here) Remove(dir string) error { return source.Remove(dir) }

// Reachable has nothing to look at: the probe was made from here.
func (h here) Reachable(context.Context, string) error { return nil }

// localProcess is a process of this machine.
type localProcess struct{ *proc.Process }

func (p localProcess) WaitReady(ctx context.Context, probe proc.Probe) error {
	return proc.WaitReady(ctx, p.Process, probe)
}

// there is a host of the spec.
type there struct {
	*remote.Host
	e       *execution
	sent    map[int]bool // the arms whose trees are there
	audited proc.CPUs    // nil where nothing can be read
}

func (h *there) Environ() []string { return h.Facts().Environ }

func (h *there) Start(ctx context.Context, c proc.Cmd) (process, error) {
	p, err := h.Host.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (h *there) Run(ctx context.Context, c proc.Cmd) (proc.Result, error) {
	timeout := time.Hour
	if end, ok := ctx.Deadline(); ok {
		timeout = time.Until(end)
	}
	return h.Host.Run(ctx, c, timeout)
}

// Tree sends the tree of an arm there when it is first asked for.
func (h *there) Tree(ctx context.Context, arm int) (string, error) {
	dir := fmt.Sprintf("tree%04d", arm)
	if h.sent[arm] {
		return dir, nil
	}
	h.e.report(Status{Phase: Starting, Detail: fmt.Sprintf("sending %s to host %s", h.e.Plan.Arms[arm], h.Name())})
	if err := h.Send(ctx, h.e.trees[arm].Dir, dir); err != nil {
		return "", err
	}
	h.sent[arm] = true
	return dir, nil
}

// Copy makes a copy there.
func (h *there) Copy(ctx context.Context, arm, slot int) (string, error) {
	tree, err := h.Tree(ctx, arm)
	if err != nil {
		return "", err
	}
	dir := fmt.Sprintf("copy%04d", slot)
	return dir, h.Host.Copy(ctx, tree, dir)
}

func (h *there) Remove(dir string) error { return h.Host.Remove(context.Background(), dir) }

// Reachable connects from here to a server that is ready there: a firewall,
// or an address that only that machine knows, may stand between.
func (h *there) Reachable(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("it is ready on host %s, but cannot be reached from here at %s: %w; see whether it listens on ${host}, whether a firewall is in between, and whether hosts.%s.address is right", h.Name(), addr, err, h.Name())
	}
	return c.Close()
}
