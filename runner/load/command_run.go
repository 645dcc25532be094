package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// overheadSamples is how many empty processes are timed when a Load opens.
const overheadSamples = 11

// commandLoad runs processes of its copies in turns.
type commandLoad struct {
	d         *commandDriver
	copies    []*commandCopy
	overhead  time.Duration
	reference *reference // what every process has to print; nil before the first
}

// reference is the output that all others are compared with.
type reference struct {
	name   string
	output digest
}

// processTally adds up the processes of one copy.
type processTally struct {
	Sample
	failures           tally
	wall, user, system time.Duration // of the processes that count
	rss                float64       // sum of their peaks, bytes
	hidden             bool          // some peak was below our own, which the kernel reports instead
	measured           time.Duration // wall of all processes
}

// Run runs one process of every target in each cycle, until each has had the
// window's measuring time; at least one. Metrics of a sample are means over
// its processes: wall, cpu (user and system, of the process and the children
// that it waited for), cpu.user, cpu.system and max_rss (peak of the largest
// of them, bytes). The distribution of wall is in Hists. Metric overhead is
// the wall time of an empty process started the same way; it is part of wall.
func (l *commandLoad) Run(ctx context.Context, s Schedule) ([]Sample, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var th thread
	defer th.restore()

	tallies := make([]processTally, len(l.copies))
	for i := range tallies {
		tallies[i].Hists = map[string]*hdrhistogram.Histogram{"wall": newWallHistogram()}
	}
	start, own := time.Now(), processUse()
	order := make([]int, len(l.copies))
	cycles := 0
	for ; cycles == 0 || unfinished(tallies, s.Window); cycles++ {
		s.Order(cycles, order)
		for _, i := range order {
			r, err := l.copies[i].sample(ctx, &th)
			if err != nil {
				return nil, err
			}
			if err := l.compare(l.copies[i], &r); err != nil {
				return nil, err
			}
			tallies[i].add(r)
		}
	}
	if err := l.revealPeaks(ctx, tallies); err != nil {
		return nil, err
	}
	use := processUse()
	samples := make([]Sample, len(tallies))
	for i := range tallies {
		samples[i] = tallies[i].finish(l.overhead, cycles)
		samples[i].Generator = GeneratorUse{
			Wall: time.Since(start), CPU: use.CPU - own.CPU, Involuntary: use.Involuntary - own.Involuntary,
		}
	}
	return samples, nil
}

func unfinished(ts []processTally, window time.Duration) bool {
	return slices.ContainsFunc(ts, func(t processTally) bool { return t.measured < window })
}

// compare holds a process's output against that of the first one.
func (l *commandLoad) compare(c *commandCopy, r *processResult) error {
	if !l.d.p.Compare || r.failure != nil {
		return nil
	}
	got, err := c.stdout.digest()
	if err != nil {
		return err
	}
	switch {
	case l.reference == nil && c.t.Expected != nil:
		l.reference = &reference{"the check", digestOf(c.t.Expected.Body)}
	case l.reference == nil:
		l.reference = &reference{c.t.Name, got}
	}
	if diff := l.reference.output.difference(got); diff != "" {
		r.failure = failf(Body, "stdout differs from that of %s: %s", l.reference.name, diff)
	}
	return nil
}

// revealPeaks finds the peak memory of processes whose own peak the kernel
// hid behind ours (see [tracePeak]): one more process of each such target is
// run for it, outside of the measuring time.
func (l *commandLoad) revealPeaks(ctx context.Context, ts []processTally) error {
	for i := range ts {
		if !ts[i].hidden || ts[i].OK == 0 {
			continue
		}
		c := l.copies[i]
		if err := c.prepare.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.t.Name, err)
		}
		if err := c.rewind(); err != nil {
			return err
		}
		peak, err := tracePeak(ctx, c.child)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ts[i].rss = 0
		if err == nil {
			ts[i].rss = float64(peak) * float64(ts[i].OK)
		}
	}
	return nil
}

func (t *processTally) add(r processResult) {
	t.Started++
	t.measured += r.wall
	t.TotalElapsed += r.wall
	if r.failure != nil {
		t.Failed++
		t.failures.add(r.failure.class, 1, r.failure)
		return
	}
	t.OK++
	t.Turns++
	t.wall += r.wall
	t.user += r.user
	t.system += r.system
	t.rss += float64(r.maxRSS)
	t.hidden = t.hidden || r.rssHidden
	// A wall beyond the range is kept as the range's end; the mean is exact.
	t.Hists["wall"].RecordValue(min(r.wall.Nanoseconds(), maxWall.Nanoseconds()))
}

func (t *processTally) finish(overhead time.Duration, cycles int) Sample {
	t.Elapsed, t.Cycles, t.Errors, t.Reported = t.wall, cycles, t.failures.counts, true
	if t.OK == 0 {
		return t.Sample
	}
	n := float64(t.OK)
	t.InUse = 1
	t.Metrics = map[string]float64{
		"requests":   n,
		"wall":       t.wall.Seconds() / n,
		"cpu":        (t.user + t.system).Seconds() / n,
		"cpu.user":   t.user.Seconds() / n,
		"cpu.system": t.system.Seconds() / n,
	}
	if t.rss > 0 {
		t.Metrics["max_rss"] = t.rss / n
	}
	if overhead > 0 {
		t.Metrics["overhead"] = overhead.Seconds()
	}
	return t.Sample
}

// Close runs the cleanup steps and closes all files.
func (l *commandLoad) Close() error {
	var errs []error
	for _, c := range l.copies {
		errs = append(errs, c.close(context.Background()))
	}
	return errors.Join(errs...)
}

const maxWall = 24 * time.Hour

func newWallHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1000, maxWall.Nanoseconds(), 3)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
