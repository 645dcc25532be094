package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// execDriver lets another load tool make the load, and reads from its output
// what it measured. A tool cannot take turns, so each target gets a whole
// window; what a tool is able to say limits what a sample holds.
//
// That a tool exits with status 0 says little: most do so after nothing but
// errors. So a sample fails where a metric is missing, where a pattern of the
// scenario's errors matches, or where the preset knows a line that says so.
type execDriver struct {
	s       spec.Scenario
	x       *spec.Exec
	o       Options
	preset  *preset // nil: only the scenario's own metrics
	metrics []extractor
	counter *extractor // finds the server's own count; nil: it is all that the counter says
	errors  []*regexp.Regexp
	endless bool
}

func newExec(s spec.Scenario, o Options) (Driver, error) {
	d := &execDriver{s: s, x: s.Exec, o: o, endless: s.Exec.Endless}
	if s.Exec.Preset != "" {
		p, err := findPreset(s.Exec.Preset)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", s.ID(), err)
		}
		d.preset = p
		d.endless = d.endless || p.endless
	}
	for _, e := range s.Exec.Metrics {
		x, err := newExtractor(e)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", s.ID(), err)
		}
		d.metrics = append(d.metrics, x)
	}
	var err error
	if d.counter, err = counterExtractor(s.Exec.Counter); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.ID(), err)
	}
	if d.preset == nil && len(d.metrics) == 0 && (s.Exec.Counter == nil || d.endless) {
		return nil, fmt.Errorf("scenario %s: nothing says how to read the tool's output: expected a preset or metrics", s.ID())
	}
	for _, text := range s.Exec.Errors {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: errors: %w", s.ID(), err)
		}
		d.errors = append(d.errors, re)
	}
	return d, nil
}

// Interleaves is false: a tool loads one target for a whole window.
func (d *execDriver) Interleaves() bool { return false }

