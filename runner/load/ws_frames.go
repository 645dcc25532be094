package load

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tandem-bench/tandem/spec"
)

// Opcodes of websocket frames (RFC 6455, section 5.2).
const (
	wsContinue = 0x0
	wsText     = 0x1
	wsBinary   = 0x2
	wsClose    = 0x8
	wsPing     = 0x9
	wsPong     = 0xa
)

// Bits of a frame's head.
const (
	wsFin      = 0x80
	wsRSV      = 0x70
	wsDeflated = 0x40 // RSV1, where permessage-deflate was agreed on
	wsMasked   = 0x80
)

// wsSurplus is how much longer than expected a message may be and still be
// read to its end, so that the connection can go on after the failure.
const wsSurplus = 1 << 20

// wsReply is what every message of a target is held to. It is shared by the
// target's connections.
type wsReply struct {
	opcode  byte
	payload []byte
	deflate bool         // replies may be compressed
	expect  *spec.Expect // judges replies in place of payload; nil: none
}

// frames reads the messages that a server sends on one connection, in
// whatever pieces they arrive, and judges each.
//
// A server that echoes sends the same bytes over and over. So the bytes of
// the last message that was right are kept, and what arrives is compared with
// them; only what differs is taken apart. Nothing is lost by that: the same
// bytes are the same frame.
type frames struct {
	reply *wsReply
	write func([]byte) // sends a control frame

	known   []byte // the frame of the last message that was right; empty: none yet
	matched int    // bytes of known that have come of the current message
	parsing bool   // the current message is taken apart

	head     [14]byte
	headLen  int
	left     uint64 // payload bytes still to come of the frame
	inFrame  bool   // its head is complete
	signal   []byte // payload of a control frame
	started  bool   // a message has begun
	opcode   byte   // of the message
	deflated bool   // the message is compressed
	message  []byte // payload so far
	failed   *failure
	inflater io.ReadCloser
	plain    []byte // a message inflated
}

// feed reads bytes of a message; see parser.feed.
func (f *frames) feed(b []byte) (used int, done bool, err error) {
	for used < len(b) {
		if f.parsing || len(f.known) == 0 {
			n, done, err := f.parse(b[used:])
			used += n
			if done || err != nil {
				return used, done, err
			}
			continue
		}
		rest := b[used:]
		want := f.known[f.matched:]
		n := min(len(rest), len(want))
		if bytes.Equal(rest[:n], want[:n]) {
			used += n
			if n == len(want) {
				f.matched, f.failed = 0, nil
				return used, true, nil
			}
			f.matched += n
			return used, false, nil
		}
		// What matched so far is part of something else.
		start := f.known[:f.matched]
		f.matched, f.parsing = 0, true
		for len(start) > 0 {
			n, _, err := f.parse(start)
			if err != nil {
				return used, false, err
			}
			start = start[n:]
		}
	}
	return used, false, nil
}

// parse reads up to the end of one frame. It returns done at the end of a
// message.
func (f *frames) parse(b []byte) (used int, done bool, err error) {
	f.parsing = true
	for used < len(b) && !f.inFrame {
		f.head[f.headLen] = b[used]
		f.headLen++
		used++
		if f.headLen < f.headSize() {
			continue
		}
		if err := f.begin(); err != nil {
			return used, false, err
		}
	}
	if !f.inFrame {
		return used, false, nil
	}
	n := len(b) - used
	if uint64(n) > f.left {
		n = int(f.left)
	}
	if f.isControl() {
		f.signal = append(f.signal, b[used:used+n]...)
	} else {
		f.message = append(f.message, b[used:used+n]...)
	}
	used += n
	f.left -= uint64(n)
	if f.left > 0 {
		return used, false, nil
	}
	done, err = f.end()
	return used, done, err
}

// headSize is how long the head is, as far as it can be told yet.
func (f *frames) headSize() int {
	switch {
	case f.headLen < 2:
		return 2
	case f.head[1]&0x7f == 126:
		return 4
	case f.head[1]&0x7f == 127:
		return 10
	default:
		return 2
	}
}

func (f *frames) isControl() bool { return f.head[0]&0x08 != 0 }

