// Command orders is a small HTTP server, made to be benchmarked: it greets at
// / and takes orders at /orders.
//
// With STRICT=1 it checks that an order is well-formed JSON before it decodes
// it. Decoding would have found out anyhow, so this is a plain waste of a few
// percent on one of two routes: the kind of slowdown that passes a review.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

// order is what a client sends to /orders.
type order struct {
	Customer string `json:"customer"`
	Items    []item `json:"items"`
}

type item struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Cents int    `json:"cents"` // of one
}

// receipt is what it gets back.
type receipt struct {
	Customer string `json:"customer"`
	Items    int    `json:"items"`
	Cents    int    `json:"cents"`
}

func main() {
	port := flag.Int("port", 8080, "port to listen on")
	flag.Parse()
	strict := os.Getenv("STRICT") == "1"

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", greet)
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		take(w, r, strict)
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), mux))
}

func greet(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, "hello\n")
}

func take(w http.ResponseWriter, r *http.Request, strict bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil && strict && !json.Valid(body) {
		err = errors.New("not JSON")
	}
	var o order
	if err == nil {
		err = json.Unmarshal(body, &o)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sum := receipt{Customer: o.Customer, Items: len(o.Items)}
	for _, i := range o.Items {
		sum.Cents += i.Count * i.Cents
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(sum)
}
