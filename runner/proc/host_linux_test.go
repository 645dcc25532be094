package proc

import (
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func files(kv ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = &fstest.MapFile{Data: []byte(kv[i+1])}
	}
	return m
}

func TestHostFrom(t *testing.T) {
	for _, c := range []struct {
		name string
		fs   fstest.MapFS
		want Host
	}{
		{"nothing can be read", files(), Host{OS: "linux"}},
		{"a virtual machine of a cloud", files(
			"proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t\t: fpu hypervisor lahf_lm\n",
			"etc/os-release", "NAME=Ubuntu\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n",
			"proc/meminfo", "MemTotal:       16369756 kB\nMemFree: 1 kB\n",
			"sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n",
			"sys/class/dmi/id/product_name", "Virtual Machine\n",
		), Host{CPU: "AMD EPYC 7763 64-Core Processor", OS: "Ubuntu 24.04 LTS", MemTotal: 16369756 << 10, Hypervisor: "hyper-v"}},
		{"a hypervisor without a name", files("proc/cpuinfo", "flags : fpu hypervisor\n"), Host{OS: "linux", Hypervisor: "yes"}},
		{"a Raspberry Pi", files(
			"proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd08\n\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "ondemand\n",
			"sys/devices/system/cpu/cpufreq/boost", "0\n",
		), Host{CPU: "Raspberry Pi 4 Model B Rev 1.4", OS: "linux", Governor: "ondemand", Turbo: "off"}},
		{"a container with a quota, version 2", files(
			".dockerenv", "",
			"sys/devices/system/cpu/intel_pstate/no_turbo", "0",
			"proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"proc/self/cgroup", "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max", "max 100000\n",
			"sys/fs/cgroup/a/cpu.max", "150000 100000\n",
		), Host{OS: "linux", Container: "docker", Turbo: "on", CPUQuota: 1.5}},
		{"a container with a quota, version 1", files(
			"proc/1/cgroup", "4:cpu,cpuacct:/kubepods/x\n",
			"proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
			"proc/self/cgroup", "4:cpu,cpuacct:/kubepods/x\n",
			"sys/fs/cgroup/cpu,cpuacct/kubepods/x/cpu.cfs_quota_us", "50000",
			"sys/fs/cgroup/cpu,cpuacct/kubepods/x/cpu.cfs_period_us", "100000",
			"sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.cfs_quota_us", "-1",
			"sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.cfs_period_us", "100000",
		), Host{OS: "linux", Container: "kubepods", CPUQuota: 0.5}},
		{"another container", files("proc/1/environ", "A=b\x00container=systemd-nspawn\x00"), Host{OS: "linux", Container: "systemd-nspawn"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := hostFrom(c.fs)
			got.Arch = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-expected +found):\n%s", diff)
			}
		})
	}
}

func TestReadHost(t *testing.T) {
	h := ReadHost()
	if h.CPU == "" || h.Cores < 1 || h.Kernel == "" || h.OS == "" || h.Arch == "" || h.MemTotal < 1<<20 {
		t.Errorf("found %+v", h)
	}
}

func TestHostNotes(t *testing.T) {
	notes := strings.Join(hostNotes(Host{Cores: 4, CPUQuota: 1.5, Governor: "powersave", Hypervisor: "kvm"}), "\n")
	for _, want := range []string{"1.5 CPUs of 4", `"powersave"`, "(kvm)"} {
		if !strings.Contains(notes, want) {
			t.Errorf("found %q, expected %q", notes, want)
		}
	}
	if notes := hostNotes(Host{Cores: 4, CPUQuota: 4, Governor: "performance"}); len(notes) > 0 {
		t.Errorf("found %q, expected nothing to be said", notes)
	}
}

func TestTopology(t *testing.T) {
	got, err := topologyFrom(files(
		"online", "0-2,4\n",
		"cpu0/topology/thread_siblings_list", "0,2\n", "cpu0/topology/physical_package_id", "0\n",
		"cpu1/topology/thread_siblings_list", "1,3\n", "cpu1/topology/physical_package_id", "1\n", // 3 is off line
		"cpu2/topology/thread_siblings_list", "0,2\n", "cpu2/topology/physical_package_id", "0\n",
	))
	if err != nil {
		t.Fatal(err)
	}
	want := Topology{CPUs: []CPUInfo{{0, CPUs{0, 2}, 0}, {1, CPUs{1}, 1}, {2, CPUs{0, 2}, 0}, {4, CPUs{4}, -1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-expected +found):\n%s", diff)
	}
	if !got.SMT() || !got.Siblings(2).Equal(CPUs{0}) || len(got.Siblings(9)) > 0 || got.cores(CPUs{0, 2, 4}) != 2 {
		t.Errorf("found %v, %v, %v, %v", got.SMT(), got.Siblings(2), got.Siblings(9), got.cores(CPUs{0, 2, 4}))
	}
	for name, fs := range map[string]fstest.MapFS{
		"no list":                files(),
		"a broken list":          files("online", "x"),
		"not among its siblings": files("online", "0", "cpu0/topology/thread_siblings_list", "1"),
	} {
		if _, err := topologyFrom(fs); err == nil {
			t.Errorf("%s: expected an error", name)
		}
	}
	real, err := ReadTopology()
	if err != nil || len(real.CPUs) == 0 {
		t.Errorf("of this machine: found %+v, %v", real, err)
	}
}

func TestCPUTimes(t *testing.T) {
	got, err := parseCPUTimes("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu11 1 0 0 0 0 0 0 0\nintr 5 6\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]CPUTimes{0: {10e6, 20e6, 30e6, 40e6, 50e6, 60e6, 70e6, 80e6}, 11: {User: 10e6}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-expected +found):\n%s", diff)
	}
	if b, total := want[0].Busy(), want[0].Total(); b != 190*time.Millisecond || total != 360*time.Millisecond {
		t.Errorf("found %v busy of %v", b, total)
	}
	for _, s := range []string{"", "cpu 1 2", "cpu0 1 2 3\n", "cpu0 1 2 3 4 5 6 7 x\n", "cpux 1 2 3 4 5 6 7 8\n"} {
		if _, err := parseCPUTimes(s); err == nil {
			t.Errorf("%q: expected an error", s)
		}
	}
	real, err := ReadCPUTimes()
	if err != nil || len(real) == 0 {
		t.Errorf("of this machine: found %v, %v", real, err)
	}
}