// begin checks the head of a frame.
func (f *frames) begin() error {
	first, length := f.head[0], uint64(f.head[1]&0x7f)
	switch length {
	case 126:
		length = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		length = binary.BigEndian.Uint64(f.head[2:])
	}
	opcode := first & 0x0f
	switch {
	case f.head[1]&wsMasked != 0:
		return failf(Protocol, "a masked frame: only clients mask theirs")
	case opcode > wsBinary && opcode < wsClose || opcode > wsPong:
		return failf(Protocol, "a frame with the unknown opcode %#x", opcode)
	case f.isControl() && (first&wsFin == 0 || length > 125 || first&wsRSV != 0):
		return failf(Protocol, "a control frame that is fragmented, too long or has reserved bits: % x", f.head[:2])
	case f.isControl():
	case opcode == wsContinue && !f.started:
		return failf(Protocol, "a continuation frame with nothing to continue")
	case opcode != wsContinue && f.started:
		return failf(Protocol, "a new message in the middle of another")
	case first&(wsRSV&^wsDeflated) != 0, first&wsDeflated != 0 && (!f.reply.deflate || opcode == wsContinue):
		return failf(Protocol, "a frame with reserved bits that were not agreed on: %#x", first)
	case length > uint64(len(f.reply.payload)+wsSurplus) || len(f.message)+int(length) > len(f.reply.payload)+wsSurplus:
		return failf(Protocol, "a message of %d bytes or more, expected %d", uint64(len(f.message))+length, len(f.reply.payload))
	}
	if !f.isControl() && opcode != wsContinue {
		f.started, f.opcode, f.deflated = true, opcode, first&wsDeflated != 0
		f.message = f.message[:0]
	}
	f.signal = f.signal[:0]
	f.left, f.inFrame = length, true
	return nil
}

// end ends a frame.
func (f *frames) end() (done bool, err error) {
	first, head := f.head[0], f.headLen
	f.inFrame, f.headLen = false, 0
	switch {
	case f.isControl():
		f.parsing = f.started
		return false, f.controlled(first & 0x0f)
	case first&wsFin == 0:
		return false, nil
	}
	f.started, f.parsing = false, false
	f.failed = f.judge()
	// A message in one frame, that is right, is known from now on.
	if f.failed == nil && first&0x0f != wsContinue {
		f.known = append(append(f.known[:0], f.head[:head]...), f.message...)
	}
	return true, nil
}

// controlled deals with a control frame.
func (f *frames) controlled(opcode byte) error {
	switch opcode {
	case wsPing:
		if f.write != nil {
			f.write(wsFrame(wsPong, 0, f.signal, wsControlMask))
		}
	case wsClose:
		if len(f.signal) >= 2 {
			return failf(EOF, "the server closed the websocket with code %d %.100q", binary.BigEndian.Uint16(f.signal), f.signal[2:])
		}
		return failf(EOF, "the server closed the websocket")
	}
	return nil
}

// judge holds a complete message to what is expected.
func (f *frames) judge() *failure {
	payload := f.message
	if f.deflated {
		var err error
		if payload, err = f.inflate(); err != nil {
			return failf(Protocol, "a compressed message that cannot be inflated: %w", err)
		}
	}
	if e := f.reply.expect; e != nil {
		ok, err := e.Eval(101, payload, nil)
		switch {
		case err != nil:
			return failf(Body, "expect %q: %w", e.Source, err)
		case !ok:
			return failf(Body, "message %q does not satisfy %q", clip(payload), e.Source)
		}
		return nil
	}
	switch {
	case f.opcode != f.reply.opcode:
		return failf(Body, "a message with opcode %#x, expected %#x", f.opcode, f.reply.opcode)
	case len(payload) != len(f.reply.payload):
		return failf(Body, "a message of %d bytes, expected %d", len(payload), len(f.reply.payload))
	case !bytes.Equal(payload, f.reply.payload):
		return failf(Body, "a message whose content is not what was expected: %q", clip(payload))
	}
	return nil
}

// deflateTail is what a sender takes off the end of a compressed message
// (RFC 7692, section 7.2.1), and a last block that ends the stream.
const deflateTail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

// inflate is the message without its compression. It reads no more than
// shows that a message is too long.
func (f *frames) inflate() ([]byte, error) {
	in := io.MultiReader(bytes.NewReader(f.message), bytes.NewReader([]byte(deflateTail)))
	if f.inflater == nil {
		f.inflater = flate.NewReader(in)
	} else if err := f.inflater.(flate.Resetter).Reset(in, nil); err != nil {
		return nil, err
	}
	w := bytes.NewBuffer(f.plain[:0])
	_, err := io.Copy(w, io.LimitReader(f.inflater, int64(len(f.reply.payload)+wsSurplus)))
	f.plain = w.Bytes()
	return f.plain, err
}

// control reads what arrives while no message is awaited. It returns whether
// that was nothing but control frames, of which the last may be incomplete.
func (f *frames) control(b []byte) bool {
	if f == nil {
		return false
	}
	_, done, err := f.feed(b)
	return !done && err == nil && !f.started && f.matched == 0
}

// ended says how a connection that ended left its messages.
func (f *frames) ended() error {
	if f.started || f.inFrame || f.headLen > 0 || f.matched > 0 {
		return &failure{EOF, fmt.Errorf("connection closed in the middle of a message: %w", io.ErrUnexpectedEOF)}
	}
	return &failure{EOF, fmt.Errorf("connection closed before the reply: %w", io.EOF)}
}

// reset forgets a message that was not read to its end.
func (f *frames) reset() {
	f.matched, f.headLen = 0, 0
	f.parsing, f.inFrame, f.started = false, false, false
}

// parseClass is the class of an error of a parser.
func parseClass(err error) Class {
	var f *failure
	if errors.As(err, &f) {
		return f.class
	}
	return Protocol
}
