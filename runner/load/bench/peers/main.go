// Command peers is other people's websocket clients as load generators, and a
// plain one that shows what a goroutine a connection costs at the least:
//
//	peers gws|gorilla|plain HOST:PORT CONNECTIONS WINDOW SIZE
//	peers serve PORT
//
// Each connection sends a text, waits for its echo, compares it, and sends
// the next. The result is a line of JSON. With serve, it is an echo server
// instead, by gorilla/websocket. It is a module of its own, so that
// these libraries are no part of Tandem's.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// result is what one run came to; times in nanoseconds.
type result struct {
	Messages      int64
	Elapsed, CPU  int64
	Mean          int64
	P50, P90, P99 int64
}

// session is one connection's part in a run.
type session struct {
	want  []byte
	until time.Time
	sent  time.Time
	took  []int64
}

// echoed counts an echo, and reports whether the next message is to be sent.
func (s *session) echoed(got []byte) bool {
	now := time.Now()
	if string(got) != string(s.want) {
		fmt.Fprintf(os.Stderr, "an echo of %d bytes is not what was sent\n", len(got))
		os.Exit(1)
	}
	s.took = append(s.took, int64(now.Sub(s.sent)))
	s.sent = now
	return now.Before(s.until)
}

// client is an open websocket that can play its part.
type client interface {
	play(s *session) error
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "serve" {
		return serve(args[1])
	}
	if len(args) != 5 {
		return fmt.Errorf("usage: peers gws|gorilla|plain HOST:PORT CONNECTIONS WINDOW SIZE")
	}
	connections, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	window, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	dial, ok := map[string]func(string, int) (client, error){"gws": dialGWS, "gorilla": dialGorilla, "plain": dialPlain}[args[0]]
	if !ok {
		return fmt.Errorf("client %q: expected gws, gorilla or plain", args[0])
	}
	clients := make([]client, connections)
	for i := range clients {
		if clients[i], err = dial(args[1], size); err != nil {
			return fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	r, err := play(clients, window, size)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// play lets all clients send until the window is over.
func play(clients []client, window time.Duration, size int) (result, error) {
	want := make([]byte, size)
	for i := range want {
		want[i] = 'a' + byte(i%26)
	}
	sessions := make([]session, len(clients))
	for i := range sessions { // room for 400,000 messages per second, so that nothing grows on the way
		sessions[i].took = make([]int64, 0, int(window.Seconds()*400_000)/len(clients)+1)
	}
	ended := make(chan error, len(clients))
	use, start := cpu(), time.Now()
	for i, c := range clients {
		s := &sessions[i]
		s.want, s.sent, s.until = want, start, start.Add(window)
		go func() { ended <- c.play(s) }()
	}
	for range clients {
		if err := <-ended; err != nil {
			return result{}, err
		}
	}
	r := result{Elapsed: int64(time.Since(start)), CPU: cpu() - use}
	var all []int64
	for _, s := range sessions {
		all = append(all, s.took...)
	}
	slices.Sort(all)
	for _, t := range all {
		r.Mean += t
	}
	r.Messages = int64(len(all))
	r.Mean /= r.Messages
	at := func(q float64) int64 { return all[int(q*float64(len(all)-1))] }
	r.P50, r.P90, r.P99 = at(0.5), at(0.9), at(0.99)
	return r, nil
}

// cpu is the CPU time of this process so far.
func cpu() int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
