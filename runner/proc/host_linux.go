package proc

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReadTopology reads which CPUs share a core.
func ReadTopology() (Topology, error) {
	return topologyFrom(os.DirFS("/sys/devices/system/cpu"))
}

// ReadCPUTimes reads what every CPU has done, by CPU number.
func ReadCPUTimes() (map[int]CPUTimes, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("read CPU times: %w", err)
	}
	return parseCPUTimes(string(b))
}

// parseCPUTimes reads the lines of /proc/stat that begin with "cpuN". Guest
// time is part of user time already.
func parseCPUTimes(s string) (map[int]CPUTimes, error) {
	out := map[int]CPUTimes{}
	for line := range strings.SplitSeq(s, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "cpu" || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		n, err := strconv.Atoi(f[0][3:])
		if err != nil || len(f) < 9 {
			return nil, fmt.Errorf("read CPU times: found %q, expected cpuN and at least 8 times", clip(line, 80))
		}
		var v [8]time.Duration
		for i := range v {
			ticks, err := strconv.ParseInt(f[i+1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read CPU times: CPU %d: %w", n, err)
			}
			v[i] = time.Duration(ticks) * tick
		}
		out[n] = CPUTimes{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read CPU times: found no CPU in /proc/stat")
	}
	return out, nil
}

// ReadHost reads facts of this machine. What cannot be read stays empty.
func ReadHost() Host {
	h := hostFrom(os.DirFS("/"))
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	avail, err := Available()
	if err != nil {
		avail = nil
	}
	h.Cores = len(avail)
	if h.Cores == 0 {
		h.Cores = runtime.NumCPU()
	}
	if topo, err := ReadTopology(); err == nil {
		h.SMT = topo.SMT()
		h.Physical = topo.cores(avail)
	}
	h.Notes = append(h.Notes, hostNotes(h)...)
	return h
}

// hostFrom reads what stands in files; root is "/" but in tests.
func hostFrom(root fs.FS) Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	if b, err := fs.ReadFile(root, "proc/cpuinfo"); err == nil {
		h.CPU = cpuModel(string(b))
		if strings.Contains(string(b), " hypervisor") {
			h.Hypervisor = "yes"
		}
	}
	if b, err := fs.ReadFile(root, "etc/os-release"); err == nil {
		for line := range strings.SplitSeq(string(b), "\n") {
			if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				h.OS = strings.Trim(v, `"'`)
			}
		}
	}
	if b, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		if v, ok := statusField(b, "MemTotal"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(v, " kB"), 10, 64)
			h.MemTotal = kb << 10
		}
	}
	h.Governor, _ = readLine(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	h.Turbo = turbo(root)
	if name := hypervisor(root); name != "" {
		h.Hypervisor = name
	}
	h.Container = container(root)
	h.CPUQuota = cpuQuota(root)
	return h
}

