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

// greeting is what a watchdog says once it listens.
const greeting = "watching\n"

// watchdogEnv keeps a program that forgot to call WatchdogMain from starting
// itself for ever.
const watchdogEnv = "TANDEM_WATCHDOG=1"

// watchdog is our own program, run a second time, at the other end of a pipe.
// The kernel closes the pipe when we die, however that happens.
type watchdog struct {
	program string

	mu   sync.Mutex
	told charge // what it knows, to be told again to a successor
	cur  *kennel
	over bool // nobody is to take its place any more
}

// kennel is one process of a watchdog.
type kennel struct {
	cmd   *exec.Cmd
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
	d := &watchdog{program: program, told: newCharge()}
	var err error
	if d.cur, err = d.spawn(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	go d.guard(d.cur)
	return d, nil
}

// guard waits for the end of a watchdog and puts another in its place, at
// once: who kills the one may be about to kill us. Should that fail, the next
// tell tries again, and says so.
func (d *watchdog) guard(k *kennel) {
	<-k.ended
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over && d.cur == k {
		d.replace()
	}
}

// spawn starts a process of it. One that ends before it says a word may have
// been killed, as any other may be, so it gets two successors.
func (d *watchdog) spawn() (k *kennel, err error) {
	for range 3 {
		if k, err = d.spawnOne(); !errors.Is(err, io.EOF) {
			break
		}
	}
	return k, err
}

func (d *watchdog) spawnOne() (*kennel, error) {
	k := &kennel{cmd: exec.Command(d.program, watchdogArg), ended: make(chan struct{})}
	k.cmd.Env = []string{watchdogEnv}
	for _, name := range []string{"GORACE", "GOCOVERDIR"} { // for tests, of the Go runtime itself
		if v, ok := os.LookupEnv(name); ok {
			k.cmd.Env = append(k.cmd.Env, name+"="+v)
		}
	}
	k.cmd.Dir = "/" // hold no folder busy
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hello, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if k.pipe, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	if err := greet(hello); err != nil {
		k.cmd.Process.Kill()
		k.cmd.Wait()
		return nil, err
	}
	go func() {
		k.cmd.Wait()
		close(k.ended)
	}()
	return k, nil
}

// greet waits until a watchdog listens.
func greet(hello io.Reader) error {
	got := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(hello).ReadString('\n')
		if err == nil && line != greeting {
			err = errors.New("another line")
		}
		if err != nil {
			err = fmt.Errorf("found %q (%w), expected %q; main must call proc.WatchdogMain first", line, err, greeting)
		}
		got <- err
	}()
	select {
	case err := <-got:
		return err
	case <-time.After(10 * time.Second):
		return errors.New("no greeting from it in 10 s; main must call proc.WatchdogMain first")
	}
}

// tell tells one line. Should the watchdog have been killed, another takes
// its place and is told everything.
func (d *watchdog) tell(line string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told.learn(line)
	if _, err := io.WriteString(d.cur.pipe, line+"\n"); err == nil {
		return nil
	}
	return d.replace()
}

// replace starts another in the place of one that has died.
func (d *watchdog) replace() error {
	d.cur.pipe.Close()
	<-d.cur.ended
	next, err := d.spawn()
	if err != nil {
		return fmt.Errorf("the watchdog has died and cannot be started again, so a crash would leave processes behind: %w", err)
	}
	d.cur = next
	go d.guard(next)
	_, err = io.WriteString(next.pipe, d.told.String())
	return err
}

// dismiss ends the watchdog without a kill.
func (d *watchdog) dismiss() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	io.WriteString(d.cur.pipe, "dismissed\n") // if it is dead, so much the better
	d.cur.pipe.Close()
	select {
	case <-d.cur.ended:
		return nil
	case <-time.After(5 * time.Second):
		d.cur.cmd.Process.Kill()
		<-d.cur.ended
		return errors.New("the watchdog did not end in 5 s and was killed")
	}
}

// WatchdogMain is the whole life of the watchdog. Main calls it first thing,
// with os.Args and os.Stdin; where it reports that it has handled the call,
// main exits with the code. It is also how a command with limits is started,
// on Linux. Tests that start processes call it in TestMain.
func WatchdogMain(args []string, stdin io.Reader) (handled bool, code int) {
	if len(args) > 1 && args[1] == launchArg {
		return true, launchMain(args)
	}
	if len(args) < 2 || args[1] != watchdogArg {
		return false, 0
	}
	// It must outlive a closed terminal, an interrupt and a polite TERM to
	// everything, since its work begins when its parent has died of them.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	fmt.Print(greeting)
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

func newCharge() charge { return charge{groups: map[int]bool{}} }

// listen reads what the parent tells until it dismisses the watchdog (true)
// or has died (false).
func (c *charge) listen(stdin io.Reader) (dismissed bool) {
	in := bufio.NewScanner(stdin)
	for in.Scan() {
		if in.Text() == "dismissed" {
			return true
		}
		c.learn(in.Text())
	}
	return false
}

// learn takes in one line.
func (c *charge) learn(line string) {
	word, arg, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(arg)
	switch {
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

// String is lines from which learn makes the same charge.
func (c *charge) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mark %s\n", c.mark)
	for _, dir := range c.boxes {
		fmt.Fprintf(&b, "box %s\n", dir)
	}
	for g := range c.groups {
		fmt.Fprintf(&b, "group %d\n", g)
	}
	return b.String()
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
