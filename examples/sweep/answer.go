package main

import (
	"encoding/json"
	"html"
	"strconv"
)

// What the answers of both engines are made of.
const (
	server    = "sweep"
	plain     = "text/plain"
	jsonType  = "application/json"
	htmlType  = "text/html; charset=utf-8"
	plaintext = "Hello, World!"
)

type message struct {
	Message string `json:"message"`
}

// hello is serialised anew for each request: that is what the test is about.
func hello() []byte { return toJSON(message{plaintext}) }

// toJSON serialises what cannot fail to be.
func toJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// queries reads how many rows are asked for: one where that is no number.
func queries(param string) int {
	n, _ := strconv.Atoi(param)
	return min(max(n, 1), maxQueries)
}

// page is the table of fortunes.
func page(all []fortune) []byte {
	b := make([]byte, 0, 2048)
	b = append(b, "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>"...)
	for _, f := range all {
		b = append(b, "<tr><td>"...)
		b = strconv.AppendInt(b, int64(f.ID), 10)
		b = append(b, "</td><td>"...)
		b = append(b, html.EscapeString(f.Message)...)
		b = append(b, "</td></tr>"...)
	}
	return append(b, "</table></body></html>"...)
}
