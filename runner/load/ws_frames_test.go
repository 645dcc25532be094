package load

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzFrames feeds any bytes, whole and one by one: both give the same
// messages and errors, and an echo is found to be right whatever came before.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{
		frame(0x81, "abcde"), frame(0x01, "ab") + frame(0x89, "x") + frame(0x80, "cde"), frame(0x82, "abcde"),
		frame(0x88, "\x03\xe8"), "\x81\x7e\x00\x05abcde", frame(0x81, "abcde") + frame(0x81, "abcdX") + frame(0x81, "abcde"),
		frame(0xc1, "\x4a\x4c\x4a\x4e\x49\x05\x00"),
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, deflate bool) {
		reply := &wsReply{opcode: wsText, payload: []byte("abcde"), deflate: deflate}
		whole := verdicts(&frames{reply: reply}, b, len(b))
		if diff := cmp.Diff(whole, verdicts(&frames{reply: reply}, b, 1)); diff != "" {
			t.Errorf("whole and byte by byte differ:\n%s", diff)
		}
		if n := len(whole); n > 0 && !strings.HasPrefix(whole[n-1], "right") && !strings.HasPrefix(whole[n-1], "wrong") {
			return
		}
		known := &frames{reply: reply}
		for _, first := range []string{"", frame(0x81, "abcde")} {
			got := verdicts(known, append([]byte(first), b...), len(b)+len(first))
			if first != "" && (len(got) == 0 || got[0] != "right") && len(whole) > 0 {
				t.Errorf("after other messages an echo is %v", got)
			}
			known = &frames{reply: reply}
		}
	})
}

// verdicts feeds bytes in pieces and lists what comes of them.
func verdicts(f *frames, b []byte, piece int) []string {
	var out []string
	for len(b) > 0 {
		part := b[:min(piece, len(b))]
		b = b[len(part):]
		for len(part) > 0 {
			n, done, err := f.feed(part)
			part = part[n:]
			switch {
			case err != nil:
				return append(out, err.Error())
			case done && f.failed != nil:
				out = append(out, "wrong: "+f.failed.Error())
			case done:
				out = append(out, "right")
			}
		}
	}
	return out
}

// What is compressed by itself can be inflated by another implementation.
func TestDeflatedInflates(t *testing.T) {
	for _, n := range []int{0, 1, 5, 1000, 100_000} {
		payload := bytes.Repeat([]byte("abc"), n)
		packed, err := deflated(payload)
		if err != nil {
			t.Fatal(err)
		}
		f := &frames{reply: &wsReply{opcode: wsText, payload: payload, deflate: true}}
		got := verdicts(f, []byte(frame(0xc1, string(packed))), 7)
		if diff := cmp.Diff([]string{"right"}, got); diff != "" {
			t.Errorf("%d bytes: %s", len(payload), diff)
		}
	}
}
