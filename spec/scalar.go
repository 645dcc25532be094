package spec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scalar returns the text of a scalar with the references resolved that can
// be resolved now: matrix axes and the environment. Fields that are not
// templates are read through it. interpolated says whether there were any.
func (d *decoder) scalar(v value, want string) (text string, interpolated, ok bool) {
	if v.kind != scalarKind || v.isNull() {
		d.typeError(v, want, "")
		return "", false, false
	}
	if !strings.Contains(v.text, "${") {
		return v.text, false, true
	}
	t, ok := d.references(v, scopeNow)
	if !ok || d.dry && strings.Contains(v.text, "${matrix.") {
		return "", true, false
	}
	s, err := t.Expand(nil, d.o.Env)
	if err != nil {
		return "", true, false // references reported it
	}
	return s, true, true
}

// str reads text that is used as it is, such as a path or a label.
func (d *decoder) str(v value, want string) (string, bool) {
	if v.kind == scalarKind && !v.isNull() && v.tag != tagStr {
		d.typeError(v, want, "quote it: "+strconv.Quote(v.text))
		return "", false
	}
	s, _, ok := d.scalar(v, want)
	if ok && s == "" {
		d.errorOn(v.node, kindEmpty, v.key+": expected "+want+", found empty text", "")
		return "", false
	}
	return s, ok
}

// integer reads a whole number within bounds.
func (d *decoder) integer(v value, least, most int64) (int64, bool) {
	want := "a whole number"
	if v.kind == scalarKind && v.tag == tagStr && !strings.Contains(v.text, "${") {
		d.typeError(v, want, numberHint(v))
		return 0, false
	}
	s, interpolated, ok := d.scalar(v, want)
	if !ok {
		return 0, false
	}
	if !interpolated && v.tag != tagInt && v.tag != tagFloat {
		d.typeError(v, want, "")
		return 0, false
	}
	n, err := parseInt(s)
	if err != nil {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), err.Error())
		return 0, false
	}
	if n < least || n > most {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected a number %s, found %s", v.key, bounds(least, most), found(v, s)), "")
		return 0, false
	}
	return n, true
}

func bounds(least, most int64) string {
	if most == math.MaxInt64 {
		return fmt.Sprintf("of at least %d", least)
	}
	return fmt.Sprintf("from %d to %d", least, most)
}

// found shows a scalar, and what its references came to.
func found(v value, s string) string {
	if s == v.text {
		return v.describe()
	}
	return fmt.Sprintf("%s (which is %s)", v.describe(), quote(s))
}

// parseInt parses a plain decimal number. YAML knows other spellings, and
// its versions disagree about them: 010 is 8 to one reader and 10 to another.
func parseInt(s string) (int64, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	switch {
	case len(digits) > 1 && digits[0] == '0' && strings.IndexFunc(digits, notDigit) < 0:
		return 0, fmt.Errorf("a leading zero means octal to some readers of YAML; write %s", strings.TrimLeft(digits, "0"))
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0o"), strings.HasPrefix(digits, "0b"):
		return 0, fmt.Errorf("write a plain decimal number")
	case strings.Contains(digits, "_"):
		return 0, fmt.Errorf("write %s, without underscores", strings.ReplaceAll(s, "_", ""))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil {
		return n, nil
	}
	f, ferr := strconv.ParseFloat(s, 64)
	switch {
	case ferr == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53:
		return int64(f), nil // 100.0, which JSON Schema takes for a whole number, too
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("it is too large")
	case ferr == nil && isFinite(f):
		return 0, fmt.Errorf("write %d or %d", int64(math.Floor(f)), int64(math.Ceil(f)))
	}
	return 0, fmt.Errorf("write a plain decimal number such as 100")
}

func notDigit(r rune) bool { return r < '0' || r > '9' }

// numberHint says how text that looks like a number becomes one.
func numberHint(v value) string {
	if _, err := strconv.ParseFloat(v.text, 64); err == nil {
		return "remove the quotes: " + v.text
	}
	if f, ok := percent(v.text); ok {
		return "write " + f + " for " + v.text
	}
	if plain := strings.NewReplacer(",", "", "_", "", " ", "", "'", "").Replace(v.text); plain != v.text {
		if _, err := strconv.ParseInt(plain, 10, 64); err == nil {
			return "write " + plain
		}
	}
	if s, ok := strings.CutSuffix(strings.ToLower(v.text), "k"); ok {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return "write " + strconv.FormatFloat(f*1000, 'f', -1, 64)
		}
	}
	return ""
}

