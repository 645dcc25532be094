//go:build unix

package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogArg is the first argument of our own program as a watchdog.
const watchdogArg = "__tandem_watchdog"

// watchdogEnv keeps a program that forgot to call WatchdogMain from starting
// itself for ever.
const watchdogEnv = "TANDEM_WATCHDOG=1"

// watchdog is our own program, run a second time, at the other end of a pipe.
// The kernel closes the pipe when we die, however that happens.
type watchdog struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	pipe  io.WriteCloser
	ended chan struct{}
}

// startWatchdog runs program (or ourselves) as a watchdog and waits for its greeting.
func startWatchdog(program string) (*watchdog, error) {
	if os.Getenv("TANDEM_WATCHDOG") != "" {
		return nil, errors.New("start the watchdog: this process was itself started as one, but its main did not call proc.WatchdogMain first")
	}
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("start the watchdog: %w", err)
		}
	}
	d := &watchdog{cmd: exec.Command(program, watchdogArg), ended: make(chan struct{})}
	d.cmd.Env = []string{watchdogEnv}
	for _, name := range []string{"GORACE", "GOCOVERDIR"} { // for tests, of the Go runtime itself
		if v, ok := os.LookupEnv(name); ok {
			d.cmd.Env = append(d.cmd.Env, name+"="+v)
		}
	}
	d.cmd.Dir = "/" // hold no folder busy
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hello, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if d.pipe, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	if err := d.greet(hello); err != nil {
		d.cmd.Process.Kill()
		d.cmd.Wait()
		return nil, err
	}
	go func() {
		d.cmd.Wait()
		close(d.ended)
	}()
	return d, nil
}

// greet waits until the watchdog listens.
func (d *watchdog) greet(hello io.Reader) error {
	got := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(hello).ReadString('\n')
		if err == nil && line != "watching\n" {
			err = fmt.Errorf("found %q, expected %q; main must call proc.WatchdogMain first", line, "watching\n")
		}
		got <- err
	}()
	select {
	case err := <-got:
		if err != nil {
			return fmt.Errorf("start the watchdog: its greeting: %w", err)
		}
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("start the watchdog: no greeting from it in 10 s")
	}
}

// tell sends one line.
func (d *watchdog) tell(line string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := io.WriteString(d.pipe, line+"\n"); err != nil {
		return fmt.Errorf("the watchdog (pid %d) has died, so a crash would leave processes behind: %w", d.cmd.Process.Pid, err)
	}
	return nil
}

// dismiss ends the watchdog without a kill.
func (d *watchdog) dismiss() error {
	err := d.tell("dismissed")
	d.pipe.Close()
	select {
	case <-d.ended:
		return err
	case <-time.After(5 * time.Second):
		d.cmd.Process.Kill()
		<-d.ended
		return errors.Join(err, errors.New("the watchdog did not end in 5 s and was killed"))
	}
}

// WatchdogMain is the whole life of the watchdog. Main calls it first thing,
// with os.Args and os.Stdin; where it reports that it has handled the call,
// main exits with the code. Tests that start processes call it in TestMain.
func WatchdogMain(args []string, stdin io.Reader) (handled bool, code int) {
	if len(args) < 2 || args[1] != watchdogArg {
		return false, 0
	}
	// It must outlive a closed terminal, an interrupt and a polite TERM to
	// everything, since its work begins when its parent has died of them.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	fmt.Println("watching")
	os.Stdout.Close()
	c := newCharge()
	if c.listen(stdin) {
		return true, 0
	}
	return true, c.clear(killPatience)
}

// charge is what the watchdog is to kill.
type charge struct {
	groups map[int]bool
	mark   string   // the environment of all processes has an entry that begins so
	boxes  []string // control groups
}

func newCharge() *charge { return &charge{groups: map[int]bool{}} }

// listen reads what the parent tells until it dismisses the watchdog (true)
// or has died (false).
func (c *charge) listen(stdin io.Reader) (dismissed bool) {
	in := bufio.NewScanner(stdin)
	for in.Scan() {
		word, arg, _ := strings.Cut(in.Text(), " ")
		n, err := strconv.Atoi(arg)
		switch {
		case word == "dismissed":
			return true
		case word == "mark":
			c.mark = arg
		case word == "box":
			c.boxes = append(c.boxes, arg)
		case word == "group" && err == nil && n > 1:
			c.groups[n] = true
		case word == "gone" && err == nil:
			delete(c.groups, n)
		}
	}
	return false
}

// clear kills until nothing is left: a process may fork while it is looked
// for. It gives up, with exit code 1, when the time is up.
func (c *charge) clear(patience time.Duration) (code int) {
	deadline := time.Now().Add(patience)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		left := c.killMarked()
		for g := range c.groups {
			if unix.Kill(-g, unix.SIGKILL) != nil {
				delete(c.groups, g) // its number may soon be another's
				continue
			}
			left = true
		}
		if !left {
			return 0
		}
		if time.Now().After(deadline) {
			return 1
		}
		time.Sleep(wait)
	}
}
