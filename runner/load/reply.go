package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// stage is where in a response a parser stands.
type stage uint8

const (
	inHead stage = iota
	inBody
	inChunkSize
	inChunk
	inChunkEnd
	inTrailer
)

// maxChunkLine is the longest chunk-size line, its line end included, as in
// net/http.
const maxChunkLine = 4096

// memo is the last head that was parsed in full for a request. Servers
// repeat their heads byte for byte (until the Date changes), and comparing
// one is ten times as fast as parsing it.
type memo struct {
	raw  []byte
	head head
}

// asked is what a parser needs to know of the request that it reads the
// response of. It is shared by all connections that send this request.
type asked struct {
	toHead bool   // the request was HEAD
	want   []byte // the body expected, where compare is set
	// compare: hold the body to want while it arrives. keep: keep a body
	// that is not want, and the head, for an expression to look at.
	compare, keep bool
	memo          memo
}

// parser reads the responses of one connection, in whatever pieces they
// arrive. The zero value is ready. It does not allocate while heads arrive
// whole and bodies are as expected.
type parser struct {
	head    head
	stage   stage
	differs bool    // the body so far is not what was expected, or nothing was
	kept    bool    // body holds the body so far
	seen    int64   // bytes of the body so far
	left    int64   // bytes still to come of the body or the chunk
	excess  int64   // chunk overhead, bounded as in net/http
	hold    []byte  // an incomplete head, chunk line or trailer
	raw     []byte  // the head, where asked.keep
	body    []byte  // the body, where kept
	frames  *frames // reads websocket messages instead; nil: responses
}

// feed reads bytes of a response. It returns how many it used and whether
// the response is complete; bytes after that belong to the next response.
func (p *parser) feed(b []byte, a *asked) (used int, done bool, err error) {
	if p.frames != nil {
		return p.frames.feed(b)
	}
	total := len(b)
	for {
		var n int
		switch p.stage {
		case inHead:
			n, done, err = p.feedHead(b, a)
		case inBody:
			n, done = p.feedBody(b, a)
		case inChunk:
			n, _ = p.feedBody(b, a)
			if p.left == 0 {
				p.stage = inChunkEnd
			}
		default:
			n, done, err = p.feedLine(b)
		}
		b = b[n:]
		if done || err != nil || len(b) == 0 {
			if done {
				p.finish(a)
			}
			return total - len(b), done, err
		}
	}
}

// end tells the parser that the connection ended. It returns whether that
// completes a response, or why it must not have ended here.
func (p *parser) end(a *asked) (done bool, err error) {
	switch {
	case p.frames != nil:
		return false, p.frames.ended()
	case p.stage == inBody && p.head.frame == untilClose:
		p.finish(a)
		return true, nil
	case p.stage == inHead && len(p.hold) == 0:
		return false, &failure{EOF, fmt.Errorf("connection closed before the response: %w", io.EOF)}
	default:
		return false, &failure{EOF, fmt.Errorf("connection closed in the middle of a response: %w", io.ErrUnexpectedEOF)}
	}
}

// reset forgets a response that was not read to its end.
func (p *parser) reset() {
	p.stage, p.hold = inHead, p.hold[:0]
	if p.frames != nil {
		p.frames.reset()
	}
}

// feedHead reads the head, by the memo where it can.
func (p *parser) feedHead(b []byte, a *asked) (n int, done bool, err error) {
	if m := a.memo.raw; len(p.hold) == 0 && len(m) > 0 && len(b) >= len(m) && string(b[:len(m)]) == string(m) {
		p.head = a.memo.head
		return len(m), p.begin(m, a), nil
	}
	raw := b
	before := len(p.hold)
	if before > 0 {
		p.hold = append(p.hold, b...)
		raw = p.hold
	}
	size := headEnd(raw, before-3)
	switch {
	case size > maxHead || size == 0 && len(raw) > maxHead:
		return 0, false, fmt.Errorf("the head of the response is longer than %d bytes", maxHead)
	case size == 0:
		if before == 0 {
			p.hold = append(p.hold, b...)
		}
		return len(b), false, nil
	}
	raw = raw[:size]
	p.hold = p.hold[:0] // its bytes stay as they are until the next append
	if err := parseHead(raw, a.toHead, &p.head); err != nil {
		return 0, false, err
	}
	n = size - before
	switch {
	case p.head.status == 101:
		return n, false, errors.New("status 101 without being asked to switch protocols")
	case p.head.status/100 == 1:
		return n, false, nil // an interim response; the final one follows
	}
	a.memo.raw = append(a.memo.raw[:0], raw...)
	a.memo.head = p.head
	return n, p.begin(raw, a), nil
}

// begin starts the body after a head. It returns true where there is none.
func (p *parser) begin(raw []byte, a *asked) (done bool) {
	p.seen, p.left, p.excess = 0, p.head.length, 0
	p.differs, p.kept = !a.compare, false
	if a.keep {
		p.raw = append(p.raw[:0], raw...)
		p.body = p.body[:0]
		p.kept = p.differs
	}
	switch p.head.frame {
	case chunked:
		p.stage = inChunkSize
		return false
	case untilClose:
		p.left = 1<<63 - 1
	}
	p.stage = inBody
	return p.left == 0
}

// feedBody reads bytes of the body.
func (p *parser) feedBody(b []byte, a *asked) (n int, done bool) {
	n = len(b)
	if int64(n) > p.left {
		n = int(p.left)
	}
	p.left -= int64(n)
	if !p.differs {
		if at := int(p.seen); at+n > len(a.want) || !bytes.Equal(b[:n], a.want[at:at+n]) {
			p.differs = true
			if a.keep {
				p.body = append(p.body[:0], a.want[:at]...)
				p.kept = true
			}
		}
	}
	if p.kept {
		p.body = append(p.body, b[:n]...)
	}
	p.seen += int64(n)
	return n, p.left == 0
}

// finish ends a response and looks at its body as a whole: one that stopped
// short of what was expected differs, too.
func (p *parser) finish(a *asked) {
	p.stage = inHead
	if p.differs || p.seen == int64(len(a.want)) {
		return
	}
	p.differs = true
	if a.keep {
		p.body = append(p.body[:0], a.want[:p.seen]...)
		p.kept = true
	}
}
