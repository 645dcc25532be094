package main

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gorilla/websocket"
	"github.com/lxzan/gws"
)

// gorilla is gorilla/websocket, used in the way that is quickest: NextReader
// into a buffer that is used again.
type gorilla struct {
	*websocket.Conn
	buf []byte
}

func dialGorilla(addr string, size int) (client, error) {
	c, _, err := websocket.DefaultDialer.Dial("ws://"+addr+"/", nil)
	return &gorilla{c, make([]byte, size+1)}, err
}

func (g *gorilla) play(s *session) error {
	for more := true; more; {
		if err := g.WriteMessage(websocket.TextMessage, s.want); err != nil {
			return err
		}
		_, r, err := g.NextReader()
		if err != nil {
			return err
		}
		n, err := io.ReadFull(r, g.buf)
		if err != io.ErrUnexpectedEOF {
			return fmt.Errorf("an echo of %d bytes: %w", n, err)
		}
		more = s.echoed(g.buf[:n])
	}
	return nil
}

// gwsClient is lxzan/gws, which calls back.
type gwsClient struct {
	gws.BuiltinEventHandler
	conn  *gws.Conn
	s     *session
	ended chan error
}

func dialGWS(addr string, _ int) (client, error) {
	g := &gwsClient{ended: make(chan error, 2)}
	c, _, err := gws.NewClient(g, &gws.ClientOption{Addr: "ws://" + addr + "/"})
	g.conn = c
	return g, err
}

// OnMessage is gws's: an echo has come.
func (g *gwsClient) OnMessage(c *gws.Conn, m *gws.Message) {
	defer func() { _ = m.Close() }()
	if !g.s.echoed(m.Bytes()) {
		g.ended <- nil
		return
	}
	if err := c.WriteMessage(gws.OpcodeText, g.s.want); err != nil {
		g.ended <- err
	}
}

// OnClose is gws's: the connection has ended.
func (g *gwsClient) OnClose(_ *gws.Conn, err error) { g.ended <- err }

func (g *gwsClient) play(s *session) error {
	g.s = s
	go g.conn.ReadLoop()
	if err := g.conn.WriteMessage(gws.OpcodeText, s.want); err != nil {
		return err
	}
	return <-g.ended
}

// plain is a blocking connection with framing of its own: one write and one
// read a message, one mask for all.
type plain struct {
	net.Conn
	buf []byte
}

func dialPlain(addr string, size int) (client, error) {
	if size > 125 {
		return nil, fmt.Errorf("the plain client sends 125 bytes at most")
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key)
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", addr, base64.StdEncoding.EncodeToString(key)); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil) // the server sends no more before it is asked
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("status %s", res.Status)
	}
	return &plain{c, make([]byte, size+2)}, err
}

func (p *plain) play(s *session) error {
	mask := binary.LittleEndian.AppendUint32(nil, 0x5a17c3e9)
	frame := append([]byte{0x81, 0x80 | byte(len(s.want))}, mask...)
	for i, b := range s.want {
		frame = append(frame, b^mask[i%4])
	}
	for more := true; more; {
		if _, err := p.Write(frame); err != nil {
			return err
		}
		if _, err := io.ReadFull(p, p.buf); err != nil {
			return err
		}
		if p.buf[0] != 0x81 || int(p.buf[1]) != len(s.want) {
			return fmt.Errorf("a frame that begins with % x", p.buf[:2])
		}
		more = s.echoed(p.buf[2:])
	}
	return nil
}

// serve echoes, by gorilla/websocket.
func serve(port string) error {
	up := websocket.Upgrader{}
	return http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		for {
			kind, b, err := c.ReadMessage()
			if err != nil || c.WriteMessage(kind, b) != nil {
				return
			}
		}
	}))
}
