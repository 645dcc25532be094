package proc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tandem-bench/tandem/spec"
)

// cores makes a topology: each argument is one core's CPU list; "|" begins
// another socket.
func cores(lists ...string) Topology {
	t := Topology{CPUs: make([]CPUInfo, 64)}
	n, pkg := 0, 0
	for _, list := range lists {
		if list == "|" {
			pkg++
			continue
		}
		c, err := ParseCPUs(list)
		if err != nil {
			panic(err)
		}
		for _, cpu := range c {
			t.CPUs[cpu] = CPUInfo{cpu, c, pkg}
			n = max(n, cpu+1)
		}
	}
	t.CPUs = t.CPUs[:n]
	return t
}

func TestAssign(t *testing.T) {
	two := cores("0", "1")
	four := cores("0,1", "2,3")                // as GitHub's runners and most clouds number them
	eight := cores("0,4", "1,5", "2,6", "3,7") // as most machines of one's own do
	sockets := cores("0", "1", "|", "2", "3")
	for _, c := range []struct {
		name         string
		topo         Topology
		avail        string
		server, load string
		want         int
		out          [3]string // server, load, idle
		note         string    // part of a note; none where it is empty
	}{
		{"two cores", two, "0-1", "auto", "auto", 1, [3]string{"1", "0", ""}, ""},
		{"one CPU", cores("0"), "0", "auto", "auto", 1, [3]string{"0", "0", ""}, "only one CPU"},
		{"one CPU, named", cores("0"), "0", "0", "0", 1, [3]string{"0", "0", ""}, "only one CPU"},
		{"one CPU left to us", four, "2", "auto", "auto", 1, [3]string{"2", "2", ""}, "only one CPU"},
		{"one core", cores("0,1"), "0-1", "auto", "auto", 1, [3]string{"0", "1", ""}, "sibling hyperthread"},
		{"two cores of two", four, "0-3", "auto", "auto", 1, [3]string{"2", "0", "3"}, ""},
		{"two cores of two, larger generator", four, "0-3", "auto", "auto", 2, [3]string{"2", "0-1", "3"}, ""},
		{"generator needs the sibling", four, "0-3", "auto", "auto", 3, [3]string{"2", "0-1,3", ""}, "sibling hyperthread"},
		{"four cores of two", eight, "0-7", "auto", "auto", 2, [3]string{"3", "0-1", "7"}, ""},
		{"siblings later", eight, "0-7", "auto", "auto", 4, [3]string{"3", "0-2,4", "7"}, ""},
		{"same socket first", sockets, "0-3", "auto", "auto", 1, [3]string{"3", "2", ""}, ""},
		{"both sockets", sockets, "0-3", "auto", "auto", 2, [3]string{"3", "0,2", ""}, ""},
		{"sibling not available", four, "0,2", "auto", "auto", 1, [3]string{"2", "0", ""}, ""},
		{"explicit", eight, "0-7", "2-3", "0-1", 1, [3]string{"2-3", "0-1", "6-7"}, ""},
		{"explicit siblings", four, "0-3", "2", "3", 1, [3]string{"2", "3", ""}, "sibling hyperthread"},
		{"explicit server", four, "0-3", "0", "auto", 1, [3]string{"0", "2", "1"}, ""},
		{"explicit load", four, "0-3", "auto", "2-3", 1, [3]string{"0", "2-3", "1"}, ""},
		{"explicit load, only its sibling left", four, "0-3", "auto", "0-2", 1, [3]string{"3", "0-2", ""}, "sibling hyperthread"},
		{"none", two, "0-1", "none", "none", 1, [3]string{"", "", ""}, "servers are not pinned"},
		{"none and auto", two, "0-1", "none", "auto", 1, [3]string{"", "0", ""}, "servers are not pinned"},
		{"auto and none", two, "0-1", "auto", "none", 1, [3]string{"1", "", ""}, "generator is not pinned"},
		{"no topology", Topology{}, "0-3", "auto", "auto", 1, [3]string{"3", "0", ""}, "not known which CPUs share a core"},
	} {
		t.Run(c.name, func(t *testing.T) {
			avail, err := ParseCPUs(c.avail)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Assign(spec.Pins{Server: c.server, Load: c.load}, c.want, avail, c.topo)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.out, [3]string{p.Server.String(), p.Load.String(), p.Idle.String()}); diff != "" {
				t.Errorf("server, load, idle (-expected +found):\n%s", diff)
			}
			notes := strings.Join(p.Notes, "\n")
			if c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
				t.Errorf("found notes %q, expected %q", notes, c.note)
			}
		})
	}
}

func TestAssignRefuses(t *testing.T) {
	four := cores("0,1", "2,3")
	for _, c := range []struct {
		avail, server, load string
		want                int
		message             string
	}{
		{"0-3", "0-1", "1-2", 1, `server "0-1" and load "1-2" both name CPU 1`},
		{"0-3", "7", "auto", 1, `pins.server: CPU 7 of "7" does not exist or may not be used; CPU 0-3 may`},
		{"0-3", "auto", "x", 1, "pins.load"},
		{"0-3", "", "auto", 1, "expected auto, none or a CPU list"},
		{"0-3", "auto", "0-3", 1, "leaves none for the servers"},
		{"0-3", "auto", "0", 2, "asks for 2"},
		{"0-3", "auto", "auto", 4, "beside the servers' CPU 2 only 3 may be used"},
		{"0", "auto", "auto", 2, "only CPU 0 may be used"},
		{"", "auto", "auto", 1, "no CPU may be used"},
	} {
		avail, err := ParseCPUs(c.avail)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Assign(spec.Pins{Server: c.server, Load: c.load}, c.want, avail, four)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%+v: found %+v, %v", c, p, err)
		}
	}
}

// TestAssignProperties holds for every machine that can be drawn.
func TestAssignProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, threads := rapid.IntRange(1, 8).Draw(t, "cores"), rapid.IntRange(1, 2).Draw(t, "threads")
		var topo Topology
		for cpu := range n * threads {
			sib := CPUs{cpu % n}
			if threads == 2 {
				sib = append(sib, cpu%n+n)
			}
			topo.CPUs = append(topo.CPUs, CPUInfo{cpu, sib, cpu % n / 4})
		}
		avail := CPUs(rapid.SliceOfNDistinct(rapid.IntRange(0, n*threads-1), 1, -1, rapid.ID[int]).Draw(t, "avail")).normal()
		want := rapid.IntRange(1, 4).Draw(t, "generator")
		p, err := Assign(spec.Pins{Server: "auto", Load: "auto"}, want, avail, topo)
		if len(avail) <= want && len(avail) > 1 || len(avail) == 1 && want > 1 {
			if err == nil {
				t.Fatalf("found %+v, but there is no room", p)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Server) != 1 || len(p.Load) != want {
			t.Fatalf("found %+v, expected 1 and %d CPUs", p, want)
		}
		for _, set := range []CPUs{p.Server, p.Load, p.Idle} {
			if len(set.Minus(avail)) > 0 {
				t.Fatalf("found %+v, of which some may not be used", p)
			}
		}
		if len(avail) > 1 && len(p.Server.And(p.Load))+len(p.Idle.And(p.Load))+len(p.Idle.And(p.Server)) > 0 {
			t.Fatalf("found %+v, which overlap", p)
		}
	})
}
