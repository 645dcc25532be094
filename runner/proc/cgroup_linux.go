package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is one group of the version 2 hierarchy (in hybrid set-ups, the one
// without controllers, which counts and kills as well). A process cannot
// leave it, whatever it forks, and it keeps the CPU time of those that ended.
// No controller is turned on for that, so scheduling does not change.
type cgroup struct {
	dir string
}

// ownCgroup finds the folder of this process's own group from the texts of
// /proc/self/mountinfo and /proc/self/cgroup.
func ownCgroup(mountinfo, self string) (string, error) {
	mount, root, ok := findMount(mountinfo, "cgroup2", "")
	if !ok {
		return "", errors.New("no cgroup version 2 hierarchy is mounted")
	}
	for line := range strings.SplitSeq(self, "\n") {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return joinMount(mount, root, path)
		}
	}
	return "", errors.New("/proc/self/cgroup names no group of version 2")
}

// findMount finds the first mount of a file system type whose super options
// hold option (any, where it is empty): its mount point and the part of the
// file system that it shows. The format is in proc_pid_mountinfo(5).
func findMount(mountinfo, fstype, option string) (point, root string, ok bool) {
	for line := range strings.SplitSeq(mountinfo, "\n") {
		head, tail, ok := strings.Cut(line, " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 5 || len(t) < 3 || t[0] != fstype {
			continue
		}
		if option != "" && !strings.Contains(","+t[2]+",", ","+option+",") {
			continue
		}
		return unescapeMount(h[4]), unescapeMount(h[3]), true
	}
	return "", "", false
}

// unescapeMount undoes the kernel's octal escapes of blanks in paths.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// joinMount is the folder of a group's path under a mount that shows root.
func joinMount(mount, root, path string) (string, error) {
	rel, err := filepath.Rel(root, path)
	if slices.Contains(strings.Split(path, "/"), "..") {
		rel = ".." // a name space begins below our group
	}
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fmt.Errorf("our own group %s lies outside of what is mounted", path)
	}
	return filepath.Join(mount, rel), nil
}

// runCgroup is the group that will hold those of a run; it is not made yet.
func runCgroup(id string) (*cgroup, error) {
	mounts, err := readKernel("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	self, err := readKernel("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own, err := ownCgroup(string(mounts), string(self))
	return &cgroup{filepath.Join(own, "tandem-"+id)}, err
}

// make makes the group's folder.
func (g *cgroup) make() error {
	err := os.Mkdir(g.dir, 0o755)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("this user may not make one in %s: %w", filepath.Dir(g.dir), errors.Unwrap(err))
	}
	return err
}

// child makes a group inside.
func (g *cgroup) child(name string) (*cgroup, error) {
	c := &cgroup{filepath.Join(g.dir, name)}
	return c, c.make()
}

// open opens the folder, to start a process inside it.
func (g *cgroup) open() (*os.File, error) {
	return os.OpenFile(g.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// cpu is the CPU time of all that was ever in the group, in microseconds.
func (g *cgroup) cpu() (time.Duration, error) {
	b, err := readKernel(filepath.Join(g.dir, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, "usage_usec "); ok {
			us, err := strconv.ParseInt(v, 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("%s/cpu.stat has no usage_usec", g.dir)
}

// pids lists the processes in the group and the groups inside it, those that
// ended and wait to be reaped excepted.
func (g *cgroup) pids() ([]int, error) {
	var out []int
	err := g.walk(func(dir string) error {
		b, err := readKernel(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil // removed meanwhile
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // a threaded group: its processes stand in the group above
		}
		for f := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(f); err == nil && n > 0 {
				out = append(out, n)
			}
		}
		return err
	})
	return out, err
}

// walk calls f for the group's folder and every group inside it, innermost first.
func (g *cgroup) walk(f func(dir string) error) error {
	// A folder has a link more for each folder in it: most have none.
	var st unix.Stat_t
	err := unix.Stat(g.dir, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "stat", Path: g.dir, Err: err}
	}
	if st.Nlink == 2 {
		return f(g.dir)
	}
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := (&cgroup{filepath.Join(g.dir, e.Name())}).walk(f); err != nil {
				return err
			}
		}
	}
	return f(g.dir)
}

// kill ends all processes in the group and in the groups inside it.
func (g *cgroup) kill() error {
	err := os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0)
	if err == nil || errors.Is(err, fs.ErrNotExist) && !dirExists(g.dir) {
		return nil
	}
	// Before Linux 5.14 there is no such file.
	pids, err := g.pids()
	for _, pid := range pids {
		unix.Kill(pid, unix.SIGKILL)
	}
	return err
}

// remove removes the empty group and those inside it.
func (g *cgroup) remove() error {
	return g.walk(func(dir string) error {
		err := os.Remove(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// removeSoon is remove for a group whose last process may still be on its way
// out: the kernel tells its parent before it has left the group.
func (g *cgroup) removeSoon() error {
	err := g.remove()
	for i := 0; errors.Is(err, unix.EBUSY) && i < 500; i++ {
		time.Sleep(time.Millisecond)
		err = g.remove()
	}
	return err
}

func dirExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
