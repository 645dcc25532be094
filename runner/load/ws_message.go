package load

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"

	"github.com/tandem-bench/tandem/spec"
)

// wsControlMask masks the few control frames that a client sends.
var wsControlMask = [4]byte{0x5a, 0xa5, 0x3c, 0xc3}

// wsFrame is a whole message in one frame, as a client sends it. bits are
// the reserved bits that it carries.
func wsFrame(opcode, bits byte, payload []byte, mask [4]byte) []byte {
	b := []byte{wsFin | bits | opcode}
	switch n := len(payload); {
	case n < 126:
		b = append(b, wsMasked|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, wsMasked|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, wsMasked|127), uint64(n))
	}
	b = append(b, mask[:]...)
	for i, c := range payload {
		b = append(b, c^mask[i%4])
	}
	return b
}

// wsPayload is the message that a scenario sends: its own, or one of its
// size. A text is letters, a binary message all byte values.
func wsPayload(w *spec.WS, vars spec.Vars, env spec.Env) ([]byte, error) {
	if w.Message != "" {
		text, err := w.Message.Expand(vars, env)
		if err != nil {
			return nil, fmt.Errorf("message: %w", err)
		}
		return []byte(text), nil
	}
	b := make([]byte, w.Size)
	for i := range b {
		if w.Binary {
			b[i] = byte(i * 167) // odd, so that all values come
		} else {
			b[i] = 'a' + byte(i%26)
		}
	}
	return b, nil
}

// deflated compresses a message by itself, with nothing taken over from one
// to the next (RFC 7692, section 7.2.1).
func deflated(payload []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(payload); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\x00\x00\xff\xff")), nil
}
