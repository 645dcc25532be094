package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Run is a whole journal, read back.
type Run struct {
	Header *Header
	Trials []Trial
	Checks []Check
	Ends   []BlockEnd
	End    *End // nil where the run was cut off
	Torn   bool // the last line was cut off and is left out
	Resume int  // how often the run was resumed
}

// Resume marks where a run went on after it was cut off: what was kept of
// Block and of later ones before this line is superseded.
type Resume struct {
	Block int `json:"block"`
}

// line is the wire form of a record: exactly one field is set.
type line struct {
	Header   *Header   `json:"header,omitempty"`
	Trial    *Trial    `json:"trial,omitempty"`
	Check    *Check    `json:"check,omitempty"`
	BlockEnd *BlockEnd `json:"block_end,omitempty"`
	Resume   *Resume   `json:"resume,omitempty"`
	End      *End      `json:"end,omitempty"`
}

// ErrEmpty is returned for a journal without a whole header.
var ErrEmpty = errors.New("the journal holds no header: the run ended before it began to measure")

// Open reads the journal at path.
func Open(path string) (*Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	run, err := parse(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

// Read reads a journal. A last line that was cut off is left out and
// reported as Torn; any other damage is an error that names its line.
func Read(r io.Reader) (*Run, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return parse(bytes.NewReader(data), int64(len(data)))
}

func parse(r io.ReaderAt, size int64) (*Run, error) {
	all, err := decode(r, size)
	if err != nil {
		return nil, err
	}
	if len(all.lines) == 0 {
		return nil, ErrEmpty
	}
	run := &Run{Torn: all.torn, Trials: make([]Trial, 0, len(all.lines))}
	for i, l := range all.lines {
		if l.err != nil {
			// A crash may leave a full-length last line of garbage or zeros.
			if i == len(all.lines)-1 && i > 0 {
				run.Torn = true
				break
			}
			return nil, fmt.Errorf("line %d: %w", i+1, l.err)
		}
		if err := run.add(l.line, i == 0); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return run, nil
}

func (r *Run) add(l line, first bool) error {
	switch {
	case l.Header != nil:
		if !first {
			return errors.New("a second header: two journals in one file")
		}
		if l.Header.Version < 1 || l.Header.Version > Version {
			return fmt.Errorf("journal format %d, and this version reads formats 1 to %d: report it with the version of tandem that wrote it (%s)",
				l.Header.Version, Version, l.Header.Tool)
		}
		r.Header = l.Header
	case first:
		return errors.New("no header: this is not a journal of tandem")
	case l.Trial != nil:
		r.Trials = append(r.Trials, *l.Trial)
	case l.Check != nil:
		r.Checks = append(r.Checks, *l.Check)
	case l.BlockEnd != nil:
		r.Ends = append(r.Ends, *l.BlockEnd)
	case l.Resume != nil:
		r.supersede(l.Resume.Block)
	case l.End != nil:
		r.End = l.End
	default:
		return errors.New("a record of an unknown kind")
	}
	return nil
}

// supersede forgets what was kept of block and later ones.
func (r *Run) supersede(block int) {
	r.Resume++
	r.End = nil
	r.Trials = keep(r.Trials, func(t Trial) bool { return t.Block < block })
	r.Checks = keep(r.Checks, func(c Check) bool { return c.Block < block })
	r.Ends = keep(r.Ends, func(e BlockEnd) bool { return e.Block < block })
}

func keep[T any](all []T, ok func(T) bool) []T {
	kept := all[:0]
	for _, t := range all {
		if ok(t) {
			kept = append(kept, t)
		}
	}
	return kept
}
