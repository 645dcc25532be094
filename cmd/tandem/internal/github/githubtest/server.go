// Package githubtest is a GitHub API for tests: as much of it as keeping a
// comment takes, with its pages, its limits, its redirects and the bodies of
// its errors. Artifacts lie on a second host, as GitHub's do.
package githubtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Token is the token that the server accepts.
const Token = "ghs_test0123456789"

// Repo is the repository that it has.
const (
	Repo   = "octo/app"
	RepoID = 7
)

// Server is the API and the host of the artifacts.
type Server struct {
	mu       sync.Mutex
	api      *httptest.Server
	blobs    *httptest.Server
	runs     map[int64]Run
	pulls    []Pull
	comments []Comment
	archives map[int64][]archive
	nextID   int64
	faults   []Fault
	requests []string // METHOD /path of each, in order
	blobAuth []string // Authorization headers that the artifacts' host got

	// Login is who the token comments as. A workflow's token is the bot's,
	// and may not ask who it is.
	Login string
	// Locked keeps everybody from commenting.
	Locked bool
	// PageSize is what a page has at most, whatever is asked for.
	PageSize int
	// BeforeWrite is called before each write, with the lock held.
	BeforeWrite func(s *Server)
	// OnGet is called after a comment list or a pull request is read.
	OnGet func(s *Server, path string)
}

// Run is a workflow run.
type Run struct {
	ID                        int64
	Attempt                   int
	Event, Path, Conclusion   string
	HeadRepo                  int64 // 0: gone
	HeadOwner, Branch, Commit string
}

// Pull is a pull request.
type Pull struct {
	Number         int
	State          string
	HeadRepo       int64 // 0: gone
	HeadOwner      string
	Branch, Commit string
	Base           string
	Labels         []string
	Files          []string // that it changes; "old -> new" for a renamed one
}

// Comment is a comment of a pull request.
type Comment struct {
	ID     int64
	Pull   int
	Author string
	Body   string
}

type archive struct {
	id      int64
	name    string
	data    []byte
	expired bool
	size    int64
}

// Fault makes the next requests fail.
type Fault struct {
	Method string // "" for any
	Path   string // a part of it
	Times  int
	Status int
	Header map[string]string
	Body   string
	// Done carries the request out before it fails.
	Done bool
	// Drop closes the connection without an answer.
	Drop bool
}

// New starts a server; Close ends it.
func New() *Server {
	s := &Server{runs: map[int64]Run{}, archives: map[int64][]archive{}, nextID: 1000, Login: "github-actions[bot]", PageSize: 100}
	s.api = httptest.NewServer(http.HandlerFunc(s.serve))
	s.blobs = httptest.NewServer(http.HandlerFunc(s.serveBlob))
	return s
}

// Close ends the server.
func (s *Server) Close() { s.api.Close(); s.blobs.Close() }

// URL is the API's address, with the path of an enterprise server.
func (s *Server) URL() string { return s.api.URL + "/api/v3" }

func (s *Server) locked(f func()) { s.mu.Lock(); defer s.mu.Unlock(); f() }

// AddRun adds a workflow run.
func (s *Server) AddRun(r Run) { s.locked(func() { s.runs[r.ID] = r }) }

// AddPull adds a pull request.
func (s *Server) AddPull(p Pull) { s.locked(func() { s.pulls = append(s.pulls, p) }) }

// MovePull sets the commit of a pull request. Inside a hook use move.
func (s *Server) MovePull(number int, commit string) { s.locked(func() { s.Move(number, commit) }) }

// Move is MovePull for hooks, which hold the lock.
func (s *Server) Move(number int, commit string) {
	for i := range s.pulls {
		if s.pulls[i].Number == number {
			s.pulls[i].Commit = commit
		}
	}
}

// EditPull changes a pull request.
func (s *Server) EditPull(number int, edit func(*Pull)) {
	s.locked(func() {
		for i := range s.pulls {
			if s.pulls[i].Number == number {
				edit(&s.pulls[i])
			}
		}
	})
}

// ClosePull closes a pull request, in a hook.
func (s *Server) ClosePull(number int) {
	for i := range s.pulls {
		if s.pulls[i].Number == number {
			s.pulls[i].State = "closed"
		}
	}
}

// DropComments deletes all comments, in a hook.
func (s *Server) DropComments() { s.comments = nil }

// AddComment adds a comment and returns its ID.
func (s *Server) AddComment(pull int, author, body string) (id int64) {
	s.locked(func() { id = s.addComment(pull, author, body).ID })
	return id
}

func (s *Server) addComment(pull int, author, body string) Comment {
	s.nextID++
	c := Comment{s.nextID, pull, author, body}
	s.comments = append(s.comments, c)
	return c
}

