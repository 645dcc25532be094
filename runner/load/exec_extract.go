package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// extractor reads one metric from what a tool printed.
type extractor struct {
	spec.Extract
	re    *regexp.Regexp // nil: by JSON path
	scale float64        // from the metric's unit to the base unit
}

func newExtractor(e spec.Extract) (extractor, error) {
	x := extractor{Extract: e, scale: unitScale(e.Unit)}
	switch {
	case (e.Regex == "") == (e.JSON == ""):
		return x, fmt.Errorf("metric %s: expected either regex or json", e.Metric)
	case e.Regex != "":
		re, err := regexp.Compile(e.Regex)
		if err != nil {
			return x, fmt.Errorf("metric %s: %w", e.Metric, err)
		}
		if re.NumSubexp() < 1 {
			return x, fmt.Errorf("metric %s: regex %q has no group: put ( ) around the number", e.Metric, e.Regex)
		}
		x.re = re
	}
	return x, nil
}

// value is the metric in base units: of a tool that ended, from its standard
// output or else its standard error; of an endless one, the mean of its lines.
func (x extractor) value(out *toolOutput, endless bool) (float64, error) {
	if endless {
		return x.mean(out.lines)
	}
	v, err := x.find(out.stdout)
	if err == nil {
		return v, nil
	}
	// The more telling of two errors is that of the stream that has something.
	v, err2 := x.find(out.stderr)
	if err2 == nil {
		return v, nil
	}
	if len(bytes.TrimSpace(out.stdout)) == 0 {
		err = err2
	}
	return 0, err
}

// mean is the mean over the lines that have the metric.
func (x extractor) mean(lines []toolLine) (float64, error) {
	sum, n := 0.0, 0
	for _, l := range lines {
		if v, err := x.find(l.text); err == nil {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0, errors.New("no line of the window has it")
	}
	return sum / float64(n), nil
}

// find reads the metric from a text; of several matches the last one counts,
// since tools print what they found at the end.
func (x extractor) find(text []byte) (float64, error) {
	if x.re == nil {
		return x.findJSON(text)
	}
	all := x.re.FindAllSubmatch(text, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("no match of %q", x.Regex)
	}
	m := all[len(all)-1]
	for _, group := range m[1:] {
		if group != nil {
			return x.number(string(group))
		}
	}
	return 0, fmt.Errorf("the match of %q has an empty group", x.Regex)
}

func (x extractor) findJSON(text []byte) (float64, error) {
	doc, err := lastJSON(text)
	if err != nil {
		return 0, err
	}
	v, ok := lookup(doc, strings.Split(x.JSON, "."))
	if !ok {
		return 0, fmt.Errorf("no %s in the JSON", x.JSON)
	}
	switch v := v.(type) {
	case json.Number:
		return x.number(v.String())
	case string:
		return x.number(v)
	default:
		return 0, fmt.Errorf("%s of the JSON is %T, expected a number", x.JSON, v)
	}
}

// number reads a number with the unit that stands beside it or, without one,
// the metric's.
func (x extractor) number(text string) (float64, error) {
	v, unit, err := splitQuantity(text)
	if err != nil {
		return 0, err
	}
	if unit == "" {
		return v * x.scale, nil
	}
	scale, ok := units[unit]
	if !ok {
		return 0, fmt.Errorf("%q has the unit %q, which is not known", text, unit)
	}
	return v * scale, nil
}

// lastJSON is the last JSON object or list of a text that starts on a line of
// its own. A tool that warms up prints one for that first, and some print
// other text around it.
func lastJSON(text []byte) (any, error) {
	var last any
	for rest := text; len(rest) > 0; {
		if trimmed := bytes.TrimLeft(rest, " \t\r"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
			d := json.NewDecoder(bytes.NewReader(trimmed))
			d.UseNumber()
			var v any
			if d.Decode(&v) == nil {
				last, rest = v, trimmed[d.InputOffset():]
				continue
			}
		}
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	if last == nil {
		return nil, errors.New("no JSON in the output")
	}
	return last, nil
}

// lookup follows a dotted path. A key may hold dots itself, such as p99.9:
// the longest key that fits is taken. A list takes an index.
func lookup(v any, path []string) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		for n := len(path); n > 0; n-- {
			if inner, ok := v[strings.Join(path[:n], ".")]; ok {
				if found, ok := lookup(inner, path[n:]); ok {
					return found, true
				}
			}
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err == nil && i >= 0 && i < len(v) {
			return lookup(v[i], path[1:])
		}
	}
	return nil, false
}

// units are the units that tools print, by their factor to the base unit:
// seconds, bytes, 1/s and ratios. Case matters: M is mega, m is minutes.
var units = map[string]float64{
	"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "secs": 1, "m": 60, "min": 60, "h": 3600,
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"1/s": 1, "/s": 1, "1/ms": 1e3, "1/min": 1.0 / 60, "B/s": 1, "kB/s": 1e3, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9,
	"KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30,
	"req/s": 1, "reqs/s": 1, "msg/s": 1, "msgs/s": 1,
	"%": 0.01, "": 1, "1": 1, "ratio": 1,
	"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9,
}

// unitScale is the factor from a unit to its base unit; 1 for a unit that is
// not known, whose values stay as they are.
func unitScale(unit string) float64 {
	if f, ok := units[unit]; ok {
		return f
	}
	return 1
}

// splitQuantity reads "1,234.5 ms" as 1234.5 and "ms". Commas are taken as
// separators of thousands, and so are underscores and thin spaces within digits.
func splitQuantity(text string) (float64, string, error) {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && strings.IndexByte("0123456789.,+-_eE", text[end]) >= 0 {
		end++
	}
	// An e that no exponent follows belongs to the unit.
	for end > 0 && strings.IndexByte("eE+-", text[end-1]) >= 0 {
		end--
	}
	digits := strings.NewReplacer(",", "", "_", "").Replace(text[:end])
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, "", fmt.Errorf("%.40q is not a number", text)
	}
	return v, strings.TrimSpace(text[end:]), nil
}
