package journal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// scanner reads trial lines as [Writer] writes them: keys in the order of the
// struct's fields, no space between tokens. That takes a fifth of the time of
// encoding/json, and a long run has hundreds of thousands of them. Whatever
// looks otherwise it does not understand, and leaves to encoding/json, with
// which it agrees on all that it does understand (FuzzTrialLine).
type scanner struct {
	b     []byte
	i     int
	names map[string]string   // of metrics, scenarios and arms, one copy of each
	last  map[string][]string // the metrics of a scenario's last trial
}

func newScanner() *scanner {
	return &scanner{names: map[string]string{}, last: map[string][]string{}}
}

// The keys of each object, in the order of its fields.
var (
	trialKeys = []string{
		"block", "scenario", "arm", "copy", "slot", "started", "elapsed", "turns", "metrics", "errors", "latency", "interval",
		"audit", "services", "invalid", "warnings",
	}
	auditKeys = []string{
		"steal", "generator_busy", "involuntary", "discarded", "cycles", "others_cpu", "throttled", "time_wait", "frequency",
		"solo_rps", "little_mismatch",
	}
	errorKeys   = []string{"class", "count", "first"}
	serviceKeys = []string{"name", "busy", "max_rss"}
)

var trialPrefix = []byte(`{"trial":`)

// trial reads a line; ok is false where it is not understood.
func (s *scanner) trial(line []byte) (t *Trial, ok bool) {
	rest, ok := bytes.CutPrefix(line, trialPrefix)
	if !ok {
		return nil, false
	}
	s.b, s.i = rest, 0
	t = &Trial{}
	ok = s.object(trialKeys, func(key int) bool {
		switch key {
		case 0:
			return s.integer(&t.Block)
		case 1:
			return s.name(&t.Scenario)
		case 2:
			return s.name(&t.Arm)
		case 3:
			return s.integer(&t.Copy)
		case 4:
			return s.integer(&t.Slot)
		case 5:
			raw, ok := s.raw()
			return ok && t.Started.UnmarshalJSON(raw) == nil
		case 6:
			return s.float(&t.Elapsed)
		case 7:
			return s.integer(&t.Turns)
		case 8:
			return s.metrics(t)
		case 9:
			return s.errors(t)
		case 10:
			return s.base64(&t.Latency)
		case 11:
			return s.list(func() bool {
				t.Interval = append(t.Interval, 0)
				return s.float(&t.Interval[len(t.Interval)-1])
			})
		case 12:
			return s.audit(&t.Audit)
		case 13:
			return s.services(t)
		case 14:
			return s.text(&t.Invalid)
		default:
			return s.texts(&t.Warnings)
		}
	})
	return t, ok && s.is('}') && s.i == len(s.b)
}

// metrics reads an object of numbers whose keys ascend. Its names are those
// of the scenario's last trial where they are the same.
func (s *scanner) metrics(t *Trial) bool {
	if !s.is('{') {
		return false
	}
	if s.is('}') {
		return true
	}
	names := s.last[t.Scenario]
	values := make([]float64, 0, len(names))
	same := true
	for {
		i := len(values)
		if same && (i == len(names) || !s.key(names[i])) {
			same, names = false, slices.Clone(names[:i])
		}
		if !same {
			var name string
			if !s.name(&name) || !s.is(':') || i > 0 && name <= names[i-1] {
				return false
			}
			names = append(names, name)
		}
		values = append(values, 0)
		if !s.float(&values[i]) {
			return false
		}
		if !s.is(',') {
			break
		}
	}
	t.Metrics = Metrics{names[:len(values)], values}
	s.last[t.Scenario] = t.Metrics.names
	return s.is('}')
}

func (s *scanner) errors(t *Trial) bool {
	return s.list(func() bool {
		var e ErrorCount
		ok := s.object(errorKeys, func(key int) bool {
			switch key {
			case 0:
				return s.name(&e.Class)
			case 1:
				return s.integer64(&e.Count)
			default:
				return s.texts(&e.First)
			}
		})
		t.Errors = append(t.Errors, e)
		return ok
	})
}

func (s *scanner) services(t *Trial) bool {
	return s.list(func() bool {
		var u ServiceUse
		ok := s.object(serviceKeys, func(key int) bool {
			switch key {
			case 0:
				return s.name(&u.Name)
			case 1:
				return s.float(&u.Busy)
			default:
				return s.integer64(&u.MaxRSS)
			}
		})
		t.Services = append(t.Services, u)
		return ok
	})
}

