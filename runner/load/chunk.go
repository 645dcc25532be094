package load

import (
	"bytes"
	"errors"
	"fmt"
)

// maxExcess bounds what chunked encoding may cost beyond the data, as in
// net/http.
const maxExcess = 16 << 10

// feedLine reads the parts of a chunked body that are not data: sizes, chunk
// ends and trailers. Their bytes are held until such a part is complete.
func (p *parser) feedLine(b []byte) (n int, done bool, err error) {
	part := b
	before := len(p.hold)
	if before > 0 {
		p.hold = append(p.hold, b...)
		part = p.hold
	}
	var size int
	switch p.stage {
	case inChunkSize:
		size, err = p.chunkSize(part)
	case inChunkEnd:
		size, err = p.chunkEnd(part)
	default:
		size, err = trailer(part)
		done = size > 0
	}
	switch {
	case err != nil:
		return 0, false, err
	case size == 0:
		if before == 0 {
			p.hold = append(p.hold, b...)
		}
		return len(b), false, nil
	}
	p.hold = p.hold[:0]
	return size - before, done, nil
}

// chunkSize reads "1a;extension\r\n". It returns 0 where the line is not
// complete.
func (p *parser) chunkSize(b []byte) (int, error) {
	end := bytes.IndexByte(b, '\n') + 1
	if end > maxChunkLine || end == 0 && len(b) >= maxChunkLine {
		return 0, fmt.Errorf("a chunk-size line is longer than %d bytes", maxChunkLine)
	}
	if end == 0 {
		return 0, nil
	}
	if end < 2 || bytes.IndexByte(b[:end], '\r') != end-2 {
		return 0, fmt.Errorf("malformed chunk-size line %q: expected one CR, at its end", clip(b[:end]))
	}
	line := b[:end-2]
	p.excess += int64(len(line)) + 2
	for len(line) > 0 && (line[len(line)-1] == ' ' || line[len(line)-1] == '\t') {
		line = line[:len(line)-1]
	}
	digits, _, _ := bytes.Cut(line, []byte(";"))
	size, err := parseHex(digits)
	if err != nil {
		return 0, err
	}
	p.excess = max(0, p.excess-16-2*size)
	if p.excess > maxExcess {
		return 0, errors.New("the chunked encoding holds too much that is not data")
	}
	if size == 0 {
		p.stage = inTrailer
		return end, nil
	}
	p.left, p.stage = size, inChunk
	return end, nil
}

// chunkEnd reads the line end after the data of a chunk.
func (p *parser) chunkEnd(b []byte) (int, error) {
	if len(b) < 2 {
		return 0, nil
	}
	if b[0] != '\r' || b[1] != '\n' {
		return 0, fmt.Errorf("malformed chunk: %q where it should end", clip(b[:2]))
	}
	p.stage = inChunkSize
	return 2, nil
}

// trailer reads trailer fields and the blank line after them. It returns 0
// where they are not complete.
func trailer(b []byte) (int, error) {
	if len(b) < 2 {
		return 0, nil
	}
	if b[0] == '\r' && b[1] == '\n' {
		return 2, nil
	}
	window := b[:min(len(b), maxTrailer)]
	end := bytes.Index(window, []byte("\r\n\r\n")) + 4
	if end < 4 {
		if len(b) >= maxTrailer {
			return 0, fmt.Errorf("the trailers are longer than %d bytes", maxTrailer)
		}
		return 0, nil
	}
	if bytes.Count(b[:end], []byte("\n")) != bytes.Count(b[:end], []byte("\r\n")) {
		return 0, errBareTrailer
	}
	return end, eachField(b[:end], func(_, _ []byte) error { return nil })
}

// errBareTrailer is the one place where this parser is stricter than
// net/http, which would take a blank line that ends in a bare LF for the end
// of the trailers after having read beyond it.
var errBareTrailer = errors.New("a line of the trailers ends in a bare LF")

// parseHex reads the size of a chunk. Sizes above 2^62 are refused: no body
// is that long, and one that says so is not to be waited for.
func parseHex(b []byte) (int64, error) {
	if len(b) == 0 || len(b) > 16 {
		return 0, fmt.Errorf("malformed chunk size %q: expected up to 16 hexadecimal digits", clip(b))
	}
	var n uint64
	for _, c := range b {
		switch {
		case digit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, fmt.Errorf("malformed chunk size %q: expected hexadecimal digits", clip(b))
		}
		n = n<<4 | uint64(c)
	}
	if n > 1<<62 {
		return 0, fmt.Errorf("chunk size %q is too large", clip(b))
	}
	return int64(n), nil
}
