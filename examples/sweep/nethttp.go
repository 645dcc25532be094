package main

import "net/http"

// serveNetHTTP answers with the standard library.
func serveNetHTTP(addr string, s *store) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/plaintext", func(w http.ResponseWriter, _ *http.Request) { write(w, plain, []byte(plaintext), nil) })
	mux.HandleFunc("/json", func(w http.ResponseWriter, _ *http.Request) { write(w, jsonType, hello(), nil) })
	mux.HandleFunc("/db", func(w http.ResponseWriter, r *http.Request) {
		row, err := s.one(r.Context())
		write(w, jsonType, toJSON(row), err)
	})
	mux.HandleFunc("/queries", func(w http.ResponseWriter, r *http.Request) {
		found, err := s.some(r.Context(), queries(r.URL.Query().Get("queries")))
		write(w, jsonType, toJSON(found), err)
	})
	mux.HandleFunc("/updates", func(w http.ResponseWriter, r *http.Request) {
		found, err := s.update(r.Context(), queries(r.URL.Query().Get("queries")))
		write(w, jsonType, toJSON(found), err)
	})
	mux.HandleFunc("/fortunes", func(w http.ResponseWriter, r *http.Request) {
		all, err := s.fortunes(r.Context())
		write(w, htmlType, page(all), err)
	})
	return http.ListenAndServe(addr, mux)
}

func write(w http.ResponseWriter, contentType string, body []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Server", server)
	h.Set("Content-Type", contentType)
	_, _ = w.Write(body) // the client has gone
}
