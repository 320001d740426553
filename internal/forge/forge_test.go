package forge_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/forge"
	"github.com/touchstone-bench/touchstone/internal/forge/forgetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

const (
	marker  = "<!-- touchstone: x -->"
	another = "<!-- touchstone: y -->\nof another marker"
)

func writeEvent(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "event.json")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// comment writes a comment with the variables of a job.
func comment(t *testing.T, variables map[string]string, text string) (string, error) {
	t.Helper()
	change, err := forge.Open(func(name string) string { return variables[name] })
	if err != nil {
		return "", err
	}
	return change.Comment(t.Context(), marker, text)
}

// jobs returns the variables of a job of each service. fork is set for the job of a fork.
func jobs(t *testing.T, s *forgetest.Server, token string, fork bool) map[string]map[string]string {
	t.Helper()
	repository, source := forgetest.Project, "5"
	if fork {
		repository, source = "stranger/runtime", "6"
	}
	return map[string]map[string]string{
		"GitHub": s.GitHub(writeEvent(t, forgetest.Event(repository)), token), "GitLab": s.GitLab(source, token),
	}
}

// The first job writes the comment, and the second one updates it, on any page of the list. Another account's comment and another marker's stay.
//
// Invariant one-comment: A change has one comment for each marker, and no comment of another account is changed.
func TestComment(t *testing.T) {
	for _, service := range []string{"GitHub", "GitLab"} {
		t.Run(service, func(t *testing.T) {
			strangers := []forgetest.Comment{
				{Author: forgetest.Other, Body: marker + "\nforged"}, {Author: forgetest.Self, Body: another}, {Author: forgetest.Self, Body: "quotes " + marker},
			}
			s := forgetest.New(t, strangers...)
			variables := jobs(t, s, forgetest.Token, false)[service]
			for i, step := range []struct{ text, want string }{{"first", "wrote the comment on "}, {"second", "updated the comment on "}} {
				done, err := comment(t, variables, step.text)
				if err != nil || !strings.HasPrefix(done, step.want) {
					t.Fatalf("call %d: %q, %v, want %q", i+1, done, err, step.want)
				}
			}
			comments := s.Comments()
			if len(comments) != 4 || comments[3].Body != marker+"\nsecond" {
				t.Errorf("the comments are %+v", comments)
			}
			for i, c := range strangers {
				if comments[i] != c {
					t.Errorf("comment %d is %+v, was %+v", i+1, comments[i], c)
				}
			}
		})
	}
}