func TestSince(t *testing.T) {
	at := time.Unix(1000, 0)
	before := Reading{At: at, TimeWait: -1, Throttled: -1, Frequency: math.NaN(), CPUs: 2, Ports: 1000,
		CPU: CPUTimes{Idle: time.Second}}
	after := Reading{At: at.Add(2 * time.Second), Self: 1500 * time.Millisecond, Involuntary: 5, TimeWait: 250, Throttled: 100, Frequency: 2e9, CPUs: 2, Ports: 1000,
		CPU: CPUTimes{User: 2 * time.Second, Idle: 2 * time.Second, Steal: 400 * time.Millisecond, SoftIRQ: 100 * time.Millisecond}}
	a := after.Since(before, 600*time.Millisecond)
	// Of 4 s, 1 was idle, 0.4 stolen, 0.1 interrupts, 1.5 the generator's and 0.6 the servers'.
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: found %v, expected %v", name, got, want)
		}
	}
	near("steal", a.Steal, 0.1)
	near("generator", a.GeneratorBusy, 0.75)
	near("others", a.OthersCPU, 0.2)
	near("error", a.OthersError, 0.02)
	near("time wait", a.TimeWait, 0.25)
	near("frequency", a.Frequency, 2e9)
	if a.Involuntary != 5 || !math.IsNaN(a.Throttled) {
		t.Errorf("found %+v", a)
	}
	before.Throttled = 0
	after.Throttled = 500 * time.Millisecond
	near("throttled", after.Since(before, 0).Throttled, 0.25)
	if a := before.Since(after, 0); a.Elapsed != 0 || !math.IsNaN(a.TimeWait) {
		t.Errorf("in the wrong order: found %+v", a)
	}
}

func TestParseThrottledAndTimeWait(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"usage_usec 5\nnr_throttled 2\nthrottled_usec 7\n": 7 * time.Microsecond,
		"nr_periods 1\nnr_throttled 2\nthrottled_time 9\n": 9,
		"usage_usec 5\n": -1, "": -1, "throttled_usec x": -1,
	} {
		if got := parseThrottled(in); got != want {
			t.Errorf("%q: found %v", in, got)
		}
	}
	for in, want := range map[string]int{
		"sockets: used 9\nTCP: inuse 5 orphan 0 tw 3 alloc 7 mem 1\nUDP: inuse 1 mem 0\n": 3,
		"TCP: inuse 5 tw": -1, "": -1, "TCP: tw x": -1,
	} {
		if got := parseTimeWait(in); got != want {
			t.Errorf("%q: found %v", in, got)
		}
	}
}

func TestMounts(t *testing.T) {
	const hybrid = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /jobs /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/uni\040fied rw,relatime - cgroup2 cgroup2 rw
`
	const self = "8:cpuacct,cpu:/x\n4:memory:/jobs/7\n1:name=systemd:/y\n0::/z\n"
	if dir, err := ownCgroup(hybrid, self); err != nil || dir != "/sys/fs/cgroup/uni fied/z" {
		t.Errorf("found %q, %v", dir, err)
	}
	for controller, want := range map[string]string{"cpu": "/sys/fs/cgroup/cpu,cpuacct/x", "memory": "/sys/fs/cgroup/memory/7", "pids": ""} {
		if dir, _ := ownCgroupV1(hybrid, self, controller); dir != want {
			t.Errorf("%s: found %q, expected %q", controller, dir, want)
		}
	}
	for _, bad := range [][2]string{
		{"", self}, {hybrid, ""},
		{"1 2 0:1 /other /sys/fs/cgroup rw - cgroup2 c rw\n", self}, // a bind mount of another part
		{hybrid, "0::/../outside\n"},
	} {
		if dir, err := ownCgroup(bad[0], bad[1]); err == nil {
			t.Errorf("%q: found %q, expected an error", bad, dir)
		}
	}
}

func FuzzParsers(f *testing.F) {
	for _, name := range []string{"/proc/self/stat", "/proc/stat", "/proc/net/tcp", "/proc/net/tcp6", "/proc/self/mountinfo", "/proc/net/sockstat"} {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(string(b))
		}
	}
	f.Add("12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22")
	f.Add("0100007F:1F90")
	f.Fuzz(func(t *testing.T, s string) {
		if st, err := parseStat([]byte(s)); err == nil && (st.pid < 0 || st.ownTime < 0) {
			t.Errorf("found %+v", st)
		}
		parseCPUTimes(s)
		parseListeners(strings.NewReader(s))
		parseSockAddr(s)
		ownCgroup(s, s)
		parseTimeWait(s)
		parseThrottled(s)
		cpuModel(s)
	})
}
