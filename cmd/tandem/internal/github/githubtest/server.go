// Package githubtest is a GitHub API for tests: as much of it as keeping a
// comment takes, with its pages, its limits, its redirects and the bodies of
// its errors. Artifacts lie on a second host, as GitHub's do.
package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
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

func (s *Server) user(w http.ResponseWriter) {
	if strings.HasSuffix(s.Login, "[bot]") {
		fail(w, 403, "Resource not accessible by integration")
		return
	}
	reply(w, 200, map[string]any{"login": s.Login, "type": "User"})
}

func (s *Server) getRun(w http.ResponseWriter, id int64) {
	r, ok := s.runs[id]
	if !ok {
		fail(w, 404, "Not Found")
		return
	}
	doc := map[string]any{
		"id": r.ID, "name": "bench", "run_attempt": r.Attempt, "event": r.Event, "path": r.Path, "status": "completed", "conclusion": r.Conclusion,
		"head_branch": r.Branch, "head_sha": r.Commit, "html_url": fmt.Sprintf("https://github.com/%s/actions/runs/%d", Repo, r.ID),
		"pull_requests": []any{}, "repository": repository(RepoID, "octo"), "head_repository": repository(r.HeadRepo, r.HeadOwner),
	}
	reply(w, 200, doc)
}

func repository(id int64, owner string) any {
	if id == 0 {
		return nil
	}
	return map[string]any{"id": id, "name": "app", "full_name": owner + "/app", "owner": map[string]any{"login": owner}}
}

func (s *Server) listArtifacts(w http.ResponseWriter, r *http.Request, run int64) {
	var all []any
	for _, a := range s.archives[run] {
		all = append(all, map[string]any{"id": a.id, "name": a.name, "size_in_bytes": a.size, "expired": a.expired})
	}
	reply(w, 200, map[string]any{"total_count": len(all), "artifacts": page(s, w, r, all)})
}

func (s *Server) pullJSON(p Pull) any {
	labels := []any{}
	for _, l := range p.Labels {
		labels = append(labels, map[string]any{"name": l})
	}
	return map[string]any{
		"number": p.Number, "state": p.State, "labels": labels,
		"head": map[string]any{"label": p.HeadOwner + ":" + p.Branch, "ref": p.Branch, "sha": p.Commit, "repo": repository(p.HeadRepo, p.HeadOwner)},
		"base": map[string]any{"ref": p.Base, "repo": repository(RepoID, "octo")},
	}
}

func (s *Server) listPulls(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	all := []any{}
	for _, p := range s.pulls {
		if (q.Get("state") == "all" || p.State == q.Get("state")) && (q.Get("head") == "" || q.Get("head") == p.HeadOwner+":"+p.Branch) {
			all = append(all, s.pullJSON(p))
		}
	}
	reply(w, 200, page(s, w, r, all))
}

func (s *Server) getPull(w http.ResponseWriter, number int) {
	for _, p := range s.pulls {
		if p.Number == number {
			reply(w, 200, s.pullJSON(p))
			return
		}
	}
	fail(w, 404, "Not Found")
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request, number int) {
	all := []any{}
	for _, p := range s.pulls {
		for _, f := range p.Files {
			if p.Number != number {
				continue
			}
			file := map[string]any{"filename": f, "status": "modified"}
			if old, now, renamed := strings.Cut(f, " -> "); renamed {
				file = map[string]any{"filename": now, "previous_filename": old, "status": "renamed"}
			}
			all = append(all, file)
		}
	}
	reply(w, 200, page(s, w, r, all))
}

func (s *Server) commentJSON(c Comment) any {
	return map[string]any{
		"id": c.ID, "body": c.Body, "user": map[string]any{"login": c.Author},
		"html_url": fmt.Sprintf("https://github.com/%s/pull/%d#issuecomment-%d", Repo, c.Pull, c.ID),
	}
}

func (s *Server) listComments(w http.ResponseWriter, r *http.Request, pull int) {
	all := []any{}
	for _, c := range s.comments {
		if c.Pull == pull {
			all = append(all, s.commentJSON(c))
		}
	}
	reply(w, 200, page(s, w, r, all))
}

// write takes a comment's body as GitHub does.
func (s *Server) write(w http.ResponseWriter, r *http.Request, then func(body string)) {
	var in struct{ Body string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, 400, "Problems parsing JSON")
		return
	}
	switch {
	case s.Locked:
		fail(w, 403, "Unable to create comment because issue is locked.")
	case utf8.RuneCountInString(in.Body) > 65536:
		reply(w, 422, map[string]any{
			"message": "Validation Failed", "documentation_url": "https://docs.github.com/rest/issues/comments#create-an-issue-comment",
			"errors": []any{map[string]any{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long (maximum is 65536 characters)"}},
		})
	default:
		then(in.Body)
	}
}

func (s *Server) oneComment(w http.ResponseWriter, r *http.Request, id int64) {
	i := slices.IndexFunc(s.comments, func(c Comment) bool { return c.ID == id })
	switch {
	case i < 0:
		fail(w, 404, "Not Found")
	case s.comments[i].Author != s.Login:
		fail(w, 403, "Resource not accessible by integration")
	case r.Method == "PATCH":
		s.write(w, r, func(body string) {
			s.comments[i].Body = body
			reply(w, 200, s.commentJSON(s.comments[i]))
		})
	case r.Method == "DELETE":
		s.comments = slices.Delete(s.comments, i, i+1)
		w.WriteHeader(204)
	default:
		fail(w, 405, "Method Not Allowed")
	}
}

// page cuts a list and links to the next part, as GitHub does.
func page(s *Server, w http.ResponseWriter, r *http.Request, all []any) []any {
	size, err := strconv.Atoi(r.URL.Query().Get("per_page"))
	if err != nil || size < 1 {
		size = 30
	}
	size = min(size, s.PageSize)
	at, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || at < 1 {
		at = 1
	}
	from, to := min((at-1)*size, len(all)), min(at*size, len(all))
	if to < len(all) {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(at+1))
		next := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
		w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, next.String()))
	}
	if all == nil {
		return []any{}
	}
	return all[from:to]
}

func (s *Server) serveBlob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobAuth = append(s.blobAuth, r.Header.Get("Authorization"))
	for _, all := range s.archives {
		for _, a := range all {
			if r.URL.Path == fmt.Sprintf("/container/%d.zip", a.id) && r.URL.Query().Get("sig") == "secret-signature" {
				w.Write(a.data)
				return
			}
		}
	}
	w.WriteHeader(403)
}

func reply(w http.ResponseWriter, status int, doc any) {
	data, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	w.WriteHeader(status)
	w.Write(data)
}

func fail(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)})
}