// A job without a change or a token, and the job of a fork whose token may not write, have no comment and no failure. In other jobs a refused token
// is an error with its remedy.
func TestNoComment(t *testing.T) {
	s := forgetest.New(t)
	push := s.GitHub(writeEvent(t, `{"ref": "refs/heads/main"}`), forgetest.Token)
	branch := s.GitLab("5", forgetest.Token)
	branch["CI_MERGE_REQUEST_IID"] = ""
	orphan := s.GitHub(writeEvent(t, `{"pull_request": {"number": 7, "head": {"repo": null}}}`), forgetest.ReadOnly)
	stranger := s.GitHub(writeEvent(t, `{"pull_request": {"number": 8, "head": {"repo": {"full_name": "team/runtime"}}}}`), forgetest.Token)
	unread := s.GitHub(writeEvent(t, "{"), forgetest.Token)
	for name, c := range map[string]struct {
		variables map[string]string
		reason    string
		skipped   bool
	}{
		"outside":                     {nil, "this is no job of GitHub Actions or GitLab", true},
		"GitHub, a push":              {push, "no pull request", true},
		"GitHub, a deleted fork":      {orphan, "pull request 7 comes from a fork, and its token may not comment", true},
		"GitHub, no such change":      {stranger, "pull-requests: write", false},
		"GitHub, a broken event":      {unread, "read the event in /", false},
		"GitHub, no event":            {s.GitHub("/missing", "x"), "GITHUB_EVENT_PATH", false},
		"GitHub, a fork":              {jobs(t, s, forgetest.ReadOnly, true)["GitHub"], "comes from a fork", true},
		"GitHub, no token":            {jobs(t, s, "", true)["GitHub"], "GITHUB_TOKEN is empty", true},
		"GitHub, a token for reading": {jobs(t, s, forgetest.ReadOnly, false)["GitHub"], "give the job the permission pull-requests: write", false},
		"GitHub, a wrong token":       {jobs(t, s, "wrong", false)["GitHub"], "401 Unauthorized", false},
		"GitLab, a branch":            {branch, "no merge request", true},
		"GitLab, a fork":              {jobs(t, s, forgetest.ReadOnly, true)["GitLab"], "comes from a fork", true},
		"GitLab, no token":            {jobs(t, s, "", false)["GitLab"], "GITLAB_TOKEN is empty", true},
		"GitLab, a token for reading": {jobs(t, s, forgetest.ReadOnly, false)["GitLab"], "the scope api and the role Reporter", false},
	} {
		done, err := comment(t, c.variables, "text")
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %q, %v, want %q", name, done, err, c.reason)
		}
		if skip := (*forge.SkipError)(nil); errors.As(err, &skip) != c.skipped {
			t.Errorf("%s: %v is a reason to skip: %v, want %v", name, err, !c.skipped, c.skipped)
		}
	}
	if comments := s.Comments(); len(comments) > 0 {
		t.Errorf("%+v was written", comments)
	}
}

// A comment above GitHub's limit is cut at the end of a line, and its beginning says so.
func TestLongComment(t *testing.T) {
	s := forgetest.New(t)
	line := strings.Repeat("ä", 50) + "\n"
	_, err := comment(t, jobs(t, s, forgetest.Token, false)["GitHub"], strings.Repeat(line, 1000))
	must.Do(t, err)
	body := s.Comments()[0].Body
	rest, ok := strings.CutPrefix(body, marker+"\n> The text is cut")
	if !ok || len(body) > 65_536 || len(body) < 65_000 || !strings.HasSuffix(rest, "\n"+line) {
		t.Errorf("the comment has %d bytes and begins with %.80q", len(body), body)
	}
}

// GitLab executes no line of a comment.
func TestCommands(t *testing.T) {
	s := forgetest.New(t)
	_, err := comment(t, jobs(t, s, forgetest.Token, false)["GitLab"], "/merge\n  /close\ntmp/x /y\n    /code\n")
	must.Do(t, err)
	if got, want := s.Comments()[0].Body, marker+"\n\\/merge\n  \\/close\ntmp/x /y\n    /code\n"; got != want {
		t.Errorf("the comment is %q, want %q", got, want)
	}
}

// A token goes to no other server.
//
// Invariant token-stays: The token of a comment goes only to the server that the job names.
func TestRedirect(t *testing.T) {
	s := forgetest.New(t)
	gate := httptest.NewServer(http.RedirectHandler(s.URL+"/graphql", http.StatusTemporaryRedirect))
	t.Cleanup(gate.Close)
	variables := jobs(t, s, forgetest.Token, false)["GitHub"]
	variables["GITHUB_GRAPHQL_URL"] = gate.URL
	if _, err := comment(t, variables, "text"); err == nil || !strings.Contains(err.Error(), "307 Temporary Redirect") {
		t.Errorf("the redirect had the error %v", err)
	}
	if comments := s.Comments(); len(comments) > 0 {
		t.Errorf("%+v was written", comments)
	}
}

func TestMarker(t *testing.T) {
	for text, ok := range map[string]bool{
		"touchstone": true, "memory of runsc": true, "a-b/c.d_e": true,
		"": false, " a": false, "a ": false, "a--b": false, "a-->": false, "a\nb": false, strings.Repeat("a", 101): false,
	} {
		if got, err := forge.Marker(text); (err == nil) != ok {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
