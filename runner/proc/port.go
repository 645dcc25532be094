package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePort finds a TCP port on which nothing listens on the loopback
// address. It lies outside of the range from which connections get their
// local ports, so that nobody's connection can take it before a server does,
// and it is drawn at random, so that two calls (or two runs) hardly ever find
// the same. Should another server be faster all the same, WaitReady tells.
func FreePort() (int, error) {
	lo, hi, err := portRange()
	if err != nil {
		lo, hi = 32768, 65535
	}
	for range 200 {
		port := 10000 + rand.IntN(55000)
		if port >= lo && port <= hi {
			continue
		}
		if l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