func (s *scanner) audit(a *Audit) bool {
	floats := [...]*float64{
		0: &a.Steal, 1: &a.GeneratorBusy, 5: &a.OthersCPU, 6: &a.Throttled, 7: &a.TimeWait, 8: &a.Frequency, 9: &a.SoloRPS, 10: &a.LittleMismatch,
	}
	return s.object(auditKeys, func(key int) bool {
		switch key {
		case 2:
			return s.integer64(&a.Involuntary)
		case 3:
			return s.integer(&a.Discarded)
		case 4:
			return s.integer(&a.Cycles)
		}
		return s.float(floats[key])
	})
}

// is steps over one byte, if it is the next.
func (s *scanner) is(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// object reads an object whose keys come in the order of keys, each at most
// once; field reads the value of a key.
func (s *scanner) object(keys []string, field func(key int) bool) bool {
	if !s.is('{') {
		return false
	}
	if s.is('}') {
		return true
	}
	for next := 0; ; {
		for next < len(keys) && !s.key(keys[next]) {
			next++
		}
		if next == len(keys) || !field(next) {
			return false
		}
		next++
		if !s.is(',') {
			return s.is('}')
		}
	}
}

// key steps over this key and its colon, if they are next. The name must be
// one that JSON writes as it is.
func (s *scanner) key(name string) bool {
	end := s.i + len(name) + 3
	if end > len(s.b) || s.b[s.i] != '"' || string(s.b[s.i+1:end-2]) != name || s.b[end-2] != '"' || s.b[end-1] != ':' {
		return false
	}
	s.i = end
	return true
}

// list reads a list with at least one entry.
func (s *scanner) list(entry func() bool) bool {
	if !s.is('[') {
		return false
	}
	for {
		if !entry() {
			return false
		}
		if !s.is(',') {
			return s.is(']')
		}
	}
}

// raw steps over a string without escapes and returns it with its quotes.
func (s *scanner) raw() ([]byte, bool) {
	from := s.i
	if !s.is('"') {
		return nil, false
	}
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[from:s.i], true
		case c < ' ' || c >= utf8.RuneSelf || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// name reads a string that many lines share.
func (s *scanner) name(into *string) bool {
	raw, ok := s.raw()
	if !ok {
		return false
	}
	name, known := s.names[string(raw[1:len(raw)-1])]
	if !known {
		name = string(raw[1 : len(raw)-1])
		s.names[name] = name
	}
	*into = name
	return true
}

// text reads any string.
func (s *scanner) text(into *string) bool {
	from := s.i
	if raw, ok := s.raw(); ok {
		*into = string(raw[1 : len(raw)-1])
		return true
	}
	s.i = from
	if !s.is('"') {
		return false
	}
	for ; s.i < len(s.b) && s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	return s.is('"') && json.Unmarshal(s.b[from:s.i], into) == nil
}

func (s *scanner) texts(into *[]string) bool {
	return s.list(func() bool {
		*into = append(*into, "")
		return s.text(&(*into)[len(*into)-1])
	})
}

func (s *scanner) base64(into *[]byte) bool {
	if !s.is('"') {
		return false
	}
	n := bytes.IndexByte(s.b[s.i:], '"')
	// The decoder passes over line ends, which JSON does not have in a string,
	// and refuses whatever else is not of the alphabet.
	if n < 1 {
		return false
	}
	text := s.b[s.i : s.i+n]
	if bytes.IndexByte(text, '\r') >= 0 || bytes.IndexByte(text, '\n') >= 0 {
		return false
	}
	out, err := base64.StdEncoding.AppendDecode(nil, text)
	*into = out
	s.i += n + 1
	return err == nil
}

// digits steps over at least one digit.
func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// whole steps over the whole part of a number (RFC 8259, section 6).
func (s *scanner) whole() bool {
	s.is('-')
	return s.is('0') || s.digits()
}

func (s *scanner) integer64(into *int64) bool {
	from := s.i
	if !s.whole() {
		return false
	}
	n, err := strconv.ParseInt(string(s.b[from:s.i]), 10, 64)
	*into = n
	return err == nil
}

func (s *scanner) integer(into *int) bool {
	var n int64
	ok := s.integer64(&n)
	*into = int(n)
	return ok && int64(*into) == n
}

func (s *scanner) float(into *float64) bool {
	from := s.i
	if !s.whole() {
		return false
	}
	if s.is('.') && !s.digits() {
		return false
	}
	if s.is('e') || s.is('E') {
		if !s.is('+') {
			s.is('-')
		}
		if !s.digits() {
			return false
		}
	}
	f, err := strconv.ParseFloat(string(s.b[from:s.i]), 64)
	*into = f
	return err == nil
}
