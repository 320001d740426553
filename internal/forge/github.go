package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
)

// github uses GraphQL: only there a job's token finds its own comments.
type github struct {
	address, token string
	owner, name    string
	number         int
	id             string // of the pull request; find sets it
}

// event is the part of a job's event that a comment needs.
type event struct {
	PullRequest *struct {
		Number int `json:"number"`
		Head   struct {
			Repo *struct { // absent if the fork was deleted
				FullName string `json:"full_name"`
			} `json:"repo"`
		} `json:"head"`
	} `json:"pull_request"`
}

func openGitHub(getenv func(string) string) (*Change, error) {
	var e event
	if err := readEvent(getenv("GITHUB_EVENT_PATH"), &e); err != nil {
		return nil, err
	}
	repository := getenv("GITHUB_REPOSITORY")
	owner, name, _ := strings.Cut(repository, "/")
	switch {
	case e.PullRequest == nil:
		return nil, &SkipError{"the job has no pull request"}
	case getenv("GITHUB_TOKEN") == "":
		return nil, &SkipError{"GITHUB_TOKEN is empty"}
	}
	return &Change{
		name:   fmt.Sprintf("pull request %d", e.PullRequest.Number),
		fork:   e.PullRequest.Head.Repo == nil || e.PullRequest.Head.Repo.FullName != repository,
		remedy: "give the job the permission pull-requests: write",
		service: &github{
			address: getenv("GITHUB_GRAPHQL_URL"), token: getenv("GITHUB_TOKEN"), owner: owner, name: name, number: e.PullRequest.Number,
		},
	}, nil
}

// mostEvent is the largest event that is read, in bytes. GitHub limits events to 25 MB.
const mostEvent = 32 << 20

func readEvent(file string, e *event) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read the event in GITHUB_EVENT_PATH: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read from
	if err := json.NewDecoder(io.LimitReader(f, mostEvent)).Decode(e); err != nil {
		return fmt.Errorf("read the event in %s: %w", file, err)
	}
	return nil
}

// query sends a query of GraphQL. Its errors come with the status 200.
func (g *github) query(ctx context.Context, text string, variables map[string]any, data any) error {
	answer := struct {
		Data   any `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}{Data: data}
	document := map[string]any{"query": text, "variables": variables}
	if _, err := call(ctx, http.MethodPost, g.address, g.token, document, &answer); err != nil {
		return err
	}
	if len(answer.Errors) == 0 {
		return nil
	}
	first := answer.Errors[0]
	if slices.Contains([]string{"FORBIDDEN", "NOT_FOUND", "INSUFFICIENT_SCOPES"}, first.Type) {
		return &refusal{first.Message}
	}
	return fmt.Errorf("GitHub refuses the query: %s", first.Message)
}

func (g *github) find(ctx context.Context, marker string) (string, error) {
	const comments = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { id
    comments(first: 100, after: $after) { nodes { id body viewerDidAuthor } pageInfo { hasNextPage endCursor } } } } }`
	for cursor := (*string)(nil); ; {
		var data struct {
			Repository struct {
				PullRequest struct {
					ID       string `json:"id"`
					Comments struct {
						Nodes []struct {
							ID   string `json:"id"`
							Body string `json:"body"`
							Own  bool   `json:"viewerDidAuthor"`
						} `json:"nodes"`
						Page struct {
							HasNext bool   `json:"hasNextPage"`
							End     string `json:"endCursor"`
						} `json:"pageInfo"`
					} `json:"comments"`
				} `json:"pullRequest"`
			} `json:"repository"`
		}
		if err := g.query(ctx, comments, map[string]any{"owner": g.owner, "name": g.name, "number": g.number, "after": cursor}, &data); err != nil {
			return "", err
		}
		g.id = data.Repository.PullRequest.ID
		page := data.Repository.PullRequest.Comments
		for _, node := range page.Nodes {
			if node.Own && strings.HasPrefix(node.Body, marker) {
				return node.ID, nil
			}
		}
		if !page.Page.HasNext {
			return "", nil
		}
		cursor = &page.Page.End
	}
}

func (g *github) create(ctx context.Context, text string) error {
	const add = `mutation($id: ID!, $body: String!) { addComment(input: {subjectId: $id, body: $body}) { clientMutationId } }`
	return g.query(ctx, add, map[string]any{"id": g.id, "body": text}, nil)
}

func (g *github) update(ctx context.Context, id, text string) error {
	const change = `mutation($id: ID!, $body: String!) { updateIssueComment(input: {id: $id, body: $body}) { clientMutationId } }`
	return g.query(ctx, change, map[string]any{"id": id, "body": text}, nil)
}