// percent turns "5%" into "0.05".
func percent(s string) (string, bool) {
	p, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	if !ok {
		return "", false
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
	if err != nil {
		return "", false
	}
	return strconv.FormatFloat(math.Round(f*1e10)/1e12, 'f', -1, 64), true
}

// number reads a fraction or other real number within bounds.
func (d *decoder) number(v value, least, most float64) (float64, bool) {
	want := "a number"
	if v.kind == scalarKind && v.tag == tagStr && !strings.Contains(v.text, "${") {
		d.typeError(v, want, numberHint(v))
		return 0, false
	}
	s, interpolated, ok := d.scalar(v, want)
	if !ok {
		return 0, false
	}
	if !interpolated && v.tag != tagInt && v.tag != tagFloat {
		d.typeError(v, want, "")
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(s, "_xX") {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), "write a plain decimal number such as 0.01")
		return 0, false
	}
	if f < least || f > most {
		hint := ""
		if f > 1 && most == 1 {
			hint = fmt.Sprintf("write %s for %s%%", strconv.FormatFloat(f/100, 'f', -1, 64), s)
		}
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected a number from %v to %v, found %s", v.key, least, most, found(v, s)), hint)
		return 0, false
	}
	return f, true
}

// boolean reads true or false.
func (d *decoder) boolean(v value) (bool, bool) {
	want := "true or false"
	s, interpolated, ok := d.scalar(v, want)
	if !ok {
		return false, false
	}
	if v.tag == tagBool || interpolated && (s == "true" || s == "false") {
		return strings.EqualFold(s, "true"), true
	}
	d.errorOn(v.node, kindWrongType, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), boolHint(v.node))
	return false, false
}

func boolHint(n *node) string {
	switch strings.ToLower(n.text) {
	case "true", "false":
		return "remove the quotes: " + strings.ToLower(n.text)
	case "on", "yes", "y", "1":
		return fmt.Sprintf("%s is text to YAML 1.2; write true", n.text)
	case "off", "no", "n", "0":
		return fmt.Sprintf("%s is text to YAML 1.2; write false", n.text)
	}
	return ""
}

// choice reads one of a few words.
func (d *decoder) choice(v value, words ...string) (string, bool) {
	want := "one of " + strings.Join(words, ", ")
	s, _, ok := d.scalar(v, want)
	if !ok {
		return "", false
	}
	if slices.Contains(words, s) {
		return s, true
	}
	hint := ""
	if near := Nearest(s, words); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, strings.TrimPrefix(s, "SIG")) }); i >= 0 {
		hint = fmt.Sprintf("did you mean %q?", words[i])
	}
	d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), hint)
	return "", false
}

// duration reads a duration such as 500ms, within bounds.
func (d *decoder) duration(v value, least, most time.Duration) (time.Duration, bool) {
	want := "a duration such as 10s"
	if v.isNumber() {
		d.errorOn(v.node, kindUnit, fmt.Sprintf("%s: expected %s, found %s, which has no unit", v.key, want, v.describe()), durationHint(v.text))
		return 0, false
	}
	s, _, ok := d.scalar(v, want)
	if !ok {
		return 0, false
	}
	t, err := time.ParseDuration(s)
	if err != nil || v.tag == tagBool || s == "0" {
		d.errorOn(v.node, kindUnit, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), durationHint(s))
		return 0, false
	}
	if t < least || t > most {
		msg := fmt.Sprintf("%s: expected a duration from %s to %s, found %s", v.key, shortDuration(least), shortDuration(most), s)
		d.errorOn(v.node, kindBadValue, msg, "")
		return 0, false
	}
	return t, true
}

// shortDuration writes 10m0s as 10m.
func shortDuration(t time.Duration) string {
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

const (
	longest = 7 * 24 * time.Hour
	day     = 24 * time.Hour
)
