package load

import (
	"bytes"
	"slices"
)

// evidence reads from outside whether CPU time was stolen from some CPUs.
type evidence struct {
	cpus  []int
	read  func(buf []byte) []byte // /proc/stat, into buf where it fits
	buf   []byte
	steal uint64 // at begin
}

// begin notes the steal time so far.
func (e *evidence) begin() { e.steal = e.now() }

// stolen reports whether steal time rose since begin.
func (e *evidence) stolen() bool { return e.now() > e.steal }

// now is the steal time of the CPUs so far, in clock ticks; 0 where it
// cannot be read.
func (e *evidence) now() uint64 {
	if e.read == nil {
		return 0
	}
	e.buf = e.read(e.buf)
	return stealTicks(e.buf, e.cpus)
}

// stealTicks sums the steal column of /proc/stat over some CPUs, or over all
// where none is named.
func stealTicks(stat []byte, cpus []int) uint64 {
	var sum uint64
	for len(stat) > 3 && string(stat[:3]) == "cpu" {
		var line []byte
		line, stat, _ = bytes.Cut(stat, []byte("\n"))
		if len(line) == 3 {
			return sum
		}
		cpu, rest := number(line[3:])
		if line[3] == ' ' || len(cpus) > 0 && !slices.Contains(cpus, int(cpu)) {
			continue // the line of all CPUs together, or another CPU's
		}
		var steal uint64
		for range 8 { // user, nice, system, idle, iowait, irq, softirq, steal
			steal, rest = number(bytes.TrimLeft(rest, " "))
		}
		sum += steal
	}
	return sum
}

// number reads the digits at the start of b.
func number(b []byte) (n uint64, rest []byte) {
	for len(b) > 0 && digit(b[0]) {
		n = n*10 + uint64(b[0]-'0')
		b = b[1:]
	}
	return n, b
}
