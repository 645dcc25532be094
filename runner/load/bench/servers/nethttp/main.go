// Command nethttp is a net/http server to put load on: nethttp PORT [ROUNDS],
// where ROUNDS of a loop slow each request down.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: nethttp PORT [ROUNDS]")
	}
	rounds := uint64(0)
	if len(args) > 1 {
		n, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return err
		}
		rounds = n
	}
	var sink atomic.Uint64 // keeps the loop from being left out
	handler := func(w http.ResponseWriter, _ *http.Request) {
		sum := uint64(1)
		for i := range rounds {
			sum = sum*31 + i
		}
		sink.Store(sum)
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "Hello, World!")
	}
	return http.ListenAndServe("127.0.0.1:"+args[0], http.HandlerFunc(handler))
}
