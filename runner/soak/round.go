//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// soak is the state of the whole.
type soak struct {
	tandem  string
	dir     string // of the repository, the caches, the temporary files and the run
	environ []string
	rng     *rand.Rand
	out     io.Writer
	tally   tally

	rounds  int
	hurt    bool     // a server or a load tool of this round was hit
	history []string // of this round, for the report of what is wrong

	dogs   map[int]bool // seen in this round
	ports  map[string]bool
	groups map[string]bool
}

func newSoak(tandem string, blocks int, rng *rand.Rand, out io.Writer) (*soak, error) {
	dir, err := os.MkdirTemp("", "tandem-soak-")
	if err != nil {
		return nil, err
	}
	s := &soak{tandem: tandem, dir: dir, rng: rng, out: out, tally: newTally()}
	s.environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + s.temp(), "XDG_CACHE_HOME=" + s.cache(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=S", "GIT_AUTHOR_EMAIL=s@example.com",
		"GIT_COMMITTER_NAME=S", "GIT_COMMITTER_EMAIL=s@example.com",
	}
	return s, s.layOut(blocks)
}

func (s *soak) repo() string    { return filepath.Join(s.dir, "repository") }
func (s *soak) temp() string    { return filepath.Join(s.dir, "tmp") }
func (s *soak) cache() string   { return filepath.Join(s.dir, "cache") }
func (s *soak) result() string  { return filepath.Join(s.dir, "run") }
func (s *soak) journal() string { return filepath.Join(s.result(), "journal.jsonl") }

// maxAttempts is how often a run is broken before it may end in peace.
const maxAttempts = 6

// round makes one run, breaks it, and goes on with it until it is whole.
func (s *soak) round(ctx context.Context) error {
	s.rounds++
	s.hurt, s.history = false, nil
	s.dogs, s.ports, s.groups = map[int]bool{}, map[string]bool{}, map[string]bool{}
	if err := errors.Join(os.RemoveAll(s.result()), s.edit(fmt.Sprint(s.rounds))); err != nil {
		return err
	}
	s.tally.rounds++
	before := &snapshot{}
	for attempt := range maxAttempts {
		if before.whole() {
			return nil
		}
		end, err := s.attempt(ctx, before, attempt == maxAttempts-1)
		if err != nil || ctx.Err() != nil {
			return err
		}
		after, err := s.snapshot()
		if err != nil {
			s.wrongf("the journal cannot be read: %v", err)
			return nil
		}
		s.judge(end, before, after)
		before = after
	}
	if !before.whole() {
		s.wrongf("the run is not complete after %d attempts, the last of them undisturbed", maxAttempts)
	}
	return nil
}

// ending is how an attempt ended.
type ending struct {
	code   int
	killed bool // by us
	asked  bool // to end, by us
	stderr string
}

// attempt runs tandem once, with faults unless it is left in peace.
func (s *soak) attempt(ctx context.Context, before *snapshot, peace bool) (ending, error) {
	args := []string{"run", "-q", "--out", s.result()}
	if before.run != nil {
		args = []string{"run", "-q", "--resume", s.result()}
		s.tally.resumed++
	}
	s.note("tandem " + strings.Join(args, " "))
	var stderr strings.Builder
	cmd := exec.Command(s.tandem, args...)
	cmd.Dir, cmd.Env = s.repo(), s.environ
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // a leftover that holds the stream must not hold us
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return ending{}, err
	}
	over := make(chan struct{})
	var waitErr error
	go func() {
		waitErr = cmd.Wait()
		close(over)
	}()
	end := ending{}
	var torn bool
	if !peace {
		torn = s.disturb(began, over, &end)
	}
	select {
	case <-over:
	case <-ctx.Done():
		syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
		<-over
	case <-time.After(patience):
		s.wrongf("tandem still runs %v after its last fault: %v", patience, s.processes())
		syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
		<-over
	}
	if errors.Is(waitErr, exec.ErrWaitDelay) {
		s.wrongf("something of the run still holds its streams 10 s after its end: %v", s.processes())
	}
	end.code, end.stderr = cmd.ProcessState.ExitCode(), stderr.String()
	s.note(fmt.Sprintf("ended with %d after %v", end.code, time.Since(began).Round(time.Millisecond)))
	if torn {
		return end, s.tear()
	}
	return end, nil
}

// patience is how long a run may take after its last fault. It takes two
// seconds undisturbed, and each block that a fault hits a few more.
const patience = 60 * time.Second

// disturb injects one to three faults, at random moments.
func (s *soak) disturb(began time.Time, over <-chan struct{}, end *ending) (torn bool) {
	for range 1 + s.rng.IntN(3) {
		f := faults[s.rng.IntN(len(faults))]
		select {
		case <-over:
			return false
		case <-time.After(time.Duration(s.rng.Int64N(int64(2500 * time.Millisecond)))):
		}
		if !s.inject(f, over) {
			return false
		}
		s.tally.faults[f.name]++
		s.note(fmt.Sprintf("%s after %v", f.name, time.Since(began).Round(time.Millisecond)))
		s.hurt = s.hurt || f.victim == "serve" || f.victim == "load"
		end.killed = end.killed || f.endsRun() && f.signal == syscall.SIGKILL
		end.asked = end.asked || f.endsRun() && f.signal == syscall.SIGINT
		if f.endsRun() && !end.asked {
			return f.tear
		}
		if f.victim == watchdogWord && !s.guarded(over) {
			s.wrongf("no other watchdog took the place of one that was killed")
		}
	}
	return false
}

// tear cuts the journal off at a random place behind what was synced, and
// half of the time puts zeros there, as some file systems do.
func (s *soak) tear() error {
	data, err := os.ReadFile(s.journal())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	synced := len(syncedPart(data))
	if err != nil || synced == len(data) {
		return err
	}
	keep := synced + s.rng.IntN(len(data)-synced)
	s.note(fmt.Sprintf("journal torn at byte %d of %d", keep, len(data)))
	torn := data[:keep:keep]
	if s.rng.IntN(2) == 0 {
		torn = append(torn, make([]byte, len(data)-keep)...)
	}
	return os.WriteFile(s.journal(), torn, 0o644)
}

func (s *soak) note(text string) { s.history = append(s.history, text) }

// wrongf tells of something that must not be, with what led to it.
func (s *soak) wrongf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.tally.wrong = append(s.tally.wrong, text)
	fmt.Fprintf(s.out, "WRONG in round %d: %s\n    %s\n", s.rounds, text, strings.Join(s.history, "\n    "))
}

// tally counts what was done and what was wrong.
type tally struct {
	rounds, resumed, trials int
	faults                  map[string]int
	codes                   map[int]int
	wrong                   []string
}

func newTally() tally { return tally{faults: map[string]int{}, codes: map[int]int{}} }

func (t *tally) print(out io.Writer) {
	all := 0
	for _, n := range t.faults {
		all += n
	}
	fmt.Fprintf(out, "%d runs, %d times resumed, %d faults, %d synced trials checked, %d things wrong\n", t.rounds, t.resumed, all, t.trials, len(t.wrong))
	for _, f := range faults {
		fmt.Fprintf(out, "  %-28s %5d\n", f.name, t.faults[f.name])
	}
	for _, code := range slices.Sorted(maps.Keys(t.codes)) {
		fmt.Fprintf(out, "  exit code %-18d %5d\n", code, t.codes[code])
	}
}
