package load

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	wsGUID    = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" // RFC 6455, section 1.3
	wsDeflate = "permessage-deflate"
	// Without context takeover, a message does not depend on those before it:
	// each can be sent as it was compressed once, and compared byte by byte.
	wsOffer = wsDeflate + "; client_no_context_takeover; server_no_context_takeover"
)

// wsUpgrade opens websockets on connections to one target.
type wsUpgrade struct {
	head    string // the request up to the key
	tail    string // header fields of the scenario, and the end
	deflate bool

	mu    sync.Mutex
	times *hdrhistogram.Histogram // of the handshakes, nanoseconds
	head0 http.Header             // of the first answer
}

// do opens the websocket on a connection and checks the server's answer. It
// records the time from the request to the answer's end.
func (u *wsUpgrade) do(c io.ReadWriter) error {
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return err
	}
	key := base64.StdEncoding.EncodeToString(nonce[:])
	start := time.Now()
	if _, err := io.WriteString(c, u.head+key+u.tail); err != nil {
		return fmt.Errorf("send the handshake: %w", err)
	}
	head, err := readHandshake(c)
	if err != nil {
		return err
	}
	took := time.Since(start)
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), nil)
	if err != nil {
		return failf(Protocol, "the answer to the handshake: %w", err)
	}
	_ = res.Body.Close()
	if err := u.check(key, res); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	record(u.times, took.Nanoseconds())
	if u.head0 == nil {
		u.head0 = res.Header
	}
	return nil
}

// readHandshake reads up to the end of the answer's head. A server must not
// send anything right behind it: nobody asked yet.
func readHandshake(c io.Reader) ([]byte, error) {
	buf := make([]byte, 0, 4096)
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= maxHead {
				return nil, failf(Protocol, "the answer to the handshake is longer than %d bytes", maxHead)
			}
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := c.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if i := bytes.Index(buf, []byte("\r\n\r\n")); i >= 0 {
			if rest := len(buf) - i - 4; rest > 0 && bytes.HasPrefix(buf, []byte("HTTP/1.1 101")) {
				return nil, failf(Protocol, "the server sent %d bytes before any message was sent: only request and reply can be measured", rest)
			}
			return buf[:i+4], nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil, failf(EOF, "connection closed during the handshake: %w", err)
			}
			return nil, fmt.Errorf("read the answer to the handshake: %w", err)
		}
	}
}

// check is RFC 6455, section 4.1: what a client has to look at.
func (u *wsUpgrade) check(key string, res *http.Response) error {
	h := res.Header
	sum := sha1.Sum([]byte(key + wsGUID))
	accept := base64.StdEncoding.EncodeToString(sum[:])
	switch {
	case res.StatusCode != http.StatusSwitchingProtocols:
		return failf(Status, "status %s in answer to the handshake, expected 101", res.Status)
	case !strings.EqualFold(h.Get("Upgrade"), "websocket"):
		return failf(Protocol, "the handshake's answer has upgrade %q, expected websocket", h.Get("Upgrade"))
	case !tokenIn(h.Values("Connection"), "upgrade"):
		return failf(Protocol, "the handshake's answer has connection %q, expected upgrade", h.Get("Connection"))
	case h.Get("Sec-Websocket-Accept") != accept:
		return failf(Protocol, "the handshake's answer has the accept key %q, expected %q", h.Get("Sec-Websocket-Accept"), accept)
	}
	return u.checkExtensions(strings.Join(h.Values("Sec-Websocket-Extensions"), ", "))
}

func (u *wsUpgrade) checkExtensions(got string) error {
	switch {
	case !u.deflate && got != "":
		return failf(Protocol, "the server chose the extension %q, which was not offered", got)
	case !u.deflate:
		return nil
	case got == "":
		return failf(Protocol, "the server did not agree to %s", wsDeflate)
	}
	params := strings.Split(got, ";")
	if name := strings.TrimSpace(params[0]); name != wsDeflate || strings.Contains(got, ",") {
		return failf(Protocol, "the server chose the extensions %q, expected %s", got, wsDeflate)
	}
	for _, p := range params[1:] {
		if strings.EqualFold(strings.TrimSpace(p), "server_no_context_takeover") {
			return nil
		}
	}
	return failf(Protocol, "the server agreed to %q, but not to server_no_context_takeover", got)
}

// tokenIn reports whether a comma-separated list has a token, in any case.
func tokenIn(lists []string, token string) bool {
	for _, l := range lists {
		for _, t := range strings.Split(l, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// newWSUpgrade writes the request of the handshake, by the renderer that
// writes those of HTTP scenarios.
func newWSUpgrade(request []byte, deflate bool) *wsUpgrade {
	u := &wsUpgrade{deflate: deflate, times: newHistogram()}
	text := strings.TrimSuffix(string(request), "\r\n")
	line, fields, _ := strings.Cut(text, "\r\n")
	host, fields, _ := strings.Cut(fields, "\r\n")
	u.head = line + "\r\n" + host + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
	u.tail = "\r\n"
	if deflate {
		u.tail += "Sec-WebSocket-Extensions: " + wsOffer + "\r\n"
	}
	u.tail += fields + "\r\n"
	return u
}
