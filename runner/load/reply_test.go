package load

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// shapes are responses in the forms that servers give them, valid and not,
// with the seeds of FuzzReply among them.
var shapes = []struct {
	name   string
	method string // GET where empty
	wire   string
	status int    // 0: not valid
	body   string // where valid
	rest   string // what belongs to the next response
	close  bool
}{
	{name: "length", wire: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", status: 200, body: "hello"},
	{name: "length zero", wire: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200},
	{name: "two in a row", wire: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1", status: 200, body: "hi", rest: "HTTP/1.1"},
	{name: "same length twice", wire: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "two lengths", wire: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!"},
	{name: "length with a sign", wire: "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi"},
	{name: "length below zero", wire: "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhi"},
	{name: "length too large", wire: "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nhi"},
	{name: "length empty", wire: "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n"},
	{name: "length folded", wire: "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "short body", wire: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"},
	{name: "chunked", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", status: 200, body: "hello world"},
	{name: "chunked beats length", wire: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", status: 200, body: "hi"},
	{name: "chunk extension", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b;c=\"d\"\r\nhi\r\n0;e\r\n\r\n", status: 200, body: "hi"},
	{name: "trailers", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\nrest", status: 200, body: "hi", rest: "rest"},
	{name: "forbidden trailer", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n"},
	{name: "malformed trailer", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n"},
	{name: "chunk size not hexadecimal", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\nhi\r\n0\r\n\r\n"},
	{name: "chunk size empty", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhi\r\n0\r\n\r\n"},
	{name: "chunk size too large", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"},
	{name: "chunk longer than said", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n"},
	{name: "chunk line with bare LF", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nhi\r\n0\r\n\r\n"},
	{name: "chunk line too long", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 5000) + "\r\nhi\r\n0\r\n\r\n"},
	{name: "early end of chunks", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"},
	{name: "unknown encoding", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhi"},
	{name: "two encodings", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{name: "HEAD", method: "HEAD", wire: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP", status: 200, rest: "HTTP"},
	{name: "HEAD chunked", method: "HEAD", wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", status: 200},
	{name: "204", wire: "HTTP/1.1 204 No Content\r\n\r\n", status: 204},
	{name: "204 with length", wire: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", status: 204},
	{name: "304", wire: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", status: 304},
	{name: "100 first", wire: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "103 twice first", wire: "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "101", wire: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"},
	{name: "until close", wire: "HTTP/1.1 200 OK\r\n\r\nall of it", status: 200, body: "all of it", close: true},
	{name: "until close, empty", wire: "HTTP/1.1 200 OK\r\n\r\n", status: 200, close: true},
	{name: "HTTP/1.0", wire: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi", close: true},
	{name: "HTTP/1.0 kept alive", wire: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "HTTP/1.0 ignores chunked", wire: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi", close: true},
	{name: "close", wire: "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi", close: true},
	{name: "bare LF", wire: "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", status: 200, body: "hi"},
	{name: "no reason", wire: "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "no reason, no space", wire: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "huge header", wire: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100_000) + "\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "folded header", wire: "HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
	{name: "space before colon", wire: "HTTP/1.1 200 OK\r\nContent-Length : 2\r\nContent-Length: 1\r\n\r\nhi", status: 200, body: "h", rest: "i"},
	{name: "space before first header", wire: "HTTP/1.1 200 OK\r\n X: a\r\n\r\n"},
	{name: "header without colon", wire: "HTTP/1.1 200 OK\r\nnothing\r\n\r\n"},
	{name: "header without name", wire: "HTTP/1.1 200 OK\r\n: a\r\n\r\n"},
	{name: "control character in header", wire: "HTTP/1.1 200 OK\r\nX: a\x01\r\n\r\n"},
	{name: "not HTTP", wire: "SSH-2.0-OpenSSH_9.6\r\n\r\n"},
	{name: "status not a number", wire: "HTTP/1.1 abc OK\r\n\r\n"},
	{name: "status of four digits", wire: "HTTP/1.1 2000 OK\r\n\r\n"},
	{name: "version without number", wire: "HTTP/x.1 200 OK\r\n\r\n"},
	{name: "blank line first", wire: "\r\nHTTP/1.1 200 OK\r\n\r\n"},
	{name: "nothing", wire: ""},
	{name: "half a head", wire: "HTTP/1.1 200 OK\r\nContent-Le"},
}

// parsed is what a parser made of some bytes.
type parsed struct {
	status int
	body   string
	rest   int // bytes left for the next response
	close  bool
}

// feedAll feeds pieces of a response, and the end of the connection after
// them.
func feedAll(p *parser, a *asked, pieces ...[]byte) (parsed, error) {
	left := 0
	for _, b := range pieces {
		left += len(b)
	}
	for _, b := range pieces {
		for len(b) > 0 {
			used, done, err := p.feed(b, a)
			if err != nil {
				return parsed{}, err
			}
			left -= used
			b = b[used:]
			if done {
				return parsed{p.head.status, string(p.body), left, p.head.close}, nil
			}
		}
	}
	if _, err := p.end(a); err != nil {
		return parsed{}, err
	}
	return parsed{p.head.status, string(p.body), 0, true}, nil
}

// standard reads the same bytes with net/http.
func standard(wire []byte, method string) (parsed, error) {
	raw := bytes.NewReader(wire)
	r := bufio.NewReader(raw)
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return parsed{}, err
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return parsed{}, errors.New("101 was not asked for")
		case resp.StatusCode/100 == 1:
			continue
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return parsed{}, err
		}
		return parsed{resp.StatusCode, string(body), raw.Len() + r.Buffered(), resp.Close}, nil
	}
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			check := func(p *parser, pieces ...[]byte) {
				t.Helper()
				a := &asked{toHead: s.method == "HEAD", keep: true}
				got, err := feedAll(p, a, pieces...)
				if s.status == 0 {
					if err == nil {
						t.Errorf("in pieces %q: accepted as %+v", pieces, got)
					}
					return
				}
				want := parsed{s.status, s.body, len(s.rest), s.close}
				if err != nil || got != want {
					t.Errorf("in pieces %q: got %+v, %v; want %+v", pieces, got, err, want)
				}
			}
			wire := []byte(s.wire)
			check(&parser{}, wire)
			for i := 0; i < len(wire); i += 1 + len(wire)/400 {
				check(&parser{}, wire[:i], wire[i:])
			}
			if len(wire) < 4000 {
				var each [][]byte
				for i := range wire {
					each = append(each, wire[i:i+1])
				}
				check(&parser{}, each...)
			}
		})
	}
}

// TestComparing holds bodies to an expectation while they arrive in pieces.
func TestComparing(t *testing.T) {
	heads := map[string]func(body string) string{
		"length": func(b string) string {
			return "HTTP/1.1 200 OK\r\nContent-Length: " + string('0'+rune(len(b))) + "\r\n\r\n" + b
		},
		"chunked": func(b string) string {
			var w strings.Builder
			w.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			for _, c := range b {
				w.WriteString("1\r\n" + string(c) + "\r\n")
			}
			return w.String() + "0\r\n\r\n"
		},
		"close": func(b string) string { return "HTTP/1.1 200 OK\r\n\r\n" + b },
	}
	for framing, wrap := range heads {
		for _, body := range []string{"hello", "hell", "hello!", "jello", "", "hellp"} {
			for _, keep := range []bool{false, true} {
				wire := []byte(wrap(body))
				for i := range wire {
					a := &asked{compare: true, want: []byte("hello"), keep: keep}
					var p parser
					if _, err := feedAll(&p, a, wire[:i], wire[i:]); err != nil {
						t.Fatal(err)
					}
					if p.differs != (body != "hello") {
						t.Errorf("%s, %q in two at %d: differs is %v", framing, body, i, p.differs)
					}
					if p.differs && keep && string(p.body) != body {
						t.Errorf("%s, %q in two at %d: kept %q", framing, body, i, p.body)
					}
				}
			}
		}
	}
}

// FuzzReply holds the parser to net/http: both accept the same responses,
// read the same bodies from them, and leave the same bytes, in whatever
// pieces the bytes arrive. The one exception is errBareTrailer.
func FuzzReply(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s.wire), s.method == "HEAD", 7)
	}
	f.Fuzz(func(t *testing.T, wire []byte, toHead bool, cut int) {
		method := "GET"
		if toHead {
			method = "HEAD"
		}
		want, wantErr := standard(wire, method)
		cut = max(0, min(cut, len(wire)))
		got, err := feedAll(&parser{}, &asked{toHead: toHead, keep: true}, wire[:cut], wire[cut:])
		if errors.Is(err, errBareTrailer) {
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v; net/http: %v", wire, err, wantErr)
		}
		if err == nil && got != want {
			t.Fatalf("%q: %+v; net/http: %+v", wire, got, want)
		}
	})
}
