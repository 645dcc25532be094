package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Part is one shard of a merged run: what it measured, where and how far.
type Part struct {
	Shard   string    `json:"shard"` // "2/4"
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	Host    Host      `json:"host"`
	Pins    Pins      `json:"pins"`
	Rows    []string  `json:"rows"` // IDs of its scenarios
	End     *End      `json:"end"`  // null where it was cut off
}

// ErrMissingShards is what [Merge] returns where shards are not there.
var ErrMissingShards = errors.New("shards are missing")

// Merge joins the shards of one plan into one run, in the order of the plan.
// It refuses shards that are not parts of the same measurement: another
// spec, seed, plan, revision or version of Tandem. What each shard left of
// its machine and of its end stands in Header.Parts.
func Merge(runs []*Run, id string) (*Run, error) {
	shards, err := arrange(runs)
	if err != nil {
		return nil, err
	}
	first := shards[0].Header
	for _, s := range shards[1:] {
		if err := sameShardPlan(first, s.Header); err != nil {
			return nil, err
		}
	}
	h := *first
	h.ID, h.Shard, h.Parts, h.Warnings = id, "", nil, nil
	if h.Rows, err = joinRows(shards); err != nil {
		return nil, err
	}
	merged := &Run{Header: &h, End: joinEnds(shards)}
	for _, s := range shards {
		if err := merged.take(s); err != nil {
			return nil, err
		}
	}
	h.Warnings = joinWarnings(shards)
	// In the order in which Save writes them.
	slices.SortStableFunc(merged.Trials, func(a, b Trial) int { return cmp.Compare(a.Block, b.Block) })
	slices.SortStableFunc(merged.Checks, func(a, b Check) int { return cmp.Compare(a.Block, b.Block) })
	slices.SortStableFunc(merged.Ends, func(a, b BlockEnd) int { return cmp.Compare(a.Block, b.Block) })
	return merged, nil
}

// arrange puts the shards in order and makes sure that each is there once.
func arrange(runs []*Run) ([]*Run, error) {
	byK, of := map[int]*Run{}, 0
	for _, r := range runs {
		var k, n int
		if r.Header.Shard == "" {
			return nil, fmt.Errorf("run %s is no shard: it was not made by run --shard K/N", r.Header.ID)
		}
		if c, err := fmt.Sscanf(r.Header.Shard, "%d/%d", &k, &n); c != 2 || err != nil || k < 1 || k > n {
			return nil, fmt.Errorf("run %s names its shard %q, expected K/N", r.Header.ID, r.Header.Shard)
		}
		if of == 0 {
			of = n
		}
		if n != of {
			return nil, fmt.Errorf("found shard %d/%d beside shards of %d: they are parts of different plans", k, n, of)
		}
		if byK[k] != nil {
			return nil, fmt.Errorf("found shard %d/%d twice, in run %s and run %s", k, n, byK[k].Header.ID, r.Header.ID)
		}
		byK[k] = r
	}
	if of == 0 {
		return nil, errors.New("found no shard to merge")
	}
	var all []*Run
	var missing []string
	for k := 1; k <= of; k++ {
		// A huge N is no reason to list a million missing shards.
		if byK[k] == nil && len(missing) < 8 {
			missing = append(missing, fmt.Sprintf("%d/%d", k, of))
		}
		if byK[k] != nil {
			all = append(all, byK[k])
		}
	}
	if len(all) < of {
		return nil, fmt.Errorf("%w: found %d of %d, without %s; a table without their rows could not be judged", ErrMissingShards, len(all), of, strings.Join(missing, ", "))
	}
	return all, nil
}

