package proc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers that ParseCPUs accepts, so that a mistyped range
// does not become a list of millions.
const maxCPU = 8191

// CPUs is a set of logical CPU numbers, ascending and without repeats.
type CPUs []int

// ParseCPUs reads a CPU list in the kernel's notation, "0,2-3,8-14:2": the
// last is every second CPU of that range. The empty string is the empty set.
func ParseCPUs(s string) (CPUs, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var c CPUs
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, step, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", s, err)
		}
		for n := lo; n <= hi; n += step {
			c = append(c, n)
		}
	}
	return c.normal(), nil
}

// parseRange reads "3", "0-3" or "0-8:2".
func parseRange(s string) (lo, hi, step int, err error) {
	bounds, stride, strided := strings.Cut(s, ":")
	first, last, ranged := strings.Cut(bounds, "-")
	if lo, err = parseCPU(first); err != nil {
		return 0, 0, 0, err
	}
	hi, step = lo, 1
	if ranged {
		if hi, err = parseCPU(last); err != nil {
			return 0, 0, 0, err
		}
	}
	if strided {
		if step, err = parseCPU(stride); err != nil {
			return 0, 0, 0, err
		}
	}
	switch {
	case hi < lo:
		return 0, 0, 0, fmt.Errorf("range %q ends before it begins", s)
	case strided && (!ranged || step == 0):
		return 0, 0, 0, fmt.Errorf("step in %q needs a range before it and must be at least 1", s)
	}
	return lo, hi, step, nil
}

// parseCPU reads one number, digits only.
func parseCPU(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("found %q, expected a CPU number, a range such as 2-3, or several with commas between them", s)
	}
	if n > maxCPU {
		return 0, fmt.Errorf("CPU number %d is above the largest supported, %d", n, maxCPU)
	}
	return int(n), nil
}

// String is the list in the kernel's notation, "0,2-3"; ParseCPUs reads it.
func (c CPUs) String() string {
	var b strings.Builder
	for i := 0; i < len(c); {
		j := i
		for j+1 < len(c) && c[j+1] == c[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(c[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(c[j]))
		}
		i = j + 1
	}
	return b.String()
}

// Has reports whether n is in the set.
func (c CPUs) Has(n int) bool {
	_, found := slices.BinarySearch(c, n)
	return found
}

// Minus is the set of those CPUs of c that are not in d.
func (c CPUs) Minus(d CPUs) CPUs {
	return slices.DeleteFunc(slices.Clone(c), d.Has)
}

// And is the set of those CPUs that are in both.
func (c CPUs) And(d CPUs) CPUs {
	return slices.DeleteFunc(slices.Clone(c), func(n int) bool { return !d.Has(n) })
}

// Equal reports whether both are the same set.
func (c CPUs) Equal(d CPUs) bool { return slices.Equal(c, d) }

// normal sorts and removes repeats, in place.
func (c CPUs) normal() CPUs {
	slices.Sort(c)
	return slices.Compact(c)
}
