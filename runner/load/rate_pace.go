package load

import (
	"fmt"
	"math"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// pace is a plan of when to send: a rate over time, known in both
// directions. It is pure.
type pace interface {
	// hits is how many requests are due in the first t.
	hits(t float64) float64
	// at is when hits reaches n; both in seconds.
	at(n float64) float64
}

// newPace returns the plan of a scenario. A ramp takes the whole window.
func newPace(h *spec.HTTP, window time.Duration) (pace, error) {
	p := h.Pacer
	if p == nil {
		if h.Rate <= 0 || math.IsInf(h.Rate, 0) || math.IsNaN(h.Rate) {
			return nil, fmt.Errorf("rate %v: expected a number of requests per second above zero", h.Rate)
		}
		return constantPace(h.Rate), nil
	}
	switch p.Kind {
	case "ramp":
		if p.From < 0 || p.To < 0 || p.From+p.To <= 0 {
			return nil, fmt.Errorf("ramp from %v to %v: expected rates that are not negative, nor both zero", p.From, p.To)
		}
		return rampPace{from: p.From, slope: (p.To - p.From) / window.Seconds(), window: window.Seconds()}, nil
	case "sine":
		if p.Mean <= 0 || p.Swing < 0 || p.Swing >= p.Mean || p.Period <= 0 {
			return nil, fmt.Errorf("sine of mean %v, swing %v and period %v: expected a swing below the mean and a period above zero", p.Mean, p.Swing, p.Period)
		}
		return sinePace{p.Mean, p.Swing, p.Period.Seconds()}, nil
	default:
		return nil, fmt.Errorf("pacer %q: expected ramp or sine", p.Kind)
	}
}

// constantPace is a rate that stays.
type constantPace float64

func (c constantPace) hits(t float64) float64 { return float64(c) * t }
func (c constantPace) at(n float64) float64   { return n / float64(c) }

// rampPace is a rate that changes evenly, as vegeta's LinearPacer has it.
type rampPace struct{ from, slope, window float64 }

func (r rampPace) hits(t float64) float64 { return t * (r.from + r.slope*t/2) }

// at solves slope/2 t^2 + from t = n in the form that loses no digits where
// the slope is small. A falling ramp reaches its last request at the window's
// end at the latest.
func (r rampPace) at(n float64) float64 {
	if n <= 0 {
		return 0
	}
	root := math.Sqrt(max(0, r.from*r.from+2*r.slope*n))
	return 2 * n / (r.from + root)
}

// sinePace is a rate that swings about its mean, which it has at the start
// and rises from, as vegeta's SinePacer has it at MeanUp.
type sinePace struct{ mean, swing, period float64 }

func (s sinePace) hits(t float64) float64 {
	turn := 2 * math.Pi / s.period
	return s.mean*t + s.swing/turn*(1-math.Cos(turn*t))
}

// at inverts hits, which rises all the time, by Newton steps that are kept
// within a bracket.
func (s sinePace) at(n float64) float64 {
	turn := 2 * math.Pi / s.period
	low, high := max(0, (n-2*s.swing/turn)/s.mean), n/s.mean
	t := (low + high) / 2
	for range 100 {
		miss := s.hits(t) - n
		if miss > 0 {
			high = t
		} else {
			low = t
		}
		next := t - miss/(s.mean+s.swing*math.Sin(turn*t))
		if next <= low || next >= high {
			next = (low + high) / 2
		}
		if math.Abs(next-t) < 1e-12*(1+t) {
			return next
		}
		t = next
	}
	return t
}

// due is how many requests a window intends: those at times below its end.
func due(p pace, window time.Duration) int64 {
	// The last one may be due at the very end by rounding alone.
	return int64(math.Ceil(p.hits(window.Seconds()) - 1e-6))
}