// sameShardPlan says what tells two shards apart that must not.
func sameShardPlan(a, b *Header) error {
	var specA, specB struct{ Digest, Profile string }
	if err := errors.Join(json.Unmarshal(a.Spec, &specA), json.Unmarshal(b.Spec, &specB)); err != nil {
		return fmt.Errorf("the spec kept in a shard cannot be read: %w", err)
	}
	var differ []string
	compare := func(what string, x, y any) {
		if fx, fy := fmt.Sprint(x), fmt.Sprint(y); fx != fy {
			differ = append(differ, fmt.Sprintf("%s is %s in shard %s and %s in shard %s", what, named(fx), a.Shard, named(fy), b.Shard))
		}
	}
	compare("the spec's digest", specA.Digest, specB.Digest)
	compare("the profile", specA.Profile, specB.Profile)
	compare("the seed", a.Seed, b.Seed)
	compare("the version of tandem", a.Tool, b.Tool)
	compare("the number of copies", a.Copies, b.Copies)
	compare("the plan of looks", a.Looks, b.Looks)
	compare("--scenario", a.Filter, b.Filter)
	compare("--same", a.Same, b.Same)
	x, y := originOf(a), originOf(b)
	compare("the side whose spec counts", x.Side, y.Side)
	compare("the merge base", x.MergeBase, y.MergeBase)
	compare("the head", x.Head, y.Head)
	compare("the number of arms", len(a.Arms), len(b.Arms))
	for i := range min(len(a.Arms), len(b.Arms)) {
		x, y := a.Arms[i], b.Arms[i]
		compare(fmt.Sprintf("arm %d", i+1), x.Name, y.Name)
		compare("the source of arm "+x.Name, x.Source, y.Source)
		compare("the revision of arm "+x.Name, x.Revision, y.Revision)
		if x.Revision == "" { // nothing else says what was built
			compare("the built tree of arm "+x.Name, x.Digest, y.Digest)
		}
	}
	if differ != nil {
		return fmt.Errorf("these are not shards of one run: %s", strings.Join(differ, "; "))
	}
	return nil
}

func originOf(h *Header) Origin {
	if h.Origin == nil {
		return Origin{}
	}
	return *h.Origin
}

