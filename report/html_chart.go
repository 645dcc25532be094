package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// The size of every chart, in its own units: small enough to be read on a
// phone without scaling, and laid side by side where there is room.
const (
	chartWidth  = 380.0
	chartHeight = 190.0
	chartLeft   = 58.0
	chartRight  = 10.0
	chartTop    = 10.0
	chartBottom = 30.0
)

type tick struct {
	at    float64
	label string
}

// axis maps values to positions between 0 and 1.
type axis struct {
	lo, hi float64
	log    bool
	ticks  []tick
}

func (x axis) place(v float64) float64 {
	if x.log {
		return (math.Log(v) - math.Log(x.lo)) / (math.Log(x.hi) - math.Log(x.lo))
	}
	return (v - x.lo) / (x.hi - x.lo)
}

// linearAxis spans the values with room at both ends, and has about n ticks.
func linearAxis(vs []float64, n int, label func(float64) string) axis {
	lo, hi := extent(vs)
	if lo == hi {
		pad := math.Max(math.Abs(lo)*0.05, 1e-12)
		lo, hi = lo-pad, hi+pad
	}
	pad := (hi - lo) * 0.06
	x := axis{lo: lo - pad, hi: hi + pad}
	if lo == 0 {
		x.lo = 0 // nothing is below it
	}
	step := tickStep((x.hi - x.lo) / float64(n))
	for k := int(math.Ceil(x.lo / step)); float64(k)*step <= x.hi; k++ {
		x.ticks = append(x.ticks, tick{float64(k) * step, label(float64(k) * step)})
	}
	return x
}

// tickStep is the next of 1, 2 and 5 times a power of ten.
func tickStep(x float64) float64 {
	ten := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if x <= f*ten*(1+1e-9) {
			return f * ten
		}
	}
	return 10 * ten
}

// logAxis spans positive values by factors; with less than a factor of three
// between them it is linear after all, since its ticks would be odd.
func logAxis(vs []float64, label func(float64) string) axis {
	lo, hi := extent(vs)
	if lo <= 0 || hi/lo < 3 {
		return linearAxis(vs, 4, label)
	}
	x := axis{lo: lo / 1.1, hi: hi * 1.1, log: true}
	steps := []float64{1, 2, 5}
	if hi/lo > 200 {
		steps = []float64{1}
	}
	for e := math.Floor(math.Log10(x.lo)); e <= math.Log10(x.hi); e++ {
		for _, s := range steps {
			if v := s * math.Pow(10, e); v >= x.lo && v <= x.hi {
				x.ticks = append(x.ticks, tick{v, label(v)})
			}
		}
	}
	return x
}

func extent(vs []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range vs {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	if lo > hi {
		return 0, 1
	}
	return lo, hi
}

type point struct{ x, y float64 }

// chart is an SVG drawing under way. It holds numbers and escaped labels
// only.
type chart struct {
	x, y axis
	b    strings.Builder
}

func newChart(x, y axis) *chart {
	c := &chart{x: x, y: y}
	var grid strings.Builder
	for _, t := range y.ticks {
		fmt.Fprintf(&grid, "M%s %sH%s", num(chartLeft), c.py(t.at), num(chartWidth-chartRight))
		fmt.Fprintf(&c.b, `<text x="%s" y="%s" text-anchor="end">%s</text>`, num(chartLeft-6), num(c.yAt(t.at)+4), html.EscapeString(t.label))
	}
	for _, t := range x.ticks {
		anchor := "middle"
		if c.xAt(t.at) > chartWidth-24 {
			anchor = "end" // or it would be cut off
		}
		fmt.Fprintf(&c.b, `<text x="%s" y="%s" text-anchor="%s">%s</text>`, num(min(c.xAt(t.at), chartWidth-1)), num(chartHeight-chartBottom+16), anchor, html.EscapeString(t.label))
	}
	if grid.Len() > 0 {
		fmt.Fprintf(&c.b, `<path class="grid" d="%s"/>`, grid.String())
	}
	return c
}

// num writes a coordinate in as few bytes as a screen can tell apart.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func (c *chart) xAt(v float64) float64 {
	return chartLeft + c.x.place(v)*(chartWidth-chartLeft-chartRight)
}

func (c *chart) yAt(v float64) float64 {
	return chartHeight - chartBottom - c.y.place(v)*(chartHeight-chartTop-chartBottom)
}

func (c *chart) px(v float64) string { return num(c.xAt(v)) }

func (c *chart) py(v float64) string {
	// What lies beyond the axis stops at its end.
	return num(math.Max(chartTop, math.Min(chartHeight-chartBottom, c.yAt(v))))
}

// band fills the whole width between two values.
func (c *chart) band(class string, lo, hi float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="M%s %sH%sV%sH%sz"/>`, class, num(chartLeft), c.py(lo), num(chartWidth-chartRight), c.py(hi), num(chartLeft))
}

func (c *chart) level(class string, at float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="M%s %sH%s"/>`, class, num(chartLeft), c.py(at), num(chartWidth-chartRight))
}

// dots draws each point as a line of no length with round ends, which takes a
// tenth of the bytes of a circle.
func (c *chart) dots(class string, ps []point) {
	if len(ps) == 0 {
		return
	}
	var d strings.Builder
	for _, p := range ps {
		d.WriteString("M" + c.px(p.x) + " " + c.py(p.y) + "h0")
	}
	fmt.Fprintf(&c.b, `<path class="dots %s" d="%s"/>`, class, d.String())
}

func (c *chart) line(class string, ps []point) {
	if len(ps) > 0 {
		fmt.Fprintf(&c.b, `<path class="%s" d="M%s"/>`, class, c.path(ps))
	}
}

func (c *chart) path(ps []point) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = c.px(p.x) + " " + c.py(p.y)
	}
	return strings.Join(parts, "L")
}

// area fills between two lines over the same places.
func (c *chart) area(class string, low, high []point) {
	if len(low) == 0 {
		return
	}
	back := make([]point, len(high))
	for i, p := range high {
		back[len(high)-1-i] = p
	}
	fmt.Fprintf(&c.b, `<path class="area %s" d="M%sL%sz"/>`, class, c.path(low), c.path(back))
}

// done closes the drawing; label is what it says to those who cannot see it.
func (c *chart) done(label string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`, //nolint:gosec // numbers and escaped labels only
		num(chartWidth), num(chartHeight), html.EscapeString(label), c.b.String()))
}
