package stall

import (
	"testing"
	"time"
)

// steady is a server that has served a window at a steady rate, by its
// schedule alone: nothing runs and no clock is read.
func steady(service time.Duration, rate, calls int) *Server {
	s := New(1100*time.Millisecond, 100*time.Millisecond, service)
	free := time.Duration(0)
	for n := range calls {
		came := time.Duration(n) * time.Second / time.Duration(rate)
		free = s.awake(max(came, free)) + service
		s.calls = append(s.calls, call{came, free})
	}
	return s
}

// A server that blocks for 100 ms in every 1.1 s at 2,000 requests per
// second: whether its p90 is nothing or 9 ms depends on how fast it catches
// up, and on nothing else.
func TestTruth(t *testing.T) {
	tests := []struct {
		name                string
		service             time.Duration
		mean, p50, p90, p99 time.Duration
	}{
		// 200 of 2,200 requests are held up, by 0.5 to 100 ms.
		{"catches up at once", 0, 4557 * time.Microsecond, 0, 0, 89500 * time.Microsecond},
		// At 11,100 per second the queue of 200 lasts for another 22 ms.
		{"catches up at 11,100/s", 90 * time.Microsecond, 5639 * time.Microsecond, 90 * time.Microsecond, 9970 * time.Microsecond, 90980 * time.Microsecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := steady(tt.service, 2000, 3*2200).Truth(2000)
			for _, q := range []struct {
				name      string
				got, want time.Duration
			}{
				{"mean", Mean(got), tt.mean}, {"p50", Quantile(got, 0.5), tt.p50}, {"p90", Quantile(got, 0.9), tt.p90}, {"p99", Quantile(got, 0.99), tt.p99},
			} {
				if d := q.got - q.want; d < -500*time.Microsecond || d > 500*time.Microsecond {
					t.Errorf("%s is %v, expected about %v", q.name, q.got, q.want)
				}
			}
		})
	}
}

func TestForget(t *testing.T) {
	s := steady(0, 1000, 10)
	if s.Calls() != 10 {
		t.Errorf("%d calls, expected 10", s.Calls())
	}
	s.Forget()
	if got := s.Truth(1000); s.Calls() != 0 || len(got) != 0 || Quantile(got, 0.5) != 0 || Mean(got) != 0 {
		t.Errorf("%d calls and %v are left", s.Calls(), got)
	}
}
