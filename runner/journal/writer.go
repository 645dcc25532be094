package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Writer appends records to a journal. Every record is one write, so a
// reader at any moment sees whole lines and at most one that is cut off.
// A Writer is used by one goroutine.
type Writer struct {
	f   *os.File
	err error // the first failure; later calls return it
}

// Create starts a journal at path, which must not exist.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	w := &Writer{f: f}
	h.Version = Version
	if err := errors.Join(w.write(line{Header: &h}), w.Sync()); err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

// Continue opens the journal at path to go on with block: a line that was
// cut off is removed, and what is there of block and later ones is superseded.
func Continue(path string, block int) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if err := cutTornLine(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	w := &Writer{f: f}
	if err := w.write(line{Resume: &Resume{Block: block}}); err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

func cutTornLine(f *os.File) error {
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	end := len(data)
	for end > 0 && data[end-1] != '\n' {
		end--
	}
	// A last line that is complete in length but not in content goes too.
	start := end - 1
	for start > 0 && data[start-1] != '\n' {
		start--
	}
	if end > 0 && !json.Valid(data[start:end]) {
		end = max(start, 0)
	}
	return f.Truncate(int64(end))
}

// Trial appends a trial. A metric that is not a finite number is left out:
// JSON has no word for it, and a missing metric passes no gate.
func (w *Writer) Trial(t Trial) error {
	t.Metrics = t.Metrics.finite()
	return w.write(line{Trial: &t})
}

// Check appends the outcome of a check.
func (w *Writer) Check(c Check) error { return w.write(line{Check: &c}) }

// EndBlock closes a block and syncs the file.
func (w *Writer) EndBlock(b BlockEnd) error {
	return errors.Join(w.write(line{BlockEnd: &b}), w.Sync())
}

// End closes the run and the file.
func (w *Writer) End(e End) error {
	return errors.Join(w.write(line{End: &e}), w.Sync(), w.f.Close())
}

// Sync flushes the file to the disk.
func (w *Writer) Sync() error {
	if w.err != nil {
		return w.err
	}
	if err := w.f.Sync(); err != nil {
		w.err = err
	}
	return w.err
}

// Close closes the file without ending the run.
func (w *Writer) Close() error { return w.f.Close() }

func (w *Writer) write(l line) error {
	if w.err != nil {
		return w.err
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if _, err := w.f.Write(append(data, '\n')); err != nil {
		w.err = fmt.Errorf("writing the journal: %w", err)
	}
	return w.err
}
