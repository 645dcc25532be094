package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

// Process is a process on a host, with everything that it started in turn.
type Process struct {
	h    *Host
	id   int
	pid  int // there
	name string
	log  string // here
	done chan struct{}

	stopped atomic.Bool

	// Written before done is closed, read after.
	err  error
	tail string
}

// Start starts a command that stays. Its working folder is relative to the
// work folder there; its log is brought here when it has ended.
func (h *Host) Start(ctx context.Context, c proc.Cmd) (*Process, error) {
	var s Started
	if err := h.call(ctx, "Start", h.wire(c), &s); err != nil {
		return nil, err
	}
	p := &Process{h: h, id: s.ID, pid: s.PID, name: c.Name, log: c.Log, done: make(chan struct{})}
	go p.watch()
	return p, nil
}

// wire is a command as it is sent.
func (h *Host) wire(c proc.Cmd) Command {
	w := Command{Name: c.Name, Argv: c.Argv, Dir: c.Dir, Env: c.Env, CPUs: c.CPUs, Limits: c.Limits}
	if c.Log != "" {
		w.Log = logName(c.Log)
	}
	return w
}

// logName is the name of a log in the work folder of a host.
func logName(path string) string { return "log-" + filepath.Base(path) }

// watch waits for the end of the process and brings its log here.
func (p *Process) watch() {
	defer close(p.done)
	ctx := context.Background()
	var end Ending
	if err := p.h.call(ctx, "Wait", p.id, &end); err != nil {
		p.err = err
		return
	}
	if end.Text != "" {
		p.err = errors.New(end.Text)
	}
	if p.log == "" {
		return
	}
	p.tail = p.askTail(maxTail)
	if err := p.h.fetch(ctx, logName(p.log), p.log); err != nil && !p.h.gone() {
		p.tail = strings.TrimPrefix(fmt.Sprintf("%s\n(its log could not be brought here: %v)", p.tail, err), "\n")
	}
}

// maxTail is how many lines of a log are at hand after the end.
const maxTail = 20

// maxLog is how much of a log is brought here, in bytes.
const maxLog = 16 << 20

// fetch appends a file of the work folder to one here.
func (h *Host) fetch(ctx context.Context, name, to string) (err error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for at := int64(0); ; {
		var part []byte
		if err := h.call(ctx, "ReadLog", ReadArgs{name, at}, &part); err != nil {
			return err
		}
		if _, err := f.Write(part); err != nil {
			return err
		}
		if len(part) == 0 {
			break
		}
		if at += int64(len(part)); at >= maxLog {
			fmt.Fprintf(f, "\n(what follows the first %d MiB stayed on the host)\n", maxLog>>20)
			break
		}
	}
	return nil
}

// Done is closed when the process has ended and nothing of it is left, and
// when the connection broke.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended, as that of proc.Process does.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Tail is the end of what the process has written so far.
func (p *Process) Tail(lines int) string {
	select {
	case <-p.done:
		all := strings.Split(p.tail, "\n")
		return strings.Join(all[max(0, len(all)-lines):], "\n")
	default:
		return p.askTail(lines)
	}
}

func (p *Process) askTail(lines int) string {
	ctx, cancel := context.WithTimeout(context.Background(), Silence)
	defer cancel()
	var text string
	if err := p.h.call(ctx, "Tail", TailArgs{p.id, lines}, &text); err != nil {
		return "" // it only decorates an error that matters more
	}
	return text
}

// Usage reads what the process has cost.
func (p *Process) Usage() (proc.Usage, error) {
	var u proc.Usage
	err := p.h.call(context.Background(), "Usage", p.id, &u)
	return u, err
}

// VerifyPins checks that the process is where it was pinned.
func (p *Process) VerifyPins(cpus proc.CPUs) error {
	if len(cpus) == 0 {
		return nil
	}
	return p.h.call(context.Background(), "VerifyPins", PinArgs{p.id, cpus}, &Empty{})
}

// Stop ends the process, as that of proc.Process does. Where the connection
// broke there is nothing to do: the agent ends everything.
func (p *Process) Stop(how spec.Stop) error {
	if p.h.gone() || p.stopped.Swap(true) {
		return nil
	}
	err := p.h.call(context.Background(), "Stop", StopArgs{p.id, how}, &Empty{})
	if p.h.gone() {
		return nil
	}
	if err == nil {
		<-p.done
	}
	if err == nil && p.log != "" {
		// Not earlier: whoever waits for the process reads its last words there.
		err = p.h.Remove(context.Background(), logName(p.log))
	}
	return err
}

