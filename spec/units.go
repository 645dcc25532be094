package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// splitUnit splits "10 min" into its number and its unit.
func splitUnit(s string) (num, unit string) {
	s = strings.TrimSpace(s)
	i := strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && r != '.' && r != '-' && r != '+' && r != ','
	})
	if i < 0 {
		return s, ""
	}
	return strings.TrimSpace(s[:i]), strings.TrimSpace(s[i:])
}

// durationHint guesses what a text that is no duration was meant to be.
func durationHint(s string) string {
	num, unit := splitUnit(s)
	num = strings.Replace(num, ",", ".", 1)
	f, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return "units are ns, us, ms, s, m and h"
	}
	switch strings.ToLower(strings.TrimSuffix(unit, ".")) {
	case "":
		return fmt.Sprintf("write %ss or %sms", num, num)
	case "sec", "secs", "second", "seconds", "s":
		return "write " + num + "s"
	case "min", "mins", "minute", "minutes", "m":
		return "write " + num + "m"
	case "hour", "hours", "hr", "hrs", "h":
		return "write " + num + "h"
	case "msec", "msecs", "millis", "millisecond", "milliseconds", "ms":
		return "write " + num + "ms"
	case "usec", "micros", "microsecond", "microseconds", "us", "µs":
		return "write " + num + "us"
	case "d", "day", "days":
		return "write " + strconv.FormatFloat(f*24, 'f', -1, 64) + "h"
	}
	return "units are ns, us, ms, s, m and h"
}

// sizeUnits are the units of sizes, in bytes.
func sizeUnit(unit string) (float64, bool) {
	switch unit {
	case "B":
		return 1, true
	case "kB":
		return 1e3, true
	case "KiB":
		return 1 << 10, true
	case "MB":
		return 1e6, true
	case "MiB":
		return 1 << 20, true
	case "GB":
		return 1e9, true
	case "GiB":
		return 1 << 30, true
	}
	return 0, false
}

// parseSize reads a size such as 20B or 1.5MiB, in bytes.
func parseSize(s string) (int64, error) {
	num, unit := splitUnit(s)
	mul, known := sizeUnit(unit)
	f, err := strconv.ParseFloat(num, 64)
	switch {
	case err != nil || f < 0:
		return 0, fmt.Errorf("units are B, kB, KiB, MB, MiB, GB and GiB")
	case unit == "":
		return 0, fmt.Errorf("write %sB or %skB", num, num)
	case !known:
		return 0, fmt.Errorf("%s", sizeHint(num, unit))
	case num+unit != s:
		return 0, fmt.Errorf("write %s%s", num, unit)
	case f*mul != math.Trunc(f*mul) || f*mul > 1<<53:
		return 0, fmt.Errorf("a size is a whole number of bytes")
	}
	return int64(f * mul), nil
}

func sizeHint(num, unit string) string {
	switch strings.ToLower(unit) {
	case "b", "byte", "bytes":
		return "write " + num + "B"
	case "k", "kb", "kbyte", "kbytes":
		return fmt.Sprintf("write %skB (1000 bytes) or %sKiB (1024 bytes)", num, num)
	case "ki", "kib":
		return "write " + num + "KiB"
	case "m", "mb", "mbyte", "mbytes":
		return fmt.Sprintf("write %sMB (1000 kB) or %sMiB (1024 KiB)", num, num)
	case "mi", "mib":
		return "write " + num + "MiB"
	case "g", "gb":
		return fmt.Sprintf("write %sGB or %sGiB", num, num)
	case "gi", "gib":
		return "write " + num + "GiB"
	}
	return "units are B, kB, KiB, MB, MiB, GB and GiB"
}

// size reads a size in bytes within bounds.
func (d *decoder) size(v value, least, most int64) (int64, bool) {
	want := "a size such as 20B or 64KiB"
	if v.isNumber() {
		d.errorOn(v.node, kindUnit, fmt.Sprintf("%s: expected %s, found %s, which has no unit", v.key, want, v.describe()), fmt.Sprintf("write %sB or %skB", v.text, v.text))
		return 0, false
	}
	s, _, ok := d.scalar(v, want)
	if !ok {
		return 0, false
	}
	n, err := parseSize(s)
	if err != nil {
		d.errorOn(v.node, kindUnit, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), err.Error())
		return 0, false
	}
	if n < least || n > most {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected a size from %dB to %dB, found %s", v.key, least, most, s), "")
		return 0, false
	}
	return n, true
}

const maxRate = 1e8

// rate reads a rate such as 2000/s.
func (d *decoder) rate(v value) (float64, bool) {
	want := "a rate such as 2000/s"
	if v.isNumber() {
		d.errorOn(v.node, kindUnit, fmt.Sprintf("%s: expected %s, found %s, which has no unit", v.key, want, v.describe()), "write "+v.text+"/s")
		return 0, false
	}
	s, _, ok := d.scalar(v, want)
	if !ok {
		return 0, false
	}
	num, unit := splitUnit(s)
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || unit != "/s" || num+unit != s {
		d.errorOn(v.node, kindUnit, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), rateHint(num, unit))
		return 0, false
	}
	if f <= 0 || f > maxRate {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected a rate above 0/s and at most %d/s, found %s", v.key, int64(maxRate), s), "")
		return 0, false
	}
	return f, true
}

func rateHint(num, unit string) string {
	f, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return "rates are per second, such as 2000/s or 0.5/s"
	}
	switch strings.ToLower(strings.ReplaceAll(unit, " ", "")) {
	case "", "/s", "rps", "qps", "req/s", "/sec", "/second", "r/s", "hz", "persecond":
		return "write " + num + "/s"
	case "/m", "/min", "/minute", "rpm":
		return "rates are per second: write " + strconv.FormatFloat(f/60, 'g', 6, 64) + "/s"
	case "/h", "/hour":
		return "rates are per second: write " + strconv.FormatFloat(f/3600, 'g', 6, 64) + "/s"
	case "k", "k/s":
		return "write " + strconv.FormatFloat(f*1000, 'f', -1, 64) + "/s"
	}
	return "rates are per second, such as 2000/s or 0.5/s"
}

func parseDuration(s string) (time.Duration, error) { return time.ParseDuration(s) }

// trimFloat writes a number in full, without an exponent.
func trimFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
