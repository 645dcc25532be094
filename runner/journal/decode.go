package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"sync"
)

// decoded are the lines of a journal, or of a part of it.
type decoded struct {
	lines []decodedLine
	torn  bool // it ends within a line
}

type decodedLine struct {
	line
	err error
}

// minPart is the length of a journal from which a second CPU is worth it.
const minPart = 1 << 20

// decode parses the lines on all CPUs: a long run has hundreds of thousands.
// Each CPU takes the lines that begin in its part of the file.
func decode(r io.ReaderAt, size int64) (decoded, error) {
	n := max(1, min(int64(runtime.GOMAXPROCS(0)), size/minPart))
	parts, errs := make([]decoded, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { parts[i], errs[i] = decodePart(r, size, i*size/n, (i+1)*size/n) })
	}
	wg.Wait()
	all := parts[0]
	for _, p := range parts[1:] {
		all.lines = append(all.lines, p.lines...)
		all.torn = all.torn || p.torn
	}
	return all, errors.Join(errs...)
}

// decodePart parses the lines that begin at from or later, and before to.
func decodePart(r io.ReaderAt, size, from, to int64) (d decoded, err error) {
	at := max(from-1, 0)
	in := bufio.NewReaderSize(io.NewSectionReader(r, at, size-at), 1<<18)
	if from > 0 { // up to the end of the line that is another part's
		skipped, err := readLine(in)
		if at += int64(len(skipped)); err != nil {
			return d, ignoreEOF(err)
		}
	}
	s := newScanner()
	for at < to {
		text, err := readLine(in)
		if err != nil {
			d.torn = len(text) > 0
			return d, ignoreEOF(err)
		}
		at += int64(len(text))
		d.lines = append(d.lines, s.line(text[:len(text)-1]))
	}
	return d, nil
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// readLine returns the next line with its end, valid until the next call. At
// the end of the file it returns what is left, and io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return text, err
	}
	long := bytes.Clone(text)
	rest, err := in.ReadBytes('\n')
	return append(long, rest...), err
}

// line parses one line.
func (s *scanner) line(text []byte) (l decodedLine) {
	if t, ok := s.trial(text); ok {
		l.Trial = t
		return l
	}
	l.err = json.Unmarshal(text, &l.line)
	return l
}
