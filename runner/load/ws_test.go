package load

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/tandem-bench/tandem/spec"
)

// echoServer is another project's websocket server. It counts what it echoes.
func echoServer(t *testing.T, secure, compress bool) (*httptest.Server, *atomic.Int64) {
	var echoed atomic.Int64
	up := websocket.Upgrader{EnableCompression: compress}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			kind, b, err := c.ReadMessage()
			if err != nil {
				return
			}
			echoed.Add(1)
			if r.URL.Path == "/reply" {
				kind, b = websocket.TextMessage, []byte("re: "+string(b))
			}
			if c.WriteMessage(kind, b) != nil {
				return
			}
		}
	})
	s := httptest.NewUnstartedServer(h)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s, &echoed
}

func wsTarget(name, addr string) Target { return Target{Name: name, Addr: addr} }

func runWS(t *testing.T, sc spec.Scenario, o Options, s Schedule, targets ...Target) []Sample {
	t.Helper()
	sc.Name = "test"
	d, err := New(sc, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range targets {
		if targets[i].Expected, err = d.Check(t.Context(), targets[i]); err != nil {
			t.Fatal(err)
		}
	}
	l, err := d.Open(t.Context(), targets)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Order = rotate
	got, err := l.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		wsBalanced(t, &got[i])
	}
	return got
}

// wsBalanced checks the books of a sample.
func wsBalanced(t testing.TB, s *Sample) {
	t.Helper()
	if s.Started != s.OK+s.Failed+s.InFlight+s.Discarded {
		t.Errorf("started %d is not ok %d + failed %d + in flight %d + discarded %d", s.Started, s.OK, s.Failed, s.InFlight, s.Discarded)
	}
	if n := s.Hists["rtt"].TotalCount(); n != s.OK {
		t.Errorf("%d round trips for %d valid replies", n, s.OK)
	}
}

// Every kind of message comes back right from another project's server, in
// turns and together, over both loops; and the server counts the same.
func TestWSEcho(t *testing.T) {
	tests := []struct {
		name   string
		ws     spec.WS
		secure bool
		o      Options
		mode   spec.Interleave
	}{
		{"text", spec.WS{Size: 20, Connections: 10}, false, Options{}, spec.Turns},
		{"together", spec.WS{Size: 20, Connections: 10}, false, Options{}, spec.Together},
		{"empty", spec.WS{Size: 0, Connections: 2}, false, Options{}, spec.Turns},
		{"length in 16 bits", spec.WS{Size: 1000, Binary: true, Connections: 2}, false, Options{}, spec.Turns},
		{"length in 64 bits", spec.WS{Size: 200_000, Binary: true, Connections: 2}, false, Options{}, spec.Turns},
		{"pipelined", spec.WS{Size: 64, Pipeline: 16, Connections: 4}, false, Options{}, spec.Turns},
		{"message", spec.WS{Message: "hello of ${arm}", Connections: 2}, false, Options{}, spec.Turns},
		{"reply", spec.WS{Message: "hello", Path: "/reply", Reply: "re: hello", Connections: 2}, false, Options{}, spec.Turns},
		{"deflate", spec.WS{Size: 5000, Deflate: true, Connections: 2}, false, Options{}, spec.Turns},
		{"two loops", spec.WS{Size: 20, Connections: 10}, false, Options{Loops: 2}, spec.Turns},
		{"portable", spec.WS{Size: 20, Connections: 10}, false, Options{Portable: true}, spec.Turns},
		{"wss", spec.WS{Size: 20, Connections: 4, Pipeline: 4, TLS: &spec.TLS{Insecure: true}}, true, Options{}, spec.Turns},
		{"wss deflate together", spec.WS{Size: 300, Connections: 4, Deflate: true, TLS: &spec.TLS{Insecure: true}}, true, Options{}, spec.Together},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var targets []Target
			var counts []*atomic.Int64
			for _, name := range []string{"base#0", "head#0"} {
				s, n := echoServer(t, tt.secure, tt.ws.Deflate)
				target := wsTarget(name, s.Listener.Addr().String())
				target.Vars = spec.Vars{"arm": strings.TrimSuffix(name, "#0")}
				targets, counts = append(targets, target), append(counts, n)
			}
			if tt.ws.Path == "" {
				tt.ws.Path = "/"
			}
			window := 50 * time.Millisecond
			if tt.ws.Deflate {
				window *= 6 // the server's first use of a compressor takes its time
			}
			got := runWS(t, spec.Scenario{WS: &tt.ws}, tt.o, Schedule{Mode: tt.mode, Window: window, Turn: 2 * time.Millisecond}, targets...)
			for i, s := range got {
				if s.Failed != 0 || s.OK == 0 {
					t.Errorf("%s: ok %d, failed %d: %+v", targets[i].Name, s.OK, s.Failed, s.Errors)
				}
				// One message was the check's.
				if n := counts[i].Load() - 1; n != s.OK+s.InFlight+s.Discarded {
					t.Errorf("%s: the server echoed %d messages, the driver counts %d and %d in flight", targets[i].Name, n, s.OK, s.InFlight)
				}
				v := s.Values()
				for _, name := range []string{"msgs", "rtt.p99", "handshake.p50", "latency.mean", "rps"} {
					if v[name] <= 0 {
						t.Errorf("%s is %v", name, v[name])
					}
				}
				if v["msgs"] != v["rps"] {
					t.Errorf("msgs %v, rps %v", v["msgs"], v["rps"])
				}
			}
		})
	}
}

