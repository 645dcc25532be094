package load

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestValues(t *testing.T) {
	s := Sample{
		Started: 110, OK: 100, Failed: 5, InFlight: 5,
		Elapsed: 2 * time.Second, BytesIn: 2000, BytesOut: 1000,
		Latency: newHistogram(), Interval: []float64{60, 40},
		Metrics: map[string]float64{"other": 7},
	}
	for i := range 100 {
		record(s.Latency, int64(i+1)*int64(time.Millisecond))
	}
	got := s.Values()
	want := map[string]float64{
		"requests": 100, "rps": 50, "bytes_in": 2000, "bytes_out": 1000, "bytes_per_request": 20,
		"error_ratio": 5.0 / 105, "other": 7,
		"latency.min": 0.001, "latency.mean": 0.0505, "latency.stdev": math.Sqrt((100*100-1)/12.0) / 1000,
		"latency.p2_5": 0.003, "latency.p25": 0.025, "latency.p50": 0.050, "latency.p75": 0.075,
		"latency.p90": 0.090, "latency.p95": 0.095, "latency.p97_5": 0.098, "latency.p99": 0.099, "latency.p99_9": 0.100, "latency.max": 0.100,
		"rps_interval.mean": 50, "rps_interval.stdev": math.Sqrt(200), "rps_interval.min": 40,
		"rps_interval.p1": 40.2, "rps_interval.p2_5": 40.5, "rps_interval.p50": 50, "rps_interval.p97_5": 59.5,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0.002, 0)); diff != "" {
		t.Error(diff)
	}
}

// TestValues_absent: what was not observed is absent.
func TestValues_absent(t *testing.T) {
	s := Sample{Started: 3, Failed: 3, Latency: newHistogram(), Elapsed: time.Second}
	want := map[string]float64{"requests": 0, "rps": 0, "bytes_in": 0, "bytes_out": 0, "error_ratio": 1}
	if diff := cmp.Diff(want, s.Values()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"requests": 0, "bytes_in": 0, "bytes_out": 0}, (&Sample{}).Values()); diff != "" {
		t.Error(diff)
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		err  error
		want Class
	}{
		{os.NewSyscallError("connect", syscall.ECONNREFUSED), ConnectRefused},
		{syscall.EADDRNOTAVAIL, AddrUnavailable},
		{syscall.EMFILE, FDLimit},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, ReadReset},
		{syscall.EPIPE, ReadReset},
		{io.EOF, EOF},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), EOF},
		{os.ErrDeadlineExceeded, Timeout},
		{&failure{Body, errors.New("x")}, Body},
		{fmt.Errorf("outer: %w", &failure{Protocol, io.EOF}), Protocol},
		{errors.New("x"), Other},
	}
	for _, test := range tests {
		if got := classify(test.err); got != test.want {
			t.Errorf("%v: %s, expected %s", test.err, got, test.want)
		}
	}
	if got := classifyConnect(syscall.ETIMEDOUT); got != ConnectTimeout {
		t.Errorf("connect: %s", got)
	}
}

// TestTally keeps the first failures of each class and counts the others.
func TestTally(t *testing.T) {
	var a, b tally
	for i := range 5 {
		a.add(EOF, 2, fmt.Errorf("a%d", i))
	}
	b.add(EOF, 1, errors.New("b"))
	b.add(Body, 1, errors.New("c"))
	b.add(Body, 1, errors.New("d"))
	b.merge(&a)
	want := []ErrorCount{
		{Class: EOF, Count: 11, First: []string{"b", "a0", "a1"}},
		{Class: Body, Count: 2, First: []string{"c", "d"}},
	}
	if diff := cmp.Diff(want, b.counts); diff != "" {
		t.Error(diff)
	}
}

func TestRotationOf(t *testing.T) {
	if diff := cmp.Diff([]int32{0, 0, 1, 0, 2, 0, 0}, rotationOf([]int{5, 1, 1})); diff != "" {
		t.Error(diff)
	}
}
