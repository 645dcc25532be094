package load

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// keptOutput is how much of an output is kept for messages.
const keptOutput = 64 << 10

// capture is a file that a process writes to: an unnamed one, which costs
// the process less than a pipe with a reader beside it, or the null device.
type capture struct {
	file *os.File
	null bool
}

func newCapture(name string, keep bool) (*capture, error) {
	if !keep {
		f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		return &capture{f, true}, err
	}
	f, err := unnamedFile(name)
	if err != nil {
		return nil, fmt.Errorf("a file for %s: %w", name, err)
	}
	return &capture{f, false}, nil
}

// reset empties the file.
func (c *capture) reset() error {
	if c.null {
		return nil
	}
	if pos, err := c.file.Seek(0, io.SeekCurrent); err == nil && pos == 0 {
		return nil
	}
	if err := c.file.Truncate(0); err != nil {
		return err
	}
	_, err := c.file.Seek(0, io.SeekStart)
	return err
}

// bytes is the whole output; nil where it is not kept.
func (c *capture) bytes() ([]byte, error) {
	if c.null {
		return nil, nil
	}
	st, err := c.file.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, st.Size())
	n, err := c.file.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// digest reads the output through without holding it in memory whole.
func (c *capture) digest() (digest, error) {
	var d digest
	st, err := c.file.Stat()
	if err != nil {
		return d, err
	}
	d.size = st.Size()
	d.head = make([]byte, min(d.size, keptOutput))
	if _, err := c.file.ReadAt(d.head, 0); err != nil && err != io.EOF {
		return d, err
	}
	if d.size <= keptOutput {
		return d, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(c.file, 0, d.size)); err != nil {
		return d, err
	}
	d.sum = [sha256.Size]byte(h.Sum(nil))
	return d, nil
}

// hint is the end of the output as the end of an error text.
func (c *capture) hint() string {
	b, err := c.bytes()
	if err != nil {
		return ""
	}
	return tailHint(b)
}

func (c *capture) close() {
	if c != nil && c.file != nil {
		c.file.Close()
	}
}

// digest identifies an output: whole where it is short, by a hash beyond.
type digest struct {
	size int64
	head []byte            // the first keptOutput bytes
	sum  [sha256.Size]byte // of the whole, where it is longer than that
}

// digestOf is the digest of an output that is in memory.
func digestOf(b []byte) digest {
	d := digest{size: int64(len(b)), head: b[:min(len(b), keptOutput)]}
	if len(b) > keptOutput {
		d.sum = sha256.Sum256(b)
	}
	return d
}

// difference says where two outputs part; empty where they are the same.
func (d digest) difference(e digest) string {
	if d.size == e.size && bytes.Equal(d.head, e.head) && d.sum == e.sum {
		return ""
	}
	n := 0
	for n < len(d.head) && n < len(e.head) && d.head[n] == e.head[n] {
		n++
	}
	if n == len(d.head) && n == len(e.head) && d.size > keptOutput {
		return fmt.Sprintf("%d bytes, expected %d, the first %d the same", e.size, d.size, n)
	}
	return fmt.Sprintf("at byte %d found %.40q, expected %.40q", n, e.head[n:], d.head[n:])
}
