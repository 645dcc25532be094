package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestHosts runs benchmarks with a second machine: a network namespace with a
// real sshd in it, at the other end of a cable that can be cut.
func TestHosts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("a second machine is made of a network namespace, which only root can make: run this test as root")
	}
	commands := scriptCommands()
	commands["link"] = link
	commands["killsshd"] = killSessions
	commands["killagent"] = killAgent
	var count atomic.Int32
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/hosts",
		Cmds: commands,
		Setup: func(e *testscript.Env) error {
			if err := scriptSetup(e); err != nil {
				return err
			}
			m := &secondMachine{dir: e.Getenv("TMPDIR")}
			e.Defer(m.close)
			e.Values[machineKey{}] = m
			if err := m.open(os.Getpid()*8 + int(count.Add(1))); err != nil {
				return err
			}
			server, err := exec.LookPath("server")
			if err != nil {
				return err
			}
			e.Setenv("BOX", m.there)
			e.Setenv("SERVER", server)
			return m.client(e)
		},
	})
}

// machineKey is the key of a script's second machine.
type machineKey struct{}

// secondMachine is a network namespace with an sshd.
type secondMachine struct {
	dir   string // keys and configuration
	name  string // of the namespace, and of the interface at our end
	there string // its address
	sshd  *exec.Cmd
}

// open makes the machine with this number.
func (m *secondMachine) open(n int) error {
	m.name = fmt.Sprintf("tdm%d", n)
	// The range that RFC 2544 sets apart for benchmarks, four addresses each.
	n %= 16384
	here := fmt.Sprintf("198.18.%d.%d", n>>6, n&63*4+1)
	m.there = fmt.Sprintf("198.18.%d.%d", n>>6, n&63*4+2)
	for _, command := range []string{
		"netns add " + m.name,
		"link add " + m.name + " type veth peer name cable netns " + m.name,
		"addr add " + here + "/30 dev " + m.name,
		"link set " + m.name + " up",
		"-n " + m.name + " addr add " + m.there + "/30 dev cable",
		"-n " + m.name + " link set cable up",
		"-n " + m.name + " link set lo up",
	} {
		if err := setUp("ip", strings.Fields(command)...); err != nil {
			return err
		}
	}
	for _, key := range []string{"host", "user"} {
		if err := setUp("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", m.file(key)); err != nil {
			return err
		}
	}
	return m.startSSHD()
}

// setUp runs a command of the set-up; what it prints is part of the error.
func setUp(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s(.ci/setup installs what this needs)", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// close takes the machine away.
func (m *secondMachine) close() {
	if m.sshd != nil {
		for _, pid := range append(m.sessions(), m.sshd.Process.Pid) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		m.sshd.Wait()
	}
	setUp("ip", "netns", "del", m.name) // the cable goes with it
}

// startSSHD starts an sshd in the namespace that lets us in with a key.
func (m *secondMachine) startSSHD() error {
	config := fmt.Sprintf(`ListenAddress %s
HostKey %s
AuthorizedKeysFile %s
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
`, m.there, m.file("host"), m.file("user.pub"))
	if err := os.WriteFile(m.file("sshd_config"), []byte(config), 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where it gives its privileges up
		return err
	}
	log := m.file("sshd.log")
	m.sshd = exec.Command("nsenter", "--net=/run/netns/"+m.name, "/usr/sbin/sshd", "-D", "-f", m.file("sshd_config"), "-E", log)
	m.sshd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := m.sshd.Start(); err != nil {
		m.sshd = nil
		return fmt.Errorf("sshd: %w (.ci/setup installs it)", err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if said, _ := os.ReadFile(log); bytes.Contains(said, []byte("listening")) {
			return nil
		}
	}
	said, _ := os.ReadFile(log)
	return fmt.Errorf("sshd does not listen: %s", said)
}

func (m *secondMachine) file(name string) string { return filepath.Join(m.dir, name) }

// client gives a script an ssh with a configuration of its own: the real one
// looks for that in the home folder of the user, whatever HOME says.
func (m *secondMachine) client(e *testscript.Env) error {
	key, err := os.ReadFile(m.file("host.pub"))
	if err != nil {
		return err
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"known_hosts": m.there + " " + string(key),
		"ssh_config": fmt.Sprintf("Host box\n  HostName %s\n  User root\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n",
			m.there, m.file("user"), m.file("known_hosts")),
		"ssh": fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, m.file("ssh_config")),
	} {
		if err := os.WriteFile(m.file(name), []byte(text), 0o700); err != nil {
			return err
		}
	}
	e.Setenv("PATH", m.dir+string(os.PathListSeparator)+e.Getenv("PATH"))
	return nil
}

// link cuts the cable, or mends it: link down, link up.
func link(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: link up|down")
	}
	ts.Check(setUp("ip", "link", "set", ts.Value(machineKey{}).(*secondMachine).name, args[0]))
}

// killSessions kills the processes of sshd that serve connections.
func killSessions(ts *testscript.TestScript, neg bool, args []string) {
	pids := ts.Value(machineKey{}).(*secondMachine).sessions()
	if neg || len(args) != 0 || len(pids) == 0 {
		ts.Fatalf("usage: killsshd, while there are sessions; there are %d", len(pids))
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// killAgent kills the agent on the second machine.
func killAgent(ts *testscript.TestScript, neg bool, args []string) {
	for _, pid := range processes(ts.Getenv("WORK") + "/remote") {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if args := strings.Split(string(line), "\x00"); len(args) > 1 && args[1] == "__tandem_agent" {
			ts.Check(syscall.Kill(pid, syscall.SIGKILL))
			return
		}
	}
	ts.Fatalf("there is no agent")
}

// sessions lists the descendants of the sshd that are its own program.
func (m *secondMachine) sessions() []int {
	var found []int
	parents := []int{m.sshd.Process.Pid}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for range 3 { // it forks, and forks again to give its privileges up
		for _, f := range files {
			data, _ := os.ReadFile(f)
			head, rest, ok := strings.Cut(string(data), ") ")
			fields := strings.Fields(rest)
			if !ok || len(fields) < 2 || !strings.Contains(head, "(sshd") {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if ppid, _ := strconv.Atoi(fields[1]); slices.Contains(parents, ppid) && !slices.Contains(found, pid) {
				found = append(found, pid)
			}
		}
		parents = append(parents, found...)
	}
	return found
}