// Comments are those of a pull request.
func (s *Server) Comments(pull int) (found []Comment) {
	s.locked(func() {
		for _, c := range s.comments {
			if c.Pull == pull {
				found = append(found, c)
			}
		}
	})
	return found
}

// AddArtifact adds an artifact of a run.
func (s *Server) AddArtifact(run int64, name string, data []byte) {
	s.locked(func() {
		s.nextID++
		s.archives[run] = append(s.archives[run], archive{id: s.nextID, name: name, data: data, size: int64(len(data))})
	})
}

// Expire marks the artifacts of a run as expired; Claim sets the size that
// the API tells of them.
func (s *Server) Expire(run int64) { s.each(run, func(a *archive) { a.expired = true }) }

// Claim sets the size that the API tells of a run's artifacts.
func (s *Server) Claim(run, size int64) { s.each(run, func(a *archive) { a.size = size }) }

func (s *Server) each(run int64, f func(*archive)) {
	s.locked(func() {
		for i := range s.archives[run] {
			f(&s.archives[run][i])
		}
	})
}

// Fail makes requests fail.
func (s *Server) Fail(f Fault) { s.locked(func() { s.faults = append(s.faults, f) }) }

// Requests lists what was asked of the API, as "METHOD /path".
func (s *Server) Requests() (all []string) {
	s.locked(func() { all = slices.Clone(s.requests) })
	return all
}

// Writes lists the requests that change something.
func (s *Server) Writes() []string {
	return slices.DeleteFunc(s.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET ") })
}

// BlobAuth lists the Authorization headers that the artifacts' host got.
func (s *Server) BlobAuth() (all []string) {
	s.locked(func() { all = slices.Clone(s.blobAuth) })
	return all
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v3")
	s.requests = append(s.requests, r.Method+" "+path)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if !ok {
		fail(w, 404, "Not Found")
		return
	}
	if f := s.fault(r.Method, path); f != nil {
		if f.Done {
			s.route(httptest.NewRecorder(), r, path)
		}
		if f.Drop {
			panic(http.ErrAbortHandler)
		}
		for k, v := range f.Header {
			w.Header().Set(k, strings.ReplaceAll(v, "BLOBS", s.blobs.URL))
		}
		w.WriteHeader(f.Status)
		fmt.Fprint(w, f.Body)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+Token {
		fail(w, 401, "Bad credentials")
		return
	}
	if r.Method != "GET" && s.BeforeWrite != nil {
		s.BeforeWrite(s)
	}
	s.route(w, r, path)
}

func (s *Server) fault(method, path string) *Fault {
	for i := range s.faults {
		f := &s.faults[i]
		if f.Times > 0 && (f.Method == "" || f.Method == method) && strings.Contains(path, f.Path) {
			f.Times--
			return f
		}
	}
	return nil
}

func (s *Server) route(w http.ResponseWriter, r *http.Request, path string) {
	if path == "/user" {
		s.user(w)
		return
	}
	rest, ok := strings.CutPrefix(path, "/repos/"+Repo+"/")
	if !ok {
		fail(w, 404, "Not Found")
		return
	}
	parts := strings.Split(rest, "/")
	number := func(i int) int64 { n, _ := strconv.ParseInt(parts[i], 10, 64); return n }
	switch {
	case len(parts) == 3 && parts[0] == "actions" && parts[1] == "runs":
		s.getRun(w, number(2))
	case len(parts) == 4 && parts[0] == "actions" && parts[1] == "runs" && parts[3] == "artifacts":
		s.listArtifacts(w, r, number(2))
	case len(parts) == 4 && parts[0] == "actions" && parts[1] == "artifacts" && parts[3] == "zip":
		w.Header().Set("Location", fmt.Sprintf("%s/container/%d.zip?sig=secret-signature", s.blobs.URL, number(2)))
		w.WriteHeader(http.StatusFound)
	case len(parts) == 1 && parts[0] == "pulls":
		s.listPulls(w, r)
	case len(parts) == 2 && parts[0] == "pulls":
		s.getPull(w, int(number(1)))
		s.hook(path)
	case len(parts) == 3 && parts[0] == "pulls" && parts[2] == "files":
		s.listFiles(w, r, int(number(1)))
	case len(parts) == 3 && parts[0] == "issues" && parts[2] == "comments" && r.Method == "GET":
		s.listComments(w, r, int(number(1)))
		s.hook(path)
	case len(parts) == 3 && parts[0] == "issues" && parts[2] == "comments" && r.Method == "POST":
		s.write(w, r, func(body string) { reply(w, 201, s.commentJSON(s.addComment(int(number(1)), s.Login, body))) })
	case len(parts) == 3 && parts[0] == "issues" && parts[1] == "comments":
		s.oneComment(w, r, number(2))
	default:
		fail(w, 404, "Not Found")
	}
}

func (s *Server) hook(path string) {
	if s.OnGet != nil {
		s.OnGet(s, path)
	}
}
