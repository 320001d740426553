// Package forgetest imitates the comments of a pull request at GitHub, and of a merge request at GitLab. Only tests import it.
package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// The tokens that the server knows. Both belong to the account [Self].
const (
	Token    = "token"
	ReadOnly = "read-only"
)

// The account of the tokens, and another one.
const (
	Self  = 1
	Other = 2
)

// Number is the number of the change, and Project the name or the ID of its project.
const (
	Number  = 7
	Project = "team/runtime"
)

// page is the number of comments on a page of the list. It is small, so that a few comments fill several pages.
const page = 2

// Comment is a comment on the change.
type Comment struct {
	Author int
	Body   string
}

// Server is GitHub at /graphql, and GitLab below /api/v4. Its comments have the IDs 1, 2 and so on.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	comments []Comment
}

// New starts a server that ends with the test.
func New(t testing.TB, comments ...Comment) *Server {
	s := &Server{comments: comments}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /graphql", s.graphql)
	mux.HandleFunc("GET /api/v4/user", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]int{"id": Self}) })
	const notes = "/api/v4/projects/5/merge_requests/7/notes"
	mux.HandleFunc("GET "+notes, s.listNotes)
	mux.HandleFunc("POST "+notes, s.writeNote)
	mux.HandleFunc("PUT "+notes+"/{id}", s.writeNote)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("Authorization"); token != "Bearer "+Token && token != "Bearer "+ReadOnly {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Comments returns the comments so far.
func (s *Server) Comments() []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.comments)
}

func answer(w http.ResponseWriter, document any) {
	_ = json.NewEncoder(w).Encode(document) // the client finds an incomplete answer
}

// write changes a comment, or adds one if the ID is empty. It reports whether the comment exists and the request has the right.
func (s *Server) write(r *http.Request, id, body string) bool {
	if r.Header.Get("Authorization") != "Bearer "+Token {
		return false
	}
	if id == "" {
		s.comments = append(s.comments, Comment{Self, body})
		return true
	}
	number, err := strconv.Atoi(id)
	if err != nil || number < 1 || number > len(s.comments) {
		return false
	}
	s.comments[number-1].Body = body
	return true
}

func (s *Server) graphql(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var query struct {
		Query     string
		Variables struct {
			Owner, Name, ID, Body string
			Number                int
			After                 *string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&query); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v := query.Variables
	refuse := func(kind string) {
		answer(w, map[string]any{"data": nil, "errors": []any{map[string]string{"type": kind, "message": "Resource not accessible by integration"}}})
	}
	switch {
	case v.Body != "":
		id := v.ID
		if id == pullRequest {
			id = ""
		}
		if !s.write(r, id, v.Body) {
			refuse("FORBIDDEN")
			return
		}
		answer(w, map[string]any{"data": map[string]any{}})
	case v.Owner+"/"+v.Name != Project || v.Number != Number:
		refuse("NOT_FOUND")
	default:
		first := 0
		if v.After != nil {
			first, _ = strconv.Atoi(*v.After)
		}
		s.listComments(w, first)
	}
}

// pullRequest is the ID of the pull request for GraphQL.
const pullRequest = "PR"

func (s *Server) listComments(w http.ResponseWriter, first int) {
	end := min(first+page, len(s.comments))
	nodes := []any{}
	for i, c := range s.comments[first:end] {
		nodes = append(nodes, map[string]any{"id": strconv.Itoa(first + i + 1), "body": c.Body, "viewerDidAuthor": c.Author == Self})
	}
	comments := map[string]any{"nodes": nodes, "pageInfo": map[string]any{"hasNextPage": end < len(s.comments), "endCursor": strconv.Itoa(end)}}
	answer(w, map[string]any{"data": map[string]any{"repository": map[string]any{"pullRequest": map[string]any{"id": pullRequest, "comments": comments}}}})
}

func (s *Server) listNotes(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number, _ := strconv.Atoi(r.URL.Query().Get("page"))
	end := min(number*page, len(s.comments))
	notes := []any{}
	for i, c := range s.comments[(number-1)*page : end] {
		notes = append(notes, map[string]any{"id": (number-1)*page + i + 1, "body": c.Body, "author": map[string]int{"id": c.Author}})
	}
	if end < len(s.comments) {
		w.Header().Set("X-Next-Page", strconv.Itoa(number+1))
	}
	answer(w, notes)
}

func (s *Server) writeNote(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var note struct{ Body string }
	if err := json.NewDecoder(r.Body).Decode(&note); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !s.write(r, r.PathValue("id"), note.Body) {
		http.Error(w, "403 Forbidden", http.StatusForbidden)
		return
	}
	answer(w, map[string]any{})
}

// GitHub returns the variables of a job of a pull request, whose event is in a file. head is the repository of the branch.
func (s *Server) GitHub(event, token string) map[string]string {
	return map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": Project, "GITHUB_EVENT_PATH": event, "GITHUB_GRAPHQL_URL": s.URL + "/graphql", "GITHUB_TOKEN": token,
	}
}

// Event is the event of a pull request with a branch of this repository.
func Event(repository string) string {
	return fmt.Sprintf(`{"pull_request": {"number": %d, "head": {"repo": {"full_name": %q}}}}`, Number, repository)
}

// GitLab returns the variables of a job of a merge request. source is the ID of the project with the branch; the merge request is in project 5.
func (s *Server) GitLab(source, token string) map[string]string {
	return map[string]string{
		"GITLAB_CI": "true", "CI_API_V4_URL": s.URL + "/api/v4", "CI_MERGE_REQUEST_PROJECT_ID": "5", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": source,
		"CI_MERGE_REQUEST_IID": strconv.Itoa(Number), "GITLAB_TOKEN": token,
	}
}
