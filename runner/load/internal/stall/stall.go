// Package stall is a server that stops now and then by a schedule of its own,
// and tells afterwards what users who come at a steady rate had to wait. It is
// what the open loop is held to: by the test of package load, and by the
// bench command, which runs it as a process.
package stall

import (
	"math"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Server answers one request after the other. It is a [http.Handler].
//
// How long a stall goes on for the users depends on how fast the server works
// off what has piled up: with service time c, at r requests per second, the
// queue of Length*r requests is gone after Length*r*c / (1-r*c). Where stalls
// and their queues take a little more than a tenth of the time, the 90th
// percentile of the response time lies just inside of them; where they take a
// little less, just outside.
type Server struct {
	Every   time.Duration // from the start of one stall to that of the next
	Length  time.Duration // of a stall
	Service time.Duration // that each request takes, one after the other

	began time.Time
	mu    sync.Mutex
	calls []call
}

// call is one request, in times since the server began.
type call struct{ came, done time.Duration }

// New returns a server whose first stall begins now.
func New(every, length, service time.Duration) *Server {
	return &Server{Every: every, Length: length, Service: service, began: time.Now()}
}

// ServeHTTP answers when the schedule says so.
func (s *Server) ServeHTTP(http.ResponseWriter, *http.Request) {
	time.Sleep(time.Until(s.began.Add(s.admit())))
}

// admit enters a request into the queue and returns when it is answered.
func (s *Server) admit() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := time.Since(s.began) // under the lock: so calls are in the order in which they came
	free := came
	if n := len(s.calls); n > 0 {
		free = max(free, s.calls[n-1].done)
	}
	done := s.awake(free) + s.Service
	s.calls = append(s.calls, call{came, done})
	return done
}

// awake is when the server can begin to work, at t or at the end of the stall
// that t lies in.
func (s *Server) awake(t time.Duration) time.Duration {
	if at := t % s.Every; at < s.Length {
		return t + s.Length - at
	}
	return t
}

// Calls is how many requests came.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Forget starts the record anew; the schedule goes on.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// Truth is how long users waited who came at a steady rate, by the schedule
// alone, sorted: from the moment at which the n-th of them came to the end of
// the n-th answer. When the first one came is not known here; it is taken for
// as late as the arrivals allow, so nothing is said to be longer than it was.
func (s *Server) Truth(rate float64) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := func(n int) time.Duration { return time.Duration(float64(n) / rate * float64(time.Second)) }
	first := time.Duration(math.MaxInt64)
	for n, c := range s.calls {
		first = min(first, c.came-due(n))
	}
	waited := make([]time.Duration, len(s.calls))
	for n, c := range s.calls {
		waited[n] = c.done - first - due(n)
	}
	slices.Sort(waited)
	return waited
}

// Quantile is the value that a share q of some sorted times does not exceed.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// Mean is the mean of some times.
func Mean(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(max(1, len(times)))
}
