package load

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// framing is how the end of a body is known.
type framing uint8

const (
	noBody     framing = iota // HEAD, 1xx, 204, 304
	counted                   // Content-Length
	chunked                   // Transfer-Encoding: chunked
	untilClose                // neither: the body lasts until the connection ends
)

// maxHead bounds the head of a response, and its trailers are bounded by
// maxTrailer, as net/http bounds them by its buffer.
const (
	maxHead    = 1 << 20
	maxTrailer = 4096
)

// head is what the driver needs to know of a response's status line and
// header fields.
type head struct {
	status int
	frame  framing
	length int64 // of the body, where frame is counted
	close  bool  // the connection ends with this response
}

var (
	colon        = []byte(":")
	nameLength   = []byte("Content-Length")
	nameEncoding = []byte("Transfer-Encoding")
	nameConn     = []byte("Connection")
	nameTrailer  = []byte("Trailer")
	wordChunked  = []byte("chunked")
	wordClose    = []byte("close")
	wordKeep     = []byte("keep-alive")
)

// headEnd returns the length of the head at the start of b, its blank line
// included, or 0 where that has not arrived. The search starts at from, which
// lies at least three bytes before the first byte not searched yet.
func headEnd(b []byte, from int) int {
	from = max(0, from)
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0
		}
		from += i + 1
		switch rest := b[from:]; {
		case len(rest) >= 1 && rest[0] == '\n':
			return from + 1
		case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
			return from + 2
		}
	}
}

// nextLine cuts the first line off b, without its line end.
func nextLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return b, nil
	}
	line, rest = b[:i], b[i+1:]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, rest
}

// fields are the header fields that decide the framing of a body, as they
// are collected from the lines of a head.
type fields struct {
	length             []byte
	hasLength          bool
	encoding           []byte
	encodings          int
	close, keep        bool
	forbiddenTrailer   bool
	major, minor, code int
}

// parseHead reads a whole head, from its status line to its blank line. What
// it accepts, and how it frames the body, is what net/http's ReadResponse
// does, lenient and strict in the same places; FuzzReply holds it to that.
// It does not allocate unless it fails or a field that it needs is folded
// over several lines.
func parseHead(b []byte, toHead bool, h *head) error {
	line, rest := nextLine(b)
	var f fields
	if err := f.statusLine(line); err != nil {
		return err
	}
	if err := eachField(rest, f.add); err != nil {
		return err
	}
	return f.frame(toHead, h)
}

// statusLine reads "HTTP/1.1 200 OK".
func (f *fields) statusLine(line []byte) error {
	proto, status, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return fmt.Errorf("malformed status line %q: expected HTTP/1.1 and a status", clip(line))
	}
	status = bytes.TrimLeft(status, " ")
	code, _, _ := bytes.Cut(status, []byte(" "))
	if len(code) != 3 {
		return fmt.Errorf("malformed status %q: expected three digits", clip(code))
	}
	n, err := strconv.Atoi(string(code))
	if err != nil || n < 0 {
		return fmt.Errorf("malformed status %q: expected three digits", clip(code))
	}
	f.code = n
	if len(proto) != len("HTTP/1.1") || string(proto[:5]) != "HTTP/" || proto[6] != '.' || !digit(proto[5]) || !digit(proto[7]) {
		return fmt.Errorf("malformed protocol %q: expected HTTP/1.1", clip(proto))
	}
	f.major, f.minor = int(proto[5]-'0'), int(proto[7]-'0')
	return nil
}

// eachField calls add for each header field of b, up to the blank line.
func eachField(b []byte, add func(name, value []byte) error) error {
	if len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		line, _ := nextLine(b)
		return fmt.Errorf("malformed header line %q: it continues no other", clip(line))
	}
	for {
		var line []byte
		line, b = nextLine(b)
		if len(line) == 0 {
			return nil
		}
		if bytes.IndexByte(line, ':') < 0 {
			return fmt.Errorf("malformed header line %q: expected a colon", clip(line))
		}
		line = trim(line)
		for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
			var more []byte
			more, b = nextLine(bytes.TrimLeft(b, " \t"))
			line = append(append(line[:len(line):len(line)], ' '), trim(more)...)
		}
		name, value, ok := bytes.Cut(line, colon)
		if !ok || !validName(name) {
			return fmt.Errorf("malformed header line %q: expected a field name before the colon", clip(line))
		}
		for _, c := range value {
			if c < ' ' && c != '\t' || c == 0x7f {
				return fmt.Errorf("malformed header line %q: control character %#x in the value", clip(line), c)
			}
		}
		if err := add(name, bytes.TrimLeft(value, " \t")); err != nil {
			return err
		}
	}
}

