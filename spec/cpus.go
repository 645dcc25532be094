package spec

import (
	"fmt"
	"strconv"
	"strings"
)

const maxCPU = 8191

// parseCPUs reads a CPU list such as "0,2-3".
func parseCPUs(s string) ([]int, error) {
	if strings.TrimSpace(s) == "" {
		return nil, fmt.Errorf("the list is empty")
	}
	var out []int
	seen := map[int]bool{}
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		from, to, isRange := strings.Cut(item, "-")
		lo, err := strconv.Atoi(from)
		if err != nil || lo < 0 || lo > maxCPU {
			return nil, fmt.Errorf("%q is not a CPU", item)
		}
		hi := lo
		if isRange {
			if hi, err = strconv.Atoi(to); err != nil || hi > maxCPU {
				return nil, fmt.Errorf("%q is not a range of CPUs", item)
			}
		}
		if hi < lo {
			return nil, fmt.Errorf("the range %q runs backwards", item)
		}
		for c := lo; c <= hi; c++ {
			if seen[c] {
				return nil, fmt.Errorf("CPU %d is listed twice", c)
			}
			seen[c] = true
			out = append(out, c)
		}
	}
	return out, nil
}
