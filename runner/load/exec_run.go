package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// maxToolOutput is how much of each stream of a tool is kept: its end.
const maxToolOutput = 4 << 20

// stopPatience is how long an endless tool may take to end when asked to.
const stopPatience = 2 * time.Second

// toolOutput is what a tool left behind.
type toolOutput struct {
	stdout, stderr []byte
	lines          []toolLine // of an endless tool's stdout, in its window
	wall           time.Duration
	cpu            time.Duration
	involuntary    int64
	code           int
	signal         string
	timedOut       bool  // it was killed for taking too long
	ended          bool  // it ended by itself
	countErr       error // the server's counter could not be read in the window
}

// toolLine is one line and when it came.
type toolLine struct {
	text []byte
	at   time.Duration // since the start of the tool
}

// hint is the end of what the tool said, as the end of an error text.
func (o *toolOutput) hint() string {
	if h := tailHint(o.stderr); h != "" {
		return h
	}
	return tailHint(o.stdout)
}

// runTool runs a tool to its end. An error means that it could not be
// started, or that ctx ended.
func runTool(ctx context.Context, c child, timeout time.Duration) (*toolOutput, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var stdout, stderr tail
	cmd := groupCommand(limited, c)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := startPinned(cmd, c.cpus); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.argv[0], err)
	}
	err := cmd.Wait()
	out := &toolOutput{stdout: stdout.bytes(), stderr: stderr.bytes(), wall: time.Since(start), ended: true}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if limited.Err() != nil {
		out.timedOut, out.ended = true, false
	}
	return out, out.end(cmd, err)
}

// end notes how the tool ended.
func (o *toolOutput) end(cmd *exec.Cmd, err error) error {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	o.code = cmd.ProcessState.ExitCode()
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	o.signal = endSignal(cmd.ProcessState)
	o.involuntary = involuntarySwitches(cmd.ProcessState)
	return nil
}

// watchTool runs an endless tool until its lines have told enough: it drops
// the first line that carries a metric, which covers the start-up, and keeps
// those of the window after it, at least one of each metric. Then it stops
// the tool. The server's count, if it is asked for, is taken at both ends of
// that window.
func watchTool(ctx context.Context, c child, d *execDriver, window time.Duration, count *serverCount) (*toolOutput, error) {
	timeout := d.x.Timeout
	if timeout <= 0 {
		timeout = time.Minute
	}
	limited, cancel := context.WithTimeout(ctx, window+timeout)
	defer cancel()
	w := &watcher{d: d, window: window, start: time.Now(), begun: make(chan struct{}), enough: make(chan struct{})}
	var stderr tail
	cmd := groupCommand(limited, c)
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := startPinned(cmd, c.cpus); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.argv[0], err)
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	followed := count.follow(limited, w)
	var err, countErr error
	ended := false
	select {
	case err = <-waited:
		ended = limited.Err() == nil
		cancel()
		countErr = <-followed
	case <-w.enough:
		countErr = <-followed // before the load ends
		err = stopTool(cmd, cancel, waited)
	}
	out := w.output()
	out.stderr, out.ended, out.wall, out.countErr = stderr.bytes(), ended, time.Since(w.start), countErr
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out.timedOut = !ended && len(out.lines) == 0
	err = out.end(cmd, err)
	if !ended {
		out.signal = "" // ours
	}
	return out, err
}

// stopTool asks a tool to end, and kills it where it does not.
func stopTool(cmd *exec.Cmd, kill func(), waited <-chan error) error {
	askToEnd(cmd)
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case err := <-waited:
		return err
	case <-timer.C:
		kill()
		err := <-waited
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
}

// watcher takes the standard output of an endless tool apart into lines.
type watcher struct {
	d      *execDriver
	window time.Duration
	start  time.Time
	begun  chan struct{} // closed when the window begins
	enough chan struct{} // closed when the tool has told enough

	mu      sync.Mutex
	all     tail
	partial []byte
	first   time.Duration // when the dropped line came; 0: not yet
	lines   []toolLine
	done    bool
}

// Write takes what the tool printed.
func (w *watcher) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.start)
	_, _ = w.all.Write(b)
	w.partial = append(w.partial, b...)
	for {
		line, rest, whole := bytes.Cut(w.partial, []byte("\n"))
		if !whole {
			break
		}
		w.line(bytes.Clone(line), now)
		w.partial = rest
	}
	if len(w.partial) > maxToolOutput {
		w.partial = nil
	}
	return len(b), nil
}

func (w *watcher) line(text []byte, now time.Duration) {
	if w.done || !w.d.carriesMetric(text) {
		return
	}
	if w.first == 0 {
		w.first = now
		close(w.begun)
		return
	}
	w.lines = append(w.lines, toolLine{text, now})
	if now-w.first >= w.window && w.d.complete(w.lines) {
		w.done = true
		close(w.enough)
	}
}

// output is what came so far. Without enough lines there are none, so that
// no metric is made of half a window.
func (w *watcher) output() *toolOutput {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := &toolOutput{stdout: w.all.bytes()}
	if w.done {
		out.lines = append([]toolLine{{at: w.first}}, w.lines...)
	}
	return out
}

// carriesMetric reports whether a line has any of the tool's metrics.
func (d *execDriver) carriesMetric(line []byte) bool {
	if d.preset != nil && d.preset.line != nil && d.preset.line(line) {
		return true
	}
	for _, x := range d.metrics {
		if _, err := x.find(line); err == nil {
			return true
		}
	}
	return false
}

// complete reports whether every metric is somewhere in the lines.
func (d *execDriver) complete(lines []toolLine) bool {
	for _, x := range d.metrics {
		if _, err := x.mean(lines); err != nil {
			return false
		}
	}
	return true
}

// tail is a writer that keeps the end of what is written.
type tail struct {
	buf bytes.Buffer
}

// Write keeps b.
func (t *tail) Write(b []byte) (int, error) {
	n, err := t.buf.Write(b)
	if over := t.buf.Len() - 2*maxToolOutput; over > 0 {
		t.buf.Next(over + maxToolOutput)
	}
	return n, err
}

func (t *tail) bytes() []byte {
	b := t.buf.Bytes()
	return bytes.Clone(b[max(0, len(b)-maxToolOutput):])
}