// add takes note of a field that has a say in the framing.
func (f *fields) add(name, value []byte) error {
	switch {
	case len(name) < len(nameTrailer):
	case bytes.EqualFold(name, nameLength):
		if value = trim(value); f.hasLength && !bytes.Equal(value, f.length) {
			return fmt.Errorf("two lengths, Content-Length %q and %q", clip(f.length), clip(value))
		}
		f.length, f.hasLength = value, true
	case bytes.EqualFold(name, nameEncoding):
		f.encoding = value
		f.encodings++
	case bytes.EqualFold(name, nameConn):
		f.close = f.close || hasToken(value, wordClose)
		f.keep = f.keep || hasToken(value, wordKeep)
	case bytes.EqualFold(name, nameTrailer):
		f.forbiddenTrailer = f.forbiddenTrailer || hasToken(value, nameLength) ||
			hasToken(value, nameEncoding) || hasToken(value, nameTrailer)
	}
	return nil
}

// frame decides how the body ends (RFC 9112, section 6.3).
func (f *fields) frame(toHead bool, h *head) error {
	h.status, h.length = f.code, 0
	switch {
	case f.major < 1:
		h.close = true
	case f.major == 1 && f.minor == 0:
		h.close = f.close || !f.keep
	default:
		h.close = f.close
	}
	isChunked := false
	if modern := f.major > 1 || f.major == 1 && f.minor >= 1 || f.major == 0 && f.minor == 0; modern && f.encodings > 0 {
		if f.encodings > 1 || !bytes.EqualFold(f.encoding, wordChunked) {
			return fmt.Errorf("transfer encoding %q: only chunked is supported", clip(f.encoding))
		}
		isChunked = true
	}
	length := int64(-1)
	if f.hasLength {
		n, err := parseLength(f.length)
		if err != nil {
			return err
		}
		length = n
	}
	if isChunked && f.forbiddenTrailer {
		return errors.New("the Trailer field announces a field that may not be a trailer")
	}
	switch {
	case toHead, f.code/100 == 1, f.code == http.StatusNoContent, f.code == http.StatusNotModified:
		h.frame = noBody
	case isChunked:
		h.frame = chunked
	case length >= 0:
		h.frame, h.length = counted, length
	default:
		h.frame, h.close = untilClose, true
	}
	return nil
}

// parseLength reads the value of Content-Length.
func parseLength(b []byte) (int64, error) {
	var n int64
	for _, c := range b {
		if !digit(c) || n > (1<<63-1-int64(c-'0'))/10 {
			return 0, fmt.Errorf("malformed Content-Length %q: expected a number", clip(b))
		}
		n = n*10 + int64(c-'0')
	}
	if len(b) == 0 {
		return 0, errors.New("empty Content-Length: expected a number")
	}
	return n, nil
}

// hasToken reports whether a comma-separated list holds a token, whatever
// its case.
func hasToken(list, token []byte) bool {
	for len(list) > 0 {
		var item []byte
		item, list, _ = bytes.Cut(list, []byte(","))
		if bytes.EqualFold(trim(item), token) {
			return true
		}
	}
	return false
}

// headerMap returns the fields of a whole head by their canonical names.
func headerMap(b []byte) map[string][]string {
	m := map[string][]string{}
	_, rest := nextLine(b)
	// A head that parseHead accepted holds no malformed field.
	_ = eachField(rest, func(name, value []byte) error {
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		m[key] = append(m[key], string(value))
		return nil
	})
	return m
}

// validName reports whether b can name a field. net/http lets spaces pass,
// and so does this.
func validName(b []byte) bool {
	for _, c := range b {
		if !digit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~ ", c) < 0 {
			return false
		}
	}
	return len(b) > 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func trim(b []byte) []byte { return bytes.Trim(b, " \t") }

// clip shortens bytes that go into an error.
func clip(b []byte) string {
	const limit = 80
	if len(b) > limit {
		return string(b[:limit]) + "..."
	}
	return string(b)
}
