package forge

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

type gitlab struct {
	api, notes string // addresses
	token      string
}

func openGitLab(getenv func(string) string) (*Change, error) {
	project, number := getenv("CI_MERGE_REQUEST_PROJECT_ID"), getenv("CI_MERGE_REQUEST_IID")
	switch {
	case number == "":
		return nil, &SkipError{"the job has no merge request"}
	case getenv("GITLAB_TOKEN") == "":
		return nil, &SkipError{"GITLAB_TOKEN is empty; the job's own token may not comment"}
	}
	api := getenv("CI_API_V4_URL")
	return &Change{
		name:   "merge request " + number,
		fork:   getenv("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != project,
		remedy: "give GITLAB_TOKEN the scope api and the role Reporter in the project",
		service: &gitlab{
			api: api, notes: fmt.Sprintf("%s/projects/%s/merge_requests/%s/notes", api, project, number), token: getenv("GITLAB_TOKEN"),
		},
	}, nil
}

func (g *gitlab) find(ctx context.Context, marker string) (string, error) {
	type account struct {
		ID int `json:"id"`
	}
	var self account
	if _, err := call(ctx, http.MethodGet, g.api+"/user", g.token, nil, &self); err != nil {
		return "", err
	}
	for page := "1"; page != ""; {
		var notes []struct {
			ID     int     `json:"id"`
			Body   string  `json:"body"`
			Author account `json:"author"`
		}
		header, err := call(ctx, http.MethodGet, g.notes+"?sort=asc&per_page=100&page="+page, g.token, nil, &notes)
		if err != nil {
			return "", err
		}
		for _, note := range notes {
			if note.Author == self && strings.HasPrefix(note.Body, marker) {
				return strconv.Itoa(note.ID), nil
			}
		}
		page = header.Get("X-Next-Page")
	}
	return "", nil
}

func (g *gitlab) create(ctx context.Context, text string) error {
	return g.send(ctx, http.MethodPost, g.notes, text)
}

func (g *gitlab) update(ctx context.Context, id, text string) error {
	return g.send(ctx, http.MethodPut, g.notes+"/"+id, text)
}

// command matches the beginning of a line that GitLab executes, such as /merge.
var command = regexp.MustCompile(`(?m)^( {0,3})/`)

func (g *gitlab) send(ctx context.Context, method, address, text string) error {
	body := map[string]string{"body": command.ReplaceAllString(text, `$1\/`)}
	_, err := call(ctx, method, address, g.token, body, &struct{}{})
	return err
}
