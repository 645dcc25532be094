package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// serve is the server of the scripts: a program that does what its flags
// say, good or bad.
func serve(args []string) int {
	f := flag.NewFlagSet("server", flag.ExitOnError)
	host := f.String("host", "127.0.0.1", "address to listen on")
	port := f.Int("port", 0, "port to listen on")
	spin := f.Duration("spin", 0, "CPU time that each request burns")
	failAfter := f.Int64("fail-after", -1, "answer 500 after this many requests")
	exitAfter := f.Int64("exit-after", -1, "exit with status 3 after this many requests")
	hang := f.Bool("hang", false, "start and never listen")
	die := f.Bool("die", false, "say so and exit with status 7 at once")
	body := f.String("body", "hello", "body of every answer")
	lacks := f.String("lacks", "", "a path that answers 404")
	stallAfter := f.Int64("stall-after", -1, "answer no more after this many requests")
	cutAfter := f.Int64("cut-after", -1, "close the connection in place of an answer after this many requests")
	leak := f.Int("leak", 0, "keep this many bytes more with each request")
	delay := f.Duration("delay", 0, "answer this late")
	daemon := f.Bool("daemon", false, "leave a daemon behind that left our process group and session")
	stubborn := f.Bool("stubborn", false, "ignore every signal that can be ignored")
	get := f.String("get", "", "send a request to this URL, and do nothing else")
	f.String("mark", "", "ignored: tells the processes of a script apart")
	f.Parse(args)
	switch {
	case *get != "":
		resp, err := http.Get(*get)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		resp.Body.Close()
		return 0
	case *die:
		fmt.Println("cannot open the frobnicator")
		return 7
	case *hang:
		fmt.Println("thinking")
		time.Sleep(time.Hour)
	}
	if *daemon {
		if err := daemonise(f.Lookup("mark").Value.String()); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	if *stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	var n atomic.Int64
	var kept leaked
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
		case *stallAfter >= 0 && count > *stallAfter:
			<-r.Context().Done()
			return
		case *cutAfter >= 0 && count > *cutAfter:
			panic(http.ErrAbortHandler)
		}
		kept.keep(*leak)
		time.Sleep(*delay)
		for end := time.Now().Add(*spin); time.Now().Before(end); {
		}
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, *body)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", *host, *port))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("listening")
	fmt.Println(http.Serve(l, http.HandlerFunc(handler)))
	return 1
}

// leaked is memory that is never given back.
type leaked struct {
	mu  sync.Mutex
	all [][]byte
}

func (l *leaked) keep(bytes int) {
	if bytes == 0 {
		return
	}
	b := make([]byte, bytes)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1 // a page counts once it is written to
	}
	l.mu.Lock()
	l.all = append(l.all, b)
	l.mu.Unlock()
}

// daemonise starts what a daemon does: a process in a session of its own,
// whose parent has ended.
func daemonise(mark string) error {
	cmd := exec.Command("sh", "-c", "setsid sh -c 'sleep 300; : "+mark+"' >/dev/null 2>&1 </dev/null & exit 0")
	return cmd.Run()
}
