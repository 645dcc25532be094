package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// meter counts what one target does. Counts go into the current group of
// cycles first; settle then adds the group to the sample, or to what was
// discarded. Times go into a plain slice on the way: within a turn that is
// cheaper than a histogram, and kinder to the cache.
type meter struct {
	started, failed, inFlight int64 // of the whole run
	tally                     tally

	// of the current group
	ok, bytesIn, bytesOut int64
	times                 []int64 // latency of each valid response, nanoseconds
	early                 []early // where the first byte came apart from the last
	inUse                 int64   // request-nanoseconds in flight
	elapsed               int64   // nanoseconds
	turns                 int
	sure                  bool // the group will not be discarded

	sample     Sample
	ttfb       *hdrhistogram.Histogram
	inUseSum   float64
	secondOK   int64 // of the current second of measuring time
	secondTime int64
}

// early is a response whose first byte came before its last one.
type early struct {
	index int   // in times
	first int64 // time to the first byte
}

// times that a meter has room for from the start: a group of 20 ms at a
// million requests per second. More are made room for as they come.
const roomForTimes = 20_000

// reset makes the meter ready for a run. Only the main meter of a target
// keeps distributions; others are absorbed by it.
func (m *meter) reset(main bool) {
	times, first := m.times[:0], m.early[:0]
	if times == nil {
		times = make([]int64, roomForTimes)
		for i := range times { // touches the pages, so that no turn pays for them
			times[i] = 1
		}
		times = times[:0]
	}
	*m = meter{times: times, early: first}
	if main {
		m.ttfb, m.sample.Latency = newHistogram(), newHistogram()
	}
}

// valid counts a valid response.
func (m *meter) valid(latency, first int64) {
	m.ok++
	if m.sure && len(m.times) == cap(m.times) {
		m.flush()
	}
	if first != latency {
		m.early = append(m.early, early{len(m.times), first})
	}
	m.times = append(m.times, latency)
}

// fail counts n failed requests.
func (m *meter) fail(c Class, n int64, err error) {
	m.failed += n
	m.tally.add(c, n, err)
}

// absorb takes over what another meter counted in the group, and empties it.
func (m *meter) absorb(o *meter) {
	if m.sure && len(m.times)+len(o.times) > cap(m.times) {
		m.flush()
	}
	m.started += o.started
	m.failed += o.failed
	m.inFlight += o.inFlight
	m.tally.merge(&o.tally)
	for _, e := range o.early {
		m.early = append(m.early, early{e.index + len(m.times), e.first})
	}
	m.ok += o.ok
	m.bytesIn += o.bytesIn
	m.bytesOut += o.bytesOut
	m.times = append(m.times, o.times...)
	m.inUse += o.inUse
	*o = meter{times: o.times[:0], early: o.early[:0]}
}

// settle ends a group of cycles. A group that is not kept counts as
// discarded.
func (m *meter) settle(keep bool) {
	s := &m.sample
	s.TotalElapsed += time.Duration(m.elapsed)
	if keep {
		m.flush()
		s.OK += m.ok
		s.Elapsed += time.Duration(m.elapsed)
		s.Turns += m.turns
		s.BytesIn += m.bytesIn
		s.BytesOut += m.bytesOut
		m.inUseSum += float64(m.inUse)
		m.second()
	} else {
		s.Discarded += m.ok
	}
	m.times, m.early = m.times[:0], m.early[:0]
	m.ok, m.bytesIn, m.bytesOut, m.inUse, m.elapsed, m.turns = 0, 0, 0, 0, 0, 0
}

// flush records the times of the group so far.
func (m *meter) flush() {
	next := 0
	for i, t := range m.times {
		record(m.sample.Latency, t)
		if next < len(m.early) && m.early[next].index == i {
			t = m.early[next].first
			next++
		}
		record(m.ttfb, t)
	}
	m.times, m.early = m.times[:0], m.early[:0]
}

// second adds the group to the one-second samples.
func (m *meter) second() {
	m.secondOK += m.ok
	m.secondTime += m.elapsed
	if m.secondTime >= int64(time.Second) {
		m.sample.Interval = append(m.sample.Interval, float64(m.secondOK)/time.Duration(m.secondTime).Seconds())
		m.secondOK, m.secondTime = 0, 0
	}
}

// result is the sample of the whole run.
func (m *meter) result() Sample {
	s := m.sample
	s.Started, s.Failed, s.InFlight = m.started, m.failed, m.inFlight
	s.Errors = m.tally.counts
	s.Hists = map[string]*hdrhistogram.Histogram{"ttfb": m.ttfb}
	if s.Elapsed > 0 {
		s.InUse = m.inUseSum / float64(s.Elapsed)
	}
	return s
}