// Check asks the request that the tool will send, where the scenario says
// it. Otherwise that is the tool's affair, and Check only finds out whether
// the target accepts a connection; with an expect expression it gets ${url}.
// The counter, if there is one, is read as well.
func (d *execDriver) Check(ctx context.Context, t Target) (*Response, error) {
	start := time.Now()
	count, err := d.newCount(t)
	if err == nil && count != nil {
		err = count.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	if d.x.Request != nil {
		asks, err := newHTTP(d.asHTTP(), d.o)
		if err != nil {
			return nil, err
		}
		return asks.Check(ctx, t)
	}
	if d.s.Expect != nil {
		return d.get(ctx, t)
	}
	if t.Addr == "" {
		return &Response{}, nil
	}
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return &Response{Elapsed: time.Since(start)}, c.Close()
}

func (d *execDriver) get(ctx context.Context, t Target) (*Response, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Vars["url"], nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	tr := &http.Transport{DisableKeepAlives: true} // no proxy
	r, err := tr.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return &Response{Status: r.StatusCode, Header: r.Header, Body: body, Elapsed: time.Since(start)}, nil
}

// Open finds the tool and writes the files that it will read. It starts
// nothing.
func (d *execDriver) Open(_ context.Context, targets []Target) (Load, error) {
	l := &execLoad{d: d, targets: targets, requests: make([][]string, len(targets))}
	err := l.writeRequests()
	for i := range targets {
		if err == nil {
			_, err = l.child(i, time.Second)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// child resolves the tool's command for one window of one target. The tool
// runs in the target's folder and environment, on the generator's CPUs.
func (l *execLoad) child(i int, window time.Duration) (child, error) {
	c, err := l.d.child(l.targets[i], window, l.requests[i])
	if err != nil {
		err = fmt.Errorf("%s: %w", l.targets[i].Name, err)
	}
	return c, err
}

func (d *execDriver) child(t Target, window time.Duration, request []string) (child, error) {
	vars := maps.Clone(t.Vars)
	if vars == nil {
		vars = spec.Vars{}
	}
	vars["window"] = d.window(window)
	if d.x.Connections > 0 {
		vars["connections"] = fmt.Sprint(d.x.Connections)
	} else if vars["connections"] == "" {
		vars["connections"] = fmt.Sprint(defaultConnections)
	}
	env, err := environ(t.Env, d.x.Env, vars, d.o.Env)
	if err != nil {
		return child{}, err
	}
	if t.Env == nil {
		env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	}
	argv, err := resolveTool(d.x.Command, request, vars, d.o.Env)
	if err != nil {
		return child{}, err
	}
	if d.endless {
		argv = append([]string{"stdbuf", "-oL"}, argv...)
	}
	path, err := lookPath(argv, t.Dir, env)
	if err != nil {
		if d.endless {
			err = fmt.Errorf("stdbuf, by which an endless tool writes line by line: %w", err)
		}
		return child{}, err
	}
	return child{path: path, argv: argv, dir: t.Dir, env: env, cpus: d.o.CPUs}, nil
}

// defaultConnections is what ${connections} says where the scenario does not.
const defaultConnections = 100

// window renders the measuring time the way the tool takes it.
func (d *execDriver) window(w time.Duration) string {
	if d.preset != nil && d.preset.window != nil {
		return d.preset.window(w)
	}
	return w.String()
}

// execLoad runs the tool for its targets.
type execLoad struct {
	d        *execDriver
	targets  []Target
	requests [][]string // of each target: ${request}; nil where the scenario has none
	files    string     // folder of the files that they name; "" where there are none
}

// Run runs the tool once for each target. Metrics that the tool reported are
// in the samples' Metrics; counts and Elapsed are the tool's own where its
// preset reads them.
func (l *execLoad) Run(ctx context.Context, s Schedule) ([]Sample, error) {
	samples := make([]Sample, len(l.targets))
	order := make([]int, len(l.targets))
	s.Order(0, order)
	for _, i := range order {
		sample, err := l.one(ctx, i, s.Window)
		if err != nil {
			return nil, err
		}
		samples[i] = sample
	}
	return samples, nil
}

func (l *execLoad) one(ctx context.Context, i int, window time.Duration) (Sample, error) {
	c, err := l.child(i, window)
	if err != nil {
		return Sample{}, err
	}
	count, err := l.d.newCount(l.targets[i])
	if err != nil {
		return Sample{}, fmt.Errorf("%s: %w", l.targets[i].Name, err)
	}
	if count != nil {
		if err := count.start(ctx); err != nil {
			return uncounted(&toolOutput{}, &reading{}, err), ctx.Err()
		}
	}
	var out *toolOutput
	if l.d.endless {
		out, err = watchTool(ctx, c, l.d, window, count)
	} else {
		out, err = runTool(ctx, c, window+l.timeout())
	}
	if err != nil {
		return Sample{}, fmt.Errorf("%s: %w", l.targets[i].Name, err)
	}
	r := l.d.read(out)
	if count == nil || errors.Is(out.countErr, errNoMark) { // of which the tool's end has told
		return r.sample(out), nil
	}
	n, err := count.stop(ctx)
	if err = errors.Join(out.countErr, err); err != nil {
		return uncounted(out, r, err), ctx.Err()
	}
	r.counted(count, n, l.d, out.wall)
	l.d.own(out, r)
	return r.sample(out), nil
}

// uncounted is the sample of a window of which the server's count is not known.
func uncounted(out *toolOutput, r *reading, err error) Sample {
	r.broke(classify(err), "%v", err)
	return r.sample(out)
}

// timeout is how long the tool may take beyond its window.
func (l *execLoad) timeout() time.Duration {
	if l.d.x.Timeout > 0 {
		return l.d.x.Timeout
	}
	return time.Minute
}

// Close removes the files that the tool read: the tool itself ends with its
// window.
func (l *execLoad) Close() error {
	if l.files == "" {
		return nil
	}
	return os.RemoveAll(l.files)
}

// read takes everything that is known from what the tool printed.
func (d *execDriver) read(out *toolOutput) *reading {
	r := &reading{metrics: map[string]float64{}}
	switch {
	case out.timedOut:
		r.broke(Timeout, "no end after %v: killed%s", out.wall.Round(time.Millisecond), out.hint())
	case out.ended && d.endless:
		r.broke(Other, "the tool ended by itself with exit status %d%s", out.code, out.hint())
	case out.signal != "":
		r.broke(Other, "ended by %s%s", out.signal, out.hint())
	case out.code != 0 && !d.endless:
		r.broke(Other, "exit status %d%s", out.code, out.hint())
	}
	for _, re := range d.errors {
		for _, stream := range [][]byte{out.stdout, out.stderr} {
			if line := matchingLine(re, stream); line != "" {
				r.broke(Other, "the output matches %q of errors: %s", re, line)
			}
		}
	}
	if d.preset != nil {
		if err := d.preset.read(out, r); err != nil && r.failed == 0 {
			r.broke(Protocol, "not the output of %s: %v%s", d.preset.name, err, out.hint())
		}
	}
	d.own(out, r)
	return r
}

// own reads the scenario's own metrics, which stand above what a preset or a
// counter says.
func (d *execDriver) own(out *toolOutput, r *reading) {
	for _, x := range d.metrics {
		v, err := x.value(out, d.endless)
		if err != nil {
			if r.failed == 0 {
				r.broke(Protocol, "metric %s: %v%s", x.Metric, err, out.hint())
			}
			continue
		}
		r.metrics[x.Metric] = v
	}
}
