// Command stall is a server that blocks for 100 ms in every 1.1 s:
// stall PORT SERVICE, where each request takes SERVICE, one after the other.
// /truth?rate=N tells what users at that rate had to wait by its schedule,
// as sorted nanoseconds in JSON, and starts the record anew.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/tandem-bench/tandem/runner/load/internal/stall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: stall PORT SERVICE")
	}
	service, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	s := stall.New(1100*time.Millisecond, 100*time.Millisecond, service)
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("/truth", func(w http.ResponseWriter, r *http.Request) {
		rate, err := strconv.ParseFloat(r.FormValue("rate"), 64)
		if err != nil || rate <= 0 {
			http.Error(w, "rate: expected requests per second", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(s.Truth(rate))
		s.Forget()
	})
	return http.ListenAndServe("127.0.0.1:"+args[0], mux)
}
