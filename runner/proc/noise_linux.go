package proc

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// noiseWatch is how long ReadNoise watches the CPUs: long enough for the
// kernel's ticks of 10 ms to tell one percent.
const noiseWatch = time.Second

// ReadNoise looks at what makes noise on this machine. It takes about a
// second, in which it watches what the CPUs do.
func ReadNoise() []Finding {
	h := ReadHost()
	avail, _ := Available()
	before, errBefore := ReadCPUTimes()
	time.Sleep(noiseWatch)
	after, errAfter := ReadCPUTimes()
	found := []Finding{cpuCount(len(avail)), sharedCores(h), frequency(h), turboFinding(h), virtual(h), quota(h)}
	if errBefore == nil && errAfter == nil {
		found = append(found, otherLoad(avail, before, after), stolen(avail, before, after))
	}
	return append(found, kernelFindings(os.DirFS("/"))...)
}

func cpuCount(n int) Finding {
	f := Finding{OK: n >= 2, What: "CPUs", Found: fmt.Sprintf("%d usable", n)}
	if !f.OK {
		f.Means = "servers and the load generator share a CPU: each slows the other down"
		f.Do = "use a machine with two CPUs or more"
	}
	return f
}

func sharedCores(h Host) Finding {
	f := Finding{OK: !h.SMT, What: "hyperthreads", Found: "no two CPUs share a core, as far as the kernel knows"}
	if h.SMT {
		f.Found = "CPUs share cores"
		f.Means = "what runs on the sibling of the servers' CPU slows them down"
		f.Do = "keep pins at auto, which leaves the sibling idle, or switch SMT off: echo off > /sys/devices/system/cpu/smt/control"
	}
	return f
}

func frequency(h Host) Finding {
	switch h.Governor {
	case "":
		return Finding{OK: true, What: "frequency governor", Found: "not readable here"}
	case "performance":
		return Finding{OK: true, What: "frequency governor", Found: h.Governor}
	}
	return Finding{
		What: "frequency governor", Found: h.Governor,
		Means: "the CPU's speed follows the load, and lags behind it",
		Do:    "cpupower frequency-set --governor performance",
	}
}

func turboFinding(h Host) Finding {
	if h.Turbo != "on" {
		return Finding{OK: true, What: "turbo", Found: orUnreadable(h.Turbo)}
	}
	return Finding{
		What: "turbo", Found: "on",
		Means: "the CPU's speed depends on its temperature and on what other cores do; turns see the same speed, absolute figures drift",
		Do:    "switch it off where absolute figures matter: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost",
	}
}

func orUnreadable(s string) string {
	if s == "" {
		return "not readable here"
	}
	return s
}

func virtual(h Host) Finding {
	if h.Hypervisor == "" {
		return Finding{OK: true, What: "virtual machine", Found: "no"}
	}
	return Finding{
		What: "virtual machine", Found: hypervisorName(h.Hypervisor),
		Means: "neighbours share the caches, the memory and perhaps the core, and cannot be seen from here",
		Do:    "use dedicated hosts, or more blocks",
	}
}

func quota(h Host) Finding {
	if h.CPUQuota == 0 {
		return Finding{OK: true, What: "control group CPU limit", Found: "none"}
	}
	return Finding{
		What: "control group CPU limit", Found: fmt.Sprintf("%g CPUs", h.CPUQuota),
		Means: "the kernel stops everything for the rest of a period once the limit is reached: stalls of tens of milliseconds",
		Do:    "run without a CPU limit, or give the container whole CPUs (a cpuset)",
	}
}

// otherLoad tells what ran beside this process, which slept.
func otherLoad(avail CPUs, before, after map[int]CPUTimes) Finding {
	var busy []string
	for _, cpu := range avail {
		d := after[cpu].Busy() - before[cpu].Busy()
		total := after[cpu].Total() - before[cpu].Total()
		if total > 0 && float64(d) > 0.05*float64(total) {
			busy = append(busy, fmt.Sprintf("CPU %d %.0f%% busy", cpu, 100*float64(d)/float64(total)))
		}
	}
	if busy == nil {
		return Finding{OK: true, What: "other load", Found: "below 5% on every CPU"}
	}
	return Finding{
		What: "other load", Found: strings.Join(busy, ", "),
		Means: "other processes take time from servers and generator, and evict their caches",
		Do:    "stop them, or pin servers and load to CPUs that they do not use",
	}
}

func stolen(avail CPUs, before, after map[int]CPUTimes) Finding {
	var steal, total time.Duration
	for _, cpu := range avail {
		steal += after[cpu].Steal - before[cpu].Steal
		total += after[cpu].Total() - before[cpu].Total()
	}
	if total <= 0 || steal == 0 {
		return Finding{OK: true, What: "stolen CPU time", Found: "none in this second"}
	}
	return Finding{
		What: "stolen CPU time", Found: fmt.Sprintf("%.1f%% of this second", 100*float64(steal)/float64(total)),
		Means: "the hypervisor runs others on our CPUs; cycles that it hits are discarded for all copies alike",
		Do:    "use a machine that is not oversold, or more blocks",
	}
}

// kernelFindings reads settings of the kernel; root is "/" but in tests.
func kernelFindings(root fs.FS) []Finding {
	var found []Finding
	if s, err := readLine(root, "proc/sys/kernel/randomize_va_space"); err == nil {
		f := Finding{OK: true, What: "address randomisation", Found: "on: every start has another memory layout, and fresh starts in every block average over them"}
		if s == "0" {
			f = Finding{
				What: "address randomisation", Found: "off",
				Means: "every start has the same memory layout, so that a lucky one of one arm looks like a speed-up",
				Do:    "sysctl kernel.randomize_va_space=2",
			}
		}
		found = append(found, f)
	}
	if b, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		found = append(found, swap(b))
	}
	if s, err := readLine(root, "sys/kernel/mm/transparent_hugepage/enabled"); err == nil {
		f := Finding{OK: true, What: "transparent huge pages", Found: s}
		if strings.Contains(s, "[always]") {
			f.OK = false
			f.Means = "some starts get huge pages and some do not, which makes starts differ"
			f.Do = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
		}
		found = append(found, f)
	}
	if _, err := fs.Stat(root, "sys/bus/event_source/devices/cpu"); err != nil {
		found = append(found, Finding{
			What: "hardware counters", Found: "none",
			Means: "instructions and cache misses cannot be counted here, only time",
		})
	} else {
		found = append(found, Finding{OK: true, What: "hardware counters", Found: "present"})
	}
	return found
}

func swap(meminfo []byte) Finding {
	total, _ := statusField(meminfo, "SwapTotal")
	free, _ := statusField(meminfo, "SwapFree")
	kb := func(s string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
		return n
	}
	used := kb(total) - kb(free)
	if used <= 0 {
		return Finding{OK: true, What: "swap", Found: "none in use"}
	}
	return Finding{
		What: "swap", Found: fmt.Sprintf("%d MiB in use", used>>10),
		Means: "a page that comes back from the disk stops its process for milliseconds",
		Do:    "free memory, then swapoff -a",
	}
}

// hypervisorName is what is known of the hypervisor: some only admit that
// they are one.
func hypervisorName(name string) string {
	if name == "yes" {
		return "yes, of an unknown kind"
	}
	return "yes, " + name
}
