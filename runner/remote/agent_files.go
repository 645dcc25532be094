package remote

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
)

// Ready waits until a process answers its probe.
func (a *agent) Ready(args ReadyArgs, _ *Empty) error {
	p, err := a.process(args.ID)
	if err != nil {
		return err
	}
	probe := proc.Probe{HTTP: args.HTTP, TCP: args.TCP, Port: args.Port, Timeout: args.Timeout}
	if args.Log != "" {
		if probe.Log, err = regexp.Compile(args.Log); err != nil {
			return err
		}
	}
	if args.Exec != nil {
		c := a.command(*args.Exec)
		probe.Exec = &c
	}
	return proc.WaitReady(a.ctx, p, probe)
}

// Pin moves the agent itself to the given CPUs.
func (a *agent) Pin(args PinArgs, _ *Empty) error { return proc.PinSelf(args.CPUs) }

// Audit chooses the CPUs that are audited, and tells what cannot be read.
func (a *agent) Audit(args PinArgs, notes *[]string) error {
	auditor, err := proc.NewAuditor(args.CPUs)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.auditor, *notes = auditor, auditor.Notes()
	return nil
}

// ReadAudit takes a reading.
func (a *agent) ReadAudit(_ Empty, out *AuditReading) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.auditor == nil {
		return errors.New("no CPU is audited")
	}
	r, err := a.auditor.Read()
	*out = AuditReading{At: time.Since(a.began), Reading: r}
	return err
}

// Put takes the next part of an archive, and unpacks it into a new folder of
// the work folder.
func (a *agent) Put(part Part, _ *Empty) error {
	a.mu.Lock()
	u := a.trees[part.Dir]
	if u == nil {
		u = startUnpacking(filepath.Join(a.work, part.Dir))
		a.trees[part.Dir] = u
	}
	if part.Last {
		delete(a.trees, part.Dir)
	}
	a.mu.Unlock()
	if _, err := u.in.Write(part.Data); err != nil {
		return err
	}
	if !part.Last {
		return nil
	}
	u.in.Close()
	return <-u.done
}

// unpacking is an archive on its way into a folder.
type unpacking struct {
	in   *io.PipeWriter
	done chan error
}

func startUnpacking(dir string) *unpacking {
	r, w := io.Pipe()
	u := &unpacking{in: w, done: make(chan error, 1)}
	go func() {
		err := unpack(r, dir)
		r.CloseWithError(err) // the next part is told
		u.done <- err
	}()
	return u
}

// Copy copies a folder of the work folder to a new one.
func (a *agent) Copy(args CopyArgs, _ *Empty) error {
	return source.CopyTree(a.ctx, filepath.Join(a.work, args.From), filepath.Join(a.work, args.To))
}

// MakeDir makes a folder in the work folder.
func (a *agent) MakeDir(name string, _ *Empty) error {
	return os.Mkdir(filepath.Join(a.work, name), 0o755)
}

// Remove removes a folder of the work folder.
func (a *agent) Remove(name string, _ *Empty) error {
	return source.Remove(filepath.Join(a.work, name))
}

// ReadLog reads a part of a log; an empty one is the end.
func (a *agent) ReadLog(args ReadArgs, out *[]byte) error {
	f, err := os.Open(filepath.Join(a.work, args.Name))
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, chunk)
	n, err := f.ReadAt(b, args.Offset)
	if err == io.EOF {
		err = nil
	}
	*out = b[:n]
	return err
}
