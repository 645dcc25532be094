package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// scale is the unit in which one column is shown: one for the whole column,
// so that its figures can be compared at a glance.
type scale struct {
	div      float64
	unit     string
	decimals int
}

type prefix struct {
	div  float64
	unit string
}

var (
	timePrefixes = []prefix{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}
	sizePrefixes = []prefix{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}
	plainPrefix  = []prefix{{1, ""}}
)

// scaleFor picks the largest prefix that leaves the smallest value at one or
// more, unless that makes the largest one unreadable, and the decimals that
// show three digits of the smallest.
func scaleFor(unit string, vs ...float64) scale {
	lo, hi := math.Inf(1), 0.0
	for _, v := range vs {
		if v = math.Abs(v); v > 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	prefixes := plainPrefix
	switch unit {
	case "s":
		prefixes = timePrefixes
	case "B":
		prefixes = sizePrefixes
	case "1/s", "", "ratio":
	default:
		prefixes = []prefix{{1, unit}}
	}
	if hi == 0 {
		return scale{prefixes[0].div, prefixes[0].unit, 0}
	}
	at := len(prefixes) - 1
	for at > 0 && (lo >= prefixes[at-1].div || hi >= 1e5*prefixes[at].div) {
		at--
	}
	s := scale{div: prefixes[at].div, unit: prefixes[at].unit}
	s.decimals = min(max(2-int(math.Floor(math.Log10(lo/s.div))), 0), 3)
	if unit == "B" && s.unit == "B" && lo == math.Trunc(lo) && hi == math.Trunc(hi) {
		s.decimals = 0
	}
	return s
}

// number shows a value without its unit.
func (s scale) number(v float64) string {
	if math.IsNaN(v) {
		return "n/a"
	}
	return strconv.FormatFloat(v/s.div, 'f', s.decimals, 64)
}

// with shows a value with its unit.
func (s scale) with(v float64) string {
	if s.unit == "" || math.IsNaN(v) {
		return s.number(v)
	}
	return s.number(v) + " " + s.unit
}

// pair shows two values with one unit, "9.26 / 9.23 µs".
func (s scale) pair(a, b float64) string {
	return strings.TrimSpace(s.number(a) + " / " + s.number(b) + " " + s.unit)
}

func showRatio(r float64) string {
	if math.IsNaN(r) {
		return "n/a"
	}
	return fmt.Sprintf("%.*fx", ratioDecimals(r), r)
}

// ratioDecimals keeps about four digits of any ratio.
func ratioDecimals(r float64) int {
	switch {
	case r >= 100:
		return 0
	case r >= 10:
		return 2
	case r > 0 && r < 0.01:
		return 5
	}
	return 3
}

func showChange(c float64) string {
	switch {
	case math.IsNaN(c):
		return "n/a"
	case math.Abs(c) >= 10:
		return fmt.Sprintf("%+.0f%%", 100*c)
	}
	s := fmt.Sprintf("%+.1f%%", 100*c)
	if s == "-0.0%" {
		return "+0.0%"
	}
	return s
}

func showRange(r [2]float64) string {
	if math.IsNaN(r[0]) || math.IsInf(r[0], 0) {
		return "n/a"
	}
	return fmt.Sprintf("%.2f to %.2f", r[0], r[1])
}

func showNoise(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return "n/a"
	}
	return fmt.Sprintf("±%.1f%%", 100*n)
}

func showP(p float64) string {
	switch {
	case math.IsNaN(p):
		return "p = n/a"
	case p < 0.0001:
		return "p < 0.0001"
	case p < 0.01:
		return fmt.Sprintf("p = %.4f", p)
	}
	return fmt.Sprintf("p = %.2f", p)
}

// plain makes a text from outside harmless on one line: control characters
// (escape sequences, newlines) and invisible format characters (direction
// overrides) are shown as escapes instead of being obeyed.
func plain(s string) string {
	bad := func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
	}
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case bad(r):
			q := strconv.QuoteToASCII(string(r))
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// brief is the first line of a text, without what a program printed, which
// may follow.
func brief(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return plain(first)
}

// metricTitle is what a metric is called in a column head.
func metricTitle(name string) string {
	switch name {
	case "rps":
		return "req/s"
	case "msgs":
		return "msg/s"
	case "cpu_per_request":
		return "CPU per request"
	case "max_rss":
		return "peak memory"
	case "wall":
		return "wall time"
	case "cpu":
		return "CPU time"
	}
	return name
}