func named(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// joinRows puts the scenarios in the order in which they were dealt out.
func joinRows(shards []*Run) ([]string, error) {
	var rows []string
	seen := map[string]bool{}
	for i := 0; ; i++ {
		s := shards[i%len(shards)].Header
		at := i / len(shards)
		if at >= len(s.Rows) {
			break
		}
		if seen[s.Rows[at]] {
			return nil, fmt.Errorf("scenario %s is in two shards, and in a plan it is in one", s.Rows[at])
		}
		seen[s.Rows[at]] = true
		rows = append(rows, s.Rows[at])
	}
	total := 0
	for _, s := range shards {
		total += len(s.Header.Rows)
	}
	if total != len(rows) {
		return nil, fmt.Errorf("the shards hold %d scenarios, of which %d can be those of one plan", total, len(rows))
	}
	return rows, nil
}

// take adds what a shard measured.
func (r *Run) take(s *Run) error {
	h := s.Header
	for _, t := range s.Trials {
		if !slices.Contains(h.Rows, t.Scenario) {
			return fmt.Errorf("shard %s holds a trial of %q, which is none of its scenarios", h.Shard, t.Scenario)
		}
	}
	for _, c := range s.Checks {
		if !slices.Contains(h.Rows, c.Scenario) {
			return fmt.Errorf("shard %s holds a check of %q, which is none of its scenarios", h.Shard, c.Scenario)
		}
	}
	r.Header.Parts = append(r.Header.Parts, Part{Shard: h.Shard, ID: h.ID, Started: h.Started, Host: h.Host, Pins: h.Pins, Rows: h.Rows, End: s.End})
	if h.Started.Before(r.Header.Started) {
		r.Header.Started = h.Started
	}
	r.Trials = append(r.Trials, s.Trials...)
	r.Checks = append(r.Checks, s.Checks...)
	for _, e := range s.Ends {
		e.Shard = h.Shard
		r.Ends = append(r.Ends, e)
	}
	return nil
}

// endRank orders the reasons for an end by how little of the plan they leave.
var endRank = []string{EndSettled, EndBlocks, EndBudget, EndFailed, EndInterrupted}

// joinEnds is the end of the shard that came least far, at the time of the
// last. A shard that was cut off was interrupted.
func joinEnds(shards []*Run) *End {
	out := End{Reason: EndSettled}
	for _, s := range shards {
		end := End{Reason: EndInterrupted, Detail: "its journal has no end: it was killed", Ended: lastSign(s)}
		if s.End != nil {
			end = *s.End
		}
		if end.Ended.After(out.Ended) {
			out.Ended = end.Ended
		}
		if slices.Index(endRank, end.Reason) > slices.Index(endRank, out.Reason) {
			out.Reason, out.Detail = end.Reason, ""
			if end.Detail != "" {
				out.Detail = fmt.Sprintf("shard %s: %s", s.Header.Shard, end.Detail)
			}
		}
	}
	return &out
}

// lastSign is the last moment that a shard without an end tells of.
func lastSign(s *Run) time.Time {
	last := s.Header.Started
	for _, e := range s.Ends {
		if e.Ended.After(last) {
			last = e.Ended
		}
	}
	return last
}

// joinWarnings lists each warning once, with the shards that it is about
// where it is not about all of them, and what differs between the shards.
func joinWarnings(shards []*Run) []string {
	about := map[string][]string{}
	var order []string
	for _, s := range shards {
		own := slices.Clone(s.Header.Warnings)
		if s.End != nil {
			own = append(own, s.End.Warnings...)
		}
		if s.Torn {
			own = append(own, "the last line of its journal was cut off and is left out")
		}
		if s.Resume > 0 {
			own = append(own, fmt.Sprintf("it was resumed %d time(s)", s.Resume))
		}
		for _, w := range own {
			if about[w] == nil {
				order = append(order, w)
			}
			about[w] = append(about[w], s.Header.Shard)
		}
	}
	var out []string
	for _, w := range order {
		if len(about[w]) < len(shards) {
			w = fmt.Sprintf("shard %s: %s", strings.Join(about[w], ", "), w)
		}
		out = append(out, w)
	}
	return append(out, differences(shards)...)
}

// differences says where the shards were not measured alike. Both arms of a
// row always were: ratios hold, and absolute figures of two rows may not be
// comparable.
func differences(shards []*Run) []string {
	var machines []string
	uneven := map[string]bool{}
	first := shards[0].Header
	for _, s := range shards {
		h := s.Header.Host
		m := fmt.Sprintf("%s, %d CPUs, kernel %s", h.CPU, h.Cores, h.Kernel)
		if !slices.Contains(machines, m) {
			machines = append(machines, m)
		}
		for i, arm := range s.Header.Arms {
			if arm.Digest != first.Arms[i].Digest {
				uneven[arm.Name] = true
			}
		}
	}
	var out []string
	if len(machines) > 1 {
		slices.Sort(machines)
		out = append(out, fmt.Sprintf("the shards ran on %d kinds of machine, each row on one of them: %s", len(machines), strings.Join(machines, "; ")))
	}
	for _, arm := range first.Arms {
		if uneven[arm.Name] {
			out = append(out, fmt.Sprintf("arm %s: the shards built different files of it: its build is not reproducible, or its folder had changes that are not committed", arm.Name))
		}
	}
	return out
}

// Save writes a whole run as a journal at path, which must not exist, block
// by block.
func Save(path string, r *Run) error {
	w, err := Create(path, *r.Header)
	if err != nil {
		return err
	}
	lines := make([]line, 0, len(r.Checks)+len(r.Trials)+len(r.Ends))
	for i := range r.Checks {
		lines = append(lines, line{Check: &r.Checks[i]})
	}
	for i := range r.Trials {
		lines = append(lines, line{Trial: &r.Trials[i]})
	}
	for i := range r.Ends {
		lines = append(lines, line{BlockEnd: &r.Ends[i]})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.block(), b.block()) })
	for _, l := range lines {
		if err := w.write(l); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	if r.End == nil {
		return errors.Join(w.Sync(), w.Close())
	}
	return w.End(*r.End)
}

// block is the block that a record belongs to.
func (l line) block() int {
	switch {
	case l.Check != nil:
		return l.Check.Block
	case l.Trial != nil:
		return l.Trial.Block
	}
	return l.BlockEnd.Block
}
