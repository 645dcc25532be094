package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