// cpuModel is the name of the CPU: architectures call the field differently.
func cpuModel(cpuinfo string) string {
	for _, key := range []string{"model name", "Model", "cpu model", "cpu", "CPU part"} {
		for line := range strings.SplitSeq(cpuinfo, "\n") {
			name, value, ok := strings.Cut(line, ":")
			if ok && strings.TrimSpace(name) == key {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

// turbo tells whether the CPUs may exceed their nominal frequency.
func turbo(root fs.FS) string {
	if s, err := readLine(root, "sys/devices/system/cpu/intel_pstate/no_turbo"); err == nil {
		return map[string]string{"0": "on", "1": "off"}[s]
	}
	if s, err := readLine(root, "sys/devices/system/cpu/cpufreq/boost"); err == nil {
		return map[string]string{"1": "on", "0": "off"}[s]
	}
	return ""
}

// hypervisor names the virtual machine that this is, by what its firmware says.
func hypervisor(root fs.FS) string {
	if s, err := readLine(root, "sys/hypervisor/type"); err == nil && s != "" {
		return s
	}
	vendor, _ := readLine(root, "sys/class/dmi/id/sys_vendor")
	product, _ := readLine(root, "sys/class/dmi/id/product_name")
	dmi := strings.ToLower(vendor + " " + product)
	for _, known := range []struct{ word, name string }{
		{"qemu", "kvm"}, {"kvm", "kvm"}, {"amazon ec2", "kvm (Amazon EC2)"}, {"google", "kvm (Google Compute Engine)"},
		{"vmware", "vmware"}, {"virtualbox", "virtualbox"}, {"microsoft corporation virtual", "hyper-v"},
		{"xen", "xen"}, {"parallels", "parallels"}, {"bochs", "bochs"}, {"openstack", "kvm (OpenStack)"},
	} {
		if strings.Contains(dmi, known.word) {
			return known.name
		}
	}
	return ""
}

// container names the kind of container that this is in.
func container(root fs.FS) string {
	exists := func(name string) bool { _, err := fs.Stat(root, name); return err == nil }
	if exists(".dockerenv") {
		return "docker"
	}
	if exists("run/.containerenv") {
		return "podman"
	}
	if exists("var/run/secrets/kubernetes.io") {
		return "kubernetes"
	}
	b, _ := fs.ReadFile(root, "proc/1/environ")
	for e := range strings.SplitSeq(string(b), "\x00") {
		if v, ok := strings.CutPrefix(e, "container="); ok {
			return v
		}
	}
	b, _ = fs.ReadFile(root, "proc/1/cgroup")
	for _, word := range []string{"docker", "kubepods", "lxc", "containerd"} {
		if strings.Contains(string(b), word) {
			return word
		}
	}
	return ""
}

// cpuQuota is the smallest limit of CPU time of our group and those above it,
// in CPUs; 0 where there is none.
func cpuQuota(root fs.FS) float64 {
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0
	}
	self, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	quota := 0.0
	lower := func(q float64) {
		if q > 0 && (quota == 0 || q < quota) {
			quota = q
		}
	}
	if dir, err := ownCgroup(string(mounts), string(self)); err == nil {
		eachParent(dir, func(d string) {
			s, _ := readLine(root, d+"/cpu.max")
			lower(parseQuota(strings.Fields(s)))
		})
	}
	if dir, ok := ownCgroupV1(string(mounts), string(self), "cpu"); ok {
		eachParent(dir, func(d string) {
			q, _ := readLine(root, d+"/cpu.cfs_quota_us")
			p, _ := readLine(root, d+"/cpu.cfs_period_us")
			lower(parseQuota([]string{q, p}))
		})
	}
	return quota
}

// parseQuota reads quota and period in microseconds.
func parseQuota(f []string) float64 {
	if len(f) != 2 {
		return 0
	}
	q, err1 := strconv.ParseFloat(f[0], 64)
	p, err2 := strconv.ParseFloat(f[1], 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0 // "max" or -1
	}
	return q / p
}

// eachParent calls f for a folder and those above it, as names in an fs.FS.
func eachParent(dir string, f func(string)) {
	for dir = strings.TrimPrefix(path.Clean(dir), "/"); dir != "." && dir != "" && dir != "sys/fs"; dir = path.Dir(dir) {
		f(dir)
	}
}

// ownCgroupV1 is the folder of our group in a hierarchy of version 1.
func ownCgroupV1(mountinfo, self, controller string) (string, bool) {
	mount, root, ok := findMount(mountinfo, "cgroup", controller)
	if !ok {
		return "", false
	}
	for line := range strings.SplitSeq(self, "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) == 3 && strings.Contains(","+f[1]+",", ","+controller+",") {
			dir, err := joinMount(mount, root, f[2])
			return dir, err == nil
		}
	}
	return "", false
}

// cores counts the physical cores among some CPUs, 0 where that is not known.
func (t Topology) cores(avail CPUs) int {
	seen := map[string]bool{}
	for _, c := range t.CPUs {
		if avail.Has(c.CPU) {
			seen[c.Siblings.String()] = true
		}
	}
	return len(seen)
}

// hostNotes says what the facts mean for a measurement.
func hostNotes(h Host) []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if h.CPUQuota > 0 && h.CPUQuota < float64(h.Cores) {
		add("the control group may use %.2g CPUs of %d: servers and generator are stopped for the rest of each period once it is used up", h.CPUQuota, h.Cores)
	}
	if h.Hypervisor != "" {
		add("this is a virtual machine (%s): its neighbours slow it, of which stolen time shows a part, and what it shows as cores may be hyperthreads of one", h.Hypervisor)
	}
	if h.Governor != "" && h.Governor != "performance" {
		add("the frequency governor is %q: the CPU's speed follows the load; performance would hold it", h.Governor)
	}
	return notes
}
