package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-bench/tandem/spec"
)

// memoryCheck is how often the memory of a tree is looked at where the kernel
// does not limit it as a whole. It costs some microseconds for each process.
const memoryCheck = 100 * time.Millisecond

// limiter holds the limits of one tree to the means that this machine has.
type limiter struct {
	boxes  []*cgroup // control groups made for the limits, to be removed
	kills  []string  // files with a line "oom_kill N"
	memory int64     // bytes
	poll   bool      // memory must be measured by ourselves
	partly bool      // the kernel kills a part of the tree only
	order  launchOrder
}

// limit prepares the limits of a command. Where the kernel offers nothing for
// one, a note says what is done instead.
func (s *Supervisor) limit(l spec.Limits, n int) *limiter {
	if l == (spec.Limits{}) {
		return nil
	}
	m := &limiter{memory: l.Memory}
	m.order.noFile = l.NoFile
	if l.Memory > 0 || l.Processes > 0 {
		if err := s.limitByGroup(m, l, n); err != nil {
			m.remove()
			m.boxes, m.order.join = nil, nil
			s.limitOtherwise(m, l, err)
		}
	}
	return m
}

// limitByGroup makes control groups with the limits, of version 2 where that
// hierarchy has the controllers, else of version 1.
func (s *Supervisor) limitByGroup(m *limiter, l spec.Limits, n int) error {
	if s.opt.NoCgroup {
		return errors.New("control groups are turned off")
	}
	mounts, err := readKernel("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	self, err := readKernel("/proc/self/cgroup")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("tandem-%s-limit%d", s.id, n)
	err2 := s.limitV2(m, l, name, string(mounts), string(self))
	if err2 == nil {
		return nil
	}
	err1 := s.limitV1(m, l, name, string(mounts), string(self))
	if err1 == errNoV1 {
		return err2
	}
	return err1
}

// errNoV1 says that version 1 is not what this machine has.
var errNoV1 = errors.New("no hierarchy with the controller is mounted")

// limitV2 makes one group beside ours, in a parent that hands its controllers
// down. A group with processes of its own, such as ours, cannot do that.
func (s *Supervisor) limitV2(m *limiter, l spec.Limits, name, mounts, self string) error {
	own, err := ownCgroup(mounts, self)
	if err != nil {
		return err
	}
	parents := []string{own}
	if mount, _, _ := findMount(mounts, "cgroup2", ""); own != mount {
		parents = append(parents, filepath.Dir(own))
	}
	for _, parent := range parents {
		have, err2 := readKernel(filepath.Join(parent, "cgroup.subtree_control"))
		switch {
		case err2 != nil:
			err = err2
		case !hasControllers(string(have), l):
			err = fmt.Errorf("%s does not hand down the memory and pids controllers", parent)
		default:
			if err = m.makeBox(s, filepath.Join(parent, name), v2Settings(l)); err == nil {
				m.kills = append(m.kills, filepath.Join(parent, name, "memory.events"))
				return nil
			}
		}
	}
	return err
}

// hasControllers reports whether a list of controllers has those that the limits need.
func hasControllers(list string, l spec.Limits) bool {
	f := " " + strings.Join(strings.Fields(list), " ") + " "
	return (l.Memory == 0 || strings.Contains(f, " memory ")) && (l.Processes == 0 || strings.Contains(f, " pids "))
}

// setting is a value for a file of a control group.
type setting struct {
	file, value string
	optional    bool // kernels differ in whether there is such a file
}

// v2Settings are those of version 2. Without swap, a leak meets its limit
// instead of slowing the machine; and a tree of which the kernel has killed a
// part is no server any more.
func v2Settings(l spec.Limits) []setting {
	var out []setting
	if l.Memory > 0 {
		out = append(out, setting{"memory.max", strconv.FormatInt(l.Memory, 10), false},
			setting{"memory.swap.max", "0", true}, setting{"memory.oom.group", "1", true})
	}
	if l.Processes > 0 {
		out = append(out, setting{"pids.max", strconv.Itoa(l.Processes), false})
	}
	return out
}

// limitV1 makes a group in each hierarchy of version 1 that is needed.
func (s *Supervisor) limitV1(m *limiter, l spec.Limits, name, mounts, self string) error {
	for _, c := range []struct {
		controller string
		needed     bool
		settings   []setting
	}{
		{"memory", l.Memory > 0, []setting{
			{"memory.limit_in_bytes", strconv.FormatInt(l.Memory, 10), false},
			{"memory.memsw.limit_in_bytes", strconv.FormatInt(l.Memory, 10), true}}},
		{"pids", l.Processes > 0, []setting{{"pids.max", strconv.Itoa(l.Processes), false}}},
	} {
		if !c.needed {
			continue
		}
		own, ok := ownCgroupV1(mounts, self, c.controller)
		if !ok {
			return errNoV1
		}
		if err := m.makeBox(s, filepath.Join(own, name), c.settings); err != nil {
			return err
		}
		if c.controller == "memory" {
			m.kills = append(m.kills, filepath.Join(own, name, "memory.oom_control"))
			m.partly = true
		}
	}
	return nil
}

// makeBox makes a group with settings, which the process is to join before it
// executes its program.
func (m *limiter) makeBox(s *Supervisor, dir string, settings []setting) error {
	if err := s.dog.tell("box " + dir); err != nil {
		return err
	}
	g := &cgroup{dir}
	if err := g.make(); err != nil {
		return err
	}
	m.boxes = append(m.boxes, g)
	for _, set := range settings {
		err := os.WriteFile(filepath.Join(dir, set.file), []byte(set.value), 0o644)
		if err != nil && !set.optional {
			return err
		}
	}
	m.order.join = append(m.order.join, filepath.Join(dir, "cgroup.procs"))
	return nil
}

// limitOtherwise falls back on what needs no control group.
func (s *Supervisor) limitOtherwise(m *limiter, l spec.Limits, why error) {
	if l.Memory > 0 {
		m.poll = true
		s.note("limits.memory: the kernel cannot hold it here (%v); memory is looked at every %v instead, so a process may exceed it for so long", why, memoryCheck)
	}
	switch {
	case l.Processes > 0 && os.Getuid() == 0:
		s.note("limits.processes: it is not held (%v), and the limit of a user does not bind root", why)
	case l.Processes > 0:
		m.order.nproc = tasksOf(os.Getuid()) + l.Processes
		s.note("limits.processes: the kernel can hold it only for all processes of this user together here (%v); what others of this user start counts as well", why)
	}
}

// tasksOf counts the processes and threads of a user.
func tasksOf(uid int) int {
	pids, err := numericNames("/proc")
	if err != nil {
		return 0
	}
	n := 0
	for _, pid := range pids {
		var st unix.Stat_t
		dir := "/proc/" + strconv.Itoa(pid)
		if unix.Stat(dir, &st) != nil || int(st.Uid) != uid {
			continue
		}
		if tids, err := numericNames(dir + "/task"); err == nil {
			n += len(tids)
		}
	}
	return n
}

// remove removes the empty groups.
func (m *limiter) remove() error {
	if m == nil {
		return nil
	}
	var errs []error
	for _, g := range m.boxes {
		errs = append(errs, g.removeSoon())
	}
	return errors.Join(errs...)
}

// reason tells whether the kernel has killed for memory.
func (m *limiter) reason() string {
	for _, file := range m.kills {
		b, err := readKernel(file)
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			if v, ok := strings.CutPrefix(line, "oom_kill "); ok && v != "0" {
				return fmt.Sprintf("the kernel killed it for needing more memory than limits.memory, %d bytes, allows", m.memory)
			}
		}
	}
	return ""
}