func TestWSCheck(t *testing.T) {
	s, _ := echoServer(t, false, true)
	for _, deflate := range []bool{false, true} {
		d, err := New(spec.Scenario{Name: "test", WS: &spec.WS{Path: "/", Size: 30, Deflate: deflate}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Check(t.Context(), wsTarget("base#0", s.Listener.Addr().String()))
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != 101 || string(r.Body) != "abcdefghijklmnopqrstuvwxyzabcd" || len(r.Header["Sec-Websocket-Accept"]) != 1 {
			t.Errorf("%+v", r)
		}
		if got := r.Header["Sec-Websocket-Extensions"]; (len(got) == 1) != deflate {
			t.Errorf("extensions %v where deflate is %v", got, deflate)
		}
	}
}

// rawServer answers handshakes and then does what a test says.
func rawServer(t *testing.T, answer func(key string) string, serve func(c net.Conn, r *bufio.Reader)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				if _, err := io.WriteString(c, answer(req.Header.Get("Sec-WebSocket-Key"))); err != nil || serve == nil {
					return
				}
				serve(c, r)
			}()
		}
	}()
	return ln.Addr().String()
}

func accepted(key string) string {
	sum := sha1.Sum([]byte(key + wsGUID))
	return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
}

func TestWSHandshakeRefused(t *testing.T) {
	replace := func(from, to string) func(string) string {
		return func(key string) string { return strings.Replace(accepted(key), from, to, 1) }
	}
	tests := []struct {
		name    string
		deflate bool
		answer  func(key string) string
		want    string
	}{
		{"status", false, func(string) string { return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" }, "status 404 Not Found in answer to the handshake, expected 101"},
		{"accept key", false, func(string) string { return accepted("other") }, "has the accept key"},
		{"upgrade", false, replace("Upgrade: websocket", "Upgrade: h2c"), `has upgrade "h2c", expected websocket`},
		{"connection", false, replace("Connection: keep-alive, Upgrade", "Connection: other"), `has connection "other", expected upgrade`},
		{"extension", false, replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"), `chose the extension "permessage-deflate", which was not offered`},
		{"no deflate", true, accepted, "did not agree to permessage-deflate"},
		{"context takeover", true, replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"), "but not to server_no_context_takeover"},
		{"greeting", false, func(key string) string { return accepted(key) + "\x81\x05hello" }, "the server sent 7 bytes before any message was sent"},
		{"closed", false, func(string) string { return "HTTP/1.1 101 Sw" }, "connection closed during the handshake"},
		{"no HTTP", false, func(string) string { return "SSH-2.0-x\r\n\r\n" }, "the answer to the handshake: malformed HTTP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := rawServer(t, tt.answer, nil)
			d, err := New(spec.Scenario{Name: "test", WS: &spec.WS{Path: "/", Size: 5, Connections: 1, Deflate: tt.deflate}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Check(t.Context(), wsTarget("base#0", addr)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("check: found %v\nexpected %s", err, tt.want)
			}
			if _, err := d.Open(t.Context(), []Target{wsTarget("base#0", addr)}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("open: found %v\nexpected %s", err, tt.want)
			}
		})
	}
}

// frame is one as a server sends it.
func frame(first byte, payload string) string {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return string(b) + payload
}

// readFrame reads one frame of a client, which is short.
func readFrame(r *bufio.Reader) (opcode byte, payload []byte, err error) {
	head := make([]byte, 6)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, head[1]&0x7f)
	_, err = io.ReadFull(r, payload)
	for i := range payload {
		payload[i] ^= head[2+i%4]
	}
	return head[0] & 0x0f, payload, err
}

// What a server may do with its frames is taken as right, and what it may not
// is a failure with a class and a reason.
func TestWSFrames(t *testing.T) {
	const hello = "abcde" // the message that is sent
	tests := []struct {
		name  string
		reply string
		class Class // empty: right
		want  string
	}{
		{"whole", frame(0x81, hello), "", ""},
		{"fragments", frame(0x01, "ab") + frame(0x00, "") + frame(0x80, "cde"), "", ""},
		{"ping first", frame(0x89, "p") + frame(0x81, hello), "", ""},
		{"ping between fragments", frame(0x01, "ab") + frame(0x89, "") + frame(0x80, "cde"), "", ""},
		{"ping behind", frame(0x81, hello) + frame(0x89, "p"), "", ""},
		{"pong unasked", frame(0x8a, "x") + frame(0x81, hello), "", ""},
		{"long form of the length", "\x81\x7e\x00\x05" + hello, "", ""},
		{"opcode", frame(0x82, hello), Body, "a message with opcode 0x2, expected 0x1"},
		{"shorter", frame(0x81, "abcd"), Body, "a message of 4 bytes, expected 5"},
		{"longer", frame(0x81, "abcdef"), Body, "a message of 6 bytes, expected 5"},
		{"content", frame(0x81, "abcdX"), Body, `a message whose content is not what was expected: "abcdX"`},
		{"masked", "\x81\x85\x00\x00\x00\x00" + hello, Protocol, "a masked frame: only clients mask theirs"},
		{"reserved bit", frame(0xc1, hello), Protocol, "a frame with reserved bits that were not agreed on: 0xc1"},
		{"unknown opcode", frame(0x83, hello), Protocol, "a frame with the unknown opcode 0x3"},
		{"nothing to continue", frame(0x80, hello), Protocol, "a continuation frame with nothing to continue"},
		{"message in a message", frame(0x01, "ab") + frame(0x81, hello), Protocol, "a new message in the middle of another"},
		{"fragmented ping", frame(0x09, "") + frame(0x81, hello), Protocol, "a control frame that is fragmented, too long or has reserved bits: 09 00"},
		{"huge", "\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", Protocol, "a message of 9223372036854775807 bytes or more, expected 5"},
		{"close", frame(0x88, "\x03\xe9going"), EOF, `the server closed the websocket with code 1001 "going"`},
	}
	for _, tt := range tests {
		for _, split := range []bool{false, true} {
			for _, portable := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s split %v portable %v", tt.name, split, portable), func(t *testing.T) {
					addr := rawServer(t, accepted, func(c net.Conn, r *bufio.Reader) {
						for first := true; ; first = false {
							opcode, _, err := readFrame(r)
							if err != nil {
								return
							}
							if opcode == wsPong {
								continue
							}
							if err := sendReply(c, tt.reply, split && first); err != nil {
								return
							}
						}
					})
					s := wsOnce(t, addr, portable)
					if tt.class == "" {
						if s.Failed != 0 || s.OK == 0 {
							t.Fatalf("ok %d, failed %d: %+v", s.OK, s.Failed, s.Errors)
						}
						return
					}
					if s.OK != 0 || s.Failed == 0 {
						t.Fatalf("ok %d, failed %d", s.OK, s.Failed)
					}
					if e := s.Errors[0]; e.Class != tt.class || !strings.Contains(e.First[0], tt.want) {
						t.Errorf("found %s: %s\nexpected %s: %s", e.Class, e.First[0], tt.class, tt.want)
					}
				})
			}
		}
	}
}

// sendReply sends bytes at once, or each by itself.
func sendReply(c net.Conn, reply string, split bool) error {
	if !split {
		_, err := io.WriteString(c, reply)
		return err
	}
	for i := range len(reply) {
		if _, err := io.WriteString(c, reply[i:i+1]); err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
	return nil
}

// wsOnce runs a short window of one connection without a check before it.
func wsOnce(t *testing.T, addr string, portable bool) Sample {
	t.Helper()
	d, err := New(spec.Scenario{Name: "test", WS: &spec.WS{Path: "/", Size: 5, Connections: 1, Timeout: time.Second}}, Options{Portable: portable})
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Open(t.Context(), []Target{wsTarget("base#0", addr)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, err := l.Run(t.Context(), Schedule{Mode: spec.Turns, Window: 10 * time.Millisecond, Turn: 5 * time.Millisecond, Order: rotate})
	if err != nil {
		t.Fatal(err)
	}
	wsBalanced(t, &got[0])
	return got[0]
}

// A ping is answered with its payload.
func TestWSPong(t *testing.T) {
	pongs := make(chan string, 1000)
	addr := rawServer(t, accepted, func(c net.Conn, r *bufio.Reader) {
		for {
			opcode, payload, err := readFrame(r)
			switch {
			case err != nil:
				return
			case opcode == wsPong:
				select {
				case pongs <- string(payload):
				default:
				}
			default:
				_, _ = io.WriteString(c, frame(0x89, "token")+frame(0x81, string(payload)))
			}
		}
	})
	for _, portable := range []bool{false, true} {
		if s := wsOnce(t, addr, portable); s.Failed != 0 {
			t.Fatal(s.Errors)
		}
		if got := <-pongs; got != "token" {
			t.Errorf("a pong with %q", got)
		}
		for len(pongs) > 0 {
			<-pongs
		}
	}
}

// The handshake says what RFC 6455 asks for, and what the scenario adds.
func TestWSRequest(t *testing.T) {
	seen := make(chan *http.Request, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r }))
	defer s.Close()
	d, err := New(spec.Scenario{Name: "test", WS: &spec.WS{
		Path: "/chat?x=1", Size: 1, Deflate: true,
		Headers: []spec.Header{{Name: "Origin", Value: "http://${arm}"}, {Name: "Sec-WebSocket-Protocol", Value: "v1"}},
	}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	target := wsTarget("base#0", s.Listener.Addr().String())
	target.Vars = spec.Vars{"arm": "base"}
	if _, err := d.Check(t.Context(), target); err == nil {
		t.Error("a plain answer passes for a websocket")
	}
	r := <-seen
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	if err != nil || len(key) != 16 {
		t.Errorf("key %q, %v", key, err)
	}
	r.Header.Del("Sec-Websocket-Key")
	want := http.Header{
		"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Extensions": {wsOffer}, "Origin": {"http://base"}, "Sec-Websocket-Protocol": {"v1"},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if r.RequestURI != "/chat?x=1" || r.Host != target.Addr {
		t.Errorf("%s of %s", r.RequestURI, r.Host)
	}
}

// A connection that the server closes fails its messages, and is opened anew.
func TestWSReconnects(t *testing.T) {
	for _, portable := range []bool{false, true} {
		addr := rawServer(t, accepted, func(c net.Conn, r *bufio.Reader) {
			for range 5 {
				_, payload, err := readFrame(r)
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, frame(0x81, string(payload)))
			}
			_, _, _ = readFrame(r)
		})
		s := wsOnce(t, addr, portable)
		if s.OK < 6 || s.Failed < 1 || s.Errors[0].Class != EOF && s.Errors[0].Class != ReadReset {
			t.Errorf("portable %v: ok %d, failed %d: %+v", portable, s.OK, s.Failed, s.Errors)
		}
	}
}
