// Package forge writes a comment to the pull request of GitHub, or the merge request of GitLab, whose job runs this program.
//
// A change has one comment for each marker: the first job writes it, and later ones update it. The marker is the first line of the comment, in an HTML
// comment. Only a comment of the same account is updated, because any user can write the marker, and could change the text after the update.
//
// The clients of both services have large libraries for Go. This package needs five requests, and so it makes them itself. It refuses redirects, answers
// above 16 MiB, and markers that could end the HTML comment.
package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SkipError is the reason why a job has no change to comment on, or no right to it. It is no failure: the job of a fork never has the right.
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return "no comment: " + e.Reason }

// refusal is an answer that the token does not suffice.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// Change is a pull request or a merge request.
type Change struct {
	name string
	// fork is set if the change comes from a fork, whose jobs have no token or one without rights.
	fork bool
	// remedy gives a token the right to comment.
	remedy  string
	service service
}

// service is the program interface of GitHub or GitLab.
type service interface {
	// find returns the ID of the first comment of this account that begins with the marker; empty without one.
	find(ctx context.Context, marker string) (string, error)
	create(ctx context.Context, text string) error
	update(ctx context.Context, id, text string) error
}

// Open returns the change of a job by the variables that the service sets. The error is a [*SkipError] outside of a job, without a change, and without a
// token.
func Open(getenv func(string) string) (*Change, error) {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return openGitHub(getenv)
	case getenv("GITLAB_CI") == "true":
		return openGitLab(getenv)
	}
	return nil, &SkipError{"this is no job of GitHub Actions or GitLab"}
}

// name matches the name of a marker. Two hyphens could end an HTML comment.
var name = regexp.MustCompile(`^[A-Za-z0-9._/]+([ -][A-Za-z0-9._/]+)*$`)

// Marker returns the first line of the comments with a name.
func Marker(text string) (string, error) {
	if !name.MatchString(text) || len(text) > 100 {
		return "", fmt.Errorf("marker %q: give up to 100 letters, digits, dots, slashes and underscores, with single hyphens or blanks between them", text)
	}
	return "<!-- touchstone: " + text + " -->", nil
}

// Comment writes the comment with a marker, or updates it, and returns a sentence about it. The error is a [*SkipError] if the job of a fork may not comment.
func (c *Change) Comment(ctx context.Context, marker, text string) (string, error) {
	done, err := c.write(ctx, marker, marker+"\n"+shorten(text, mostBytes-len(marker)-1))
	if failure, ok := errors.AsType[*refusal](err); ok {
		if c.fork {
			return "", &SkipError{fmt.Sprintf("%s comes from a fork, and its token may not comment (%s)", c.name, failure.text)}
		}
		err = fmt.Errorf("%s; %s", failure.text, c.remedy)
	}
	if err != nil {
		return "", fmt.Errorf("comment on %s: %w", c.name, err)
	}
	return done + c.name, nil
}

func (c *Change) write(ctx context.Context, marker, text string) (string, error) {
	id, err := c.service.find(ctx, marker)
	if err != nil {
		return "", err
	}
	if id == "" {
		return "wrote the comment on ", c.service.create(ctx, text)
	}
	return "updated the comment on ", c.service.update(ctx, id, text)
}

// mostBytes is GitHub's limit for a comment, in characters. GitLab's is larger.
const mostBytes = 65_536

// cut stands before the rest of a comment, because the end could be in a folded part.
const cut = "> The text is cut at the limit of comments. The report of the job has all of it.\n\n"

// shorten limits a text to a number of bytes, at the end of a line.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[:limit-len(cut)]
	return cut + strings.ToValidUTF8(text[:strings.LastIndexByte(text, '\n')+1], "")
}

// client keeps a token from other servers: it follows no redirect. Its time limit is one against hanging.
var client = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// mostAnswer is the largest answer that is read, in bytes.
const mostAnswer = 16 << 20

// call sends a document, unless it is nil, and reads the answer. It returns the header of the answer.
func call(ctx context.Context, method, address, token string, document, answer any) (http.Header, error) {
	var body bytes.Buffer
	if document != nil {
		if err := json.NewEncoder(&body).Encode(document); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, &body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it is only read from
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", method, address, err)
	case slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, response.StatusCode):
		return nil, &refusal{fmt.Sprintf("%s %s: %s", method, address, response.Status)}
	case response.StatusCode >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%s %s: %s", method, address, response.Status)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("%s %s: read the answer: %w", method, address, err)
	}
	return response.Header, nil
}