// WaitReady waits until the process answers its probe, which is made there:
// only there can it be told whose port it is.
func (p *Process) WaitReady(ctx context.Context, probe proc.Probe) error {
	args := ReadyArgs{ID: p.id, HTTP: probe.HTTP, TCP: probe.TCP, Port: probe.Port, Timeout: probe.Timeout}
	if probe.Log != nil {
		args.Log = probe.Log.String()
	}
	if probe.Exec != nil {
		c := p.h.wire(*probe.Exec)
		args.Exec = &c
	}
	return p.h.call(ctx, "Ready", args, &Empty{})
}

// Run runs a command to completion there, within the given time. Unlike that
// of a supervisor it returns no error for an exit status.
func (h *Host) Run(ctx context.Context, c proc.Cmd, timeout time.Duration) (proc.Result, error) {
	var res proc.Result
	if err := h.call(ctx, "Run", RunArgs{h.wire(c), timeout}, &res); err != nil {
		return proc.Result{Code: -1}, err
	}
	if c.Log != "" {
		return res, errors.Join(h.fetch(ctx, logName(c.Log), c.Log), h.Remove(ctx, logName(c.Log)))
	}
	return res, nil
}

// FreePort finds a free port there.
func (h *Host) FreePort(ctx context.Context) (int, error) {
	var port int
	err := h.call(ctx, "FreePort", Empty{}, &port)
	return port, err
}

// Send copies the tree at dir to a new folder of the work folder there.
func (h *Host) Send(ctx context.Context, dir, to string) error {
	s := &sender{ctx: ctx, h: h, dir: to}
	if err := pack(s, dir); err != nil {
		return fmt.Errorf("sending %s to %s: %w", dir, h.o.Host.Name, err)
	}
	if err := s.flush(true); err != nil {
		return fmt.Errorf("sending %s to %s: %w", dir, h.o.Host.Name, err)
	}
	return nil
}

// sender sends an archive in parts.
type sender struct {
	ctx context.Context
	h   *Host
	dir string
	buf []byte
}

func (s *sender) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), chunk-len(s.buf))
		s.buf = append(s.buf, rest[:n]...)
		rest = rest[n:]
		if len(s.buf) == chunk {
			if err := s.flush(false); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

func (s *sender) flush(last bool) error {
	err := s.h.call(s.ctx, "Put", Part{s.dir, s.buf, last}, &Empty{})
	s.buf = s.buf[:0]
	return err
}

// Copy copies a folder of the work folder there to a new one.
func (h *Host) Copy(ctx context.Context, from, to string) error {
	return h.call(ctx, "Copy", CopyArgs{from, to}, &Empty{})
}

// MakeDir makes a folder in the work folder there.
func (h *Host) MakeDir(ctx context.Context, name string) error {
	return h.call(ctx, "MakeDir", name, &Empty{})
}

// Remove removes a folder of the work folder there.
func (h *Host) Remove(ctx context.Context, name string) error {
	return h.call(ctx, "Remove", name, &Empty{})
}

// Path is where a folder of the work folder is there.
func (h *Host) Path(name string) string { return path.Join(h.facts.Work, name) }

// Keep keeps the agent itself to the given CPUs.
func (h *Host) Keep(ctx context.Context, cpus proc.CPUs) error {
	return h.call(ctx, "Pin", PinArgs{CPUs: cpus}, &Empty{})
}

// Audit chooses the CPUs there that ReadAudit looks at, and tells what cannot
// be read.
func (h *Host) Audit(ctx context.Context, cpus proc.CPUs) (notes []string, err error) {
	err = h.call(ctx, "Audit", PinArgs{CPUs: cpus}, &notes)
	return notes, err
}

// ReadAudit takes a reading there. The times of two readings are good for
// their difference only.
func (h *Host) ReadAudit() (proc.Reading, error) {
	var r AuditReading
	if err := h.call(context.Background(), "ReadAudit", Empty{}, &r); err != nil {
		return proc.Reading{}, err
	}
	r.Reading.At = time.Unix(0, 0).Add(r.At)
	return r.Reading, nil
}
