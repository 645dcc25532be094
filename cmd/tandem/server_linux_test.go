package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// serve is the server of the scripts: a program that does what its flags
// say, good or bad.
func serve(args []string) int {
	f := flag.NewFlagSet("server", flag.ExitOnError)
	port := f.Int("port", 0, "port to listen on")
	spin := f.Duration("spin", 0, "CPU time that each request burns")
	failAfter := f.Int64("fail-after", -1, "answer 500 after this many requests")
	exitAfter := f.Int64("exit-after", -1, "exit with status 3 after this many requests")
	hang := f.Bool("hang", false, "start and never listen")
	die := f.Bool("die", false, "say so and exit with status 7 at once")
	body := f.String("body", "hello", "body of every answer")
	lacks := f.String("lacks", "", "a path that answers 404")
	stubborn := f.Bool("stubborn", false, "ignore every signal that can be ignored")
	f.String("mark", "", "ignored: tells the processes of a script apart")
	f.Parse(args)
	switch {
	case *die:
		fmt.Println("cannot open the frobnicator")
		return 7
	case *hang:
		fmt.Println("thinking")
		time.Sleep(time.Hour)
	}
	if *stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	var n atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		count := n.Add(1)
		switch {
		case r.URL.Path == *lacks:
			http.NotFound(w, r)
			return
		case *exitAfter >= 0 && count > *exitAfter:
			fmt.Println("out of tokens")
			os.Exit(3)
		case *failAfter >= 0 && count > *failAfter:
			http.Error(w, "overloaded", http.StatusInternalServerError)
			return
		}
		for end := time.Now().Add(*spin); time.Now().Before(end); {
		}
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, *body)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("listening")
	fmt.Println(http.Serve(l, http.HandlerFunc(handler)))
	return 1
}
