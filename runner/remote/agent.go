package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
)

// greeting is what an agent says before the first answer. What a login prints
// on its own stands before it.
const greeting = "\ntandem agent 1\n"

// agentArg is the first argument of our own program as an agent.
const agentArg = "__tandem_agent"

// AgentMain is the whole life of an agent: it serves the machine that has
// started it until that says goodbye, hangs up or falls silent, then ends
// every process and removes every file of the run. Main calls it after
// [proc.WatchdogMain], with os.Args and the standard streams; where it
// reports that it has handled the call, main exits with the code.
func AgentMain(args []string, in io.Reader, out io.WriteCloser, errOut io.Writer) (handled bool, code int) {
	if len(args) < 2 || args[1] != agentArg {
		return false, 0
	}
	if len(args) != 3 {
		fmt.Fprintln(errOut, "tandem: the agent was started by hand")
		return true, 2
	}
	// Its end is that of the connection, and it has to clear up first. Signals
	// that are caught, unlike those that are ignored, are not so for children.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	if err := serve(args[2], in, out); err != nil {
		fmt.Fprintln(errOut, "tandem:", err)
		return true, 1
	}
	return true, 0
}

// serve takes the machine, answers calls, and leaves nothing behind.
func serve(dir string, in io.Reader, out io.WriteCloser) (err error) {
	unlock, err := takeMachine(dir)
	if err != nil {
		return err
	}
	defer unlock()
	work, release, err := source.OpenWork(filepath.Join(dir, "work"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	sup, err := proc.New(proc.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sup.Close()) }() // before the folder goes
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := &agent{ctx: ctx, sup: sup, work: work, began: time.Now(), procs: map[int]*proc.Process{}, trees: map[string]*unpacking{}}
	server := rpc.NewServer()
	if err := server.RegisterName("agent", a); err != nil {
		return err
	}
	if _, err := io.WriteString(out, greeting); err != nil {
		return err
	}
	line := &heard{Reader: in, WriteCloser: out, over: make(chan struct{})}
	line.touch()
	go server.ServeConn(line)
	a.wait(line)
	return nil
}

// takeMachine makes sure that one run at a time measures on this machine. The
// agent of a run whose connection broke goes within the time of silence.
func takeMachine(dir string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Silence+5*time.Second)
	defer cancel()
	path := filepath.Join(dir, "lock")
	l := flock.New(path)
	ok, err := l.TryLockContext(ctx, 50*time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("another run is measuring on this host (%s is locked): two at once would disturb each other; wait for it to end", path)
	}
	if err != nil || !ok {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { l.Close() }, nil
}

// heard is the agent's end of the connection, which notes when it last heard
// something and when the connection was closed.
type heard struct {
	io.Reader
	io.WriteCloser
	last atomic.Int64 // nanoseconds since process start, see touch
	over chan struct{}
	once sync.Once
}

// processStart is what heard counts from: a clock that nothing sets.
var processStart = time.Now()

func (h *heard) touch() { h.last.Store(int64(time.Since(processStart))) }

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.touch()
	if err != nil {
		h.once.Do(func() { close(h.over) })
	}
	return n, err
}

// silent reports whether the other end has been silent for too long.
func (h *heard) silent() bool {
	return time.Since(processStart)-time.Duration(h.last.Load()) > Silence
}

// wait returns when the agent has no reason to live any more.
func (a *agent) wait(line *heard) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-line.over:
			return
		case <-tick.C:
			if line.silent() {
				return
			}
		}
	}
}

// agent answers the calls of the other machine. Its exported methods are
// those calls.
type agent struct {
	ctx   context.Context // ends with the agent
	sup   *proc.Supervisor
	work  string
	began time.Time

	mu      sync.Mutex
	procs   map[int]*proc.Process
	count   int
	trees   map[string]*unpacking
	auditor *proc.Auditor
}

// Beat is a sign of life.
func (a *agent) Beat(Empty, *Empty) error { return nil }

// Hello tells of the machine.
func (a *agent) Hello(_ Empty, f *Facts) error {
	f.Host, f.Work, f.Notes = proc.ReadHost(), a.work, a.sup.Notes()
	f.Environ = proc.Environ(os.Environ(), nil)
	var err error
	if f.CPUs, err = proc.Available(); err != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("nothing can be pinned: %v", err))
		return nil
	}
	f.Topology, err = proc.ReadTopology()
	if err != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("it is not known which CPUs share a core: %v", err))
	}
	return nil
}

// EndAll ends every process. The agent itself ends when the connection is closed.
func (a *agent) EndAll(Empty, *Empty) error { return a.sup.Close() }

// FreePort finds a free port.
func (a *agent) FreePort(_ Empty, port *int) (err error) {
	*port, err = proc.FreePort()
	return err
}

// Start starts a process that stays.
func (a *agent) Start(c Command, out *Started) error {
	p, err := a.sup.Start(a.ctx, a.command(c))
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	a.procs[a.count] = p
	*out = Started{a.count, p.PID()}
	return nil
}

// command is a command as it is started here.
func (a *agent) command(c Command) proc.Cmd {
	if c.Log != "" {
		c.Log = filepath.Join(a.work, c.Log)
	}
	return proc.Cmd{Name: c.Name, Argv: c.Argv, Dir: filepath.Join(a.work, c.Dir), Env: c.Env, CPUs: c.CPUs, Log: c.Log, Limits: c.Limits}
}

// Run runs a command to completion.
func (a *agent) Run(args RunArgs, out *proc.Result) error {
	ctx, cancel := context.WithTimeout(a.ctx, args.Timeout)
	defer cancel()
	res, err := a.sup.Run(ctx, a.command(args.Command))
	*out = res
	var exit *proc.ExitError
	if errors.As(err, &exit) {
		return nil // the result says how
	}
	return err
}

// process finds a process.
func (a *agent) process(id int) (*proc.Process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.procs[id]
	if p == nil {
		return nil, fmt.Errorf("no process %d", id)
	}
	return p, nil
}

// Wait waits for the end of a process.
func (a *agent) Wait(id int, out *Ending) error {
	p, err := a.process(id)
	if err != nil {
		return err
	}
	<-p.Done()
	if err := p.Err(); err != nil {
		out.Text = err.Error()
	}
	return nil
}

// Stop asks a process to end, and forgets it.
func (a *agent) Stop(args StopArgs, _ *Empty) error {
	p, err := a.process(args.ID)
	if err != nil {
		return err
	}
	err = p.Stop(args.How)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.procs, args.ID)
	return err
}

// Usage reads what a process has cost.
func (a *agent) Usage(id int, out *proc.Usage) error {
	p, err := a.process(id)
	if err == nil {
		*out, err = p.Usage()
	}
	return err
}

// VerifyPins checks where a process may run.
func (a *agent) VerifyPins(args PinArgs, _ *Empty) error {
	p, err := a.process(args.ID)
	if err != nil {
		return err
	}
	return p.VerifyPins(args.CPUs)
}

// Tail is the end of a process's output.
func (a *agent) Tail(args TailArgs, out *string) error {
	p, err := a.process(args.ID)
	if err == nil {
		*out = p.Tail(args.Lines)
	}
	return err
}