// watchMemory kills a tree that needs more memory than it may, where the
// kernel does not see to it, or (version 1) has killed a part of it only.
func (p *Process) watchMemory(m *limiter) {
	t := time.NewTicker(memoryCheck)
	defer t.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-t.C:
		}
		why := m.reason()
		if m.poll {
			// A reading that failed says nothing; the next comes soon.
			if used, err := p.tree.rss(); err == nil && used > m.memory {
				why = fmt.Sprintf("it used %d bytes of memory, more than limits.memory, %d bytes, allows", used, m.memory)
			}
		}
		if why == "" {
			continue
		}
		p.mu.Lock()
		if p.verdict == nil && !p.asked {
			p.verdict = fmt.Errorf("%s (pid %d) was killed: %s", p.name, p.os.Pid, why)
		}
		p.mu.Unlock()
		p.end(unix.SIGKILL, 0) // what could not be killed is in Err
		return
	}
}

// rss is the resident memory of all processes of the tree, in bytes.
func (t *tree) rss() (int64, error) {
	pids, err := t.members()
	var sum int64
	for _, pid := range pids {
		b, err := readKernel("/proc/" + strconv.Itoa(pid) + "/statm")
		if f := strings.Fields(string(b)); err == nil && len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			sum += pages * int64(os.Getpagesize())
		}
	}
	return sum, err
}
