package docker_test

import (
	"encoding/json"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
)

// listed is a container in the response of a daemon.
type listed struct {
	ID     string `json:"Id"`
	Names  []string
	Labels map[string]string
}

// Sweep checks each object itself, because a daemon may ignore the filter.
//
// Invariant foreign-objects.
func TestSweepOfCarelessDaemon(t *testing.T) {
	const run, stranger = "20260101-000000-aaaa", "20260101-000000-bbbb"
	labels := func(run string) map[string]string { return map[string]string{engine.Label: run} }
	containers := []listed{
		{"foreign", []string{"/web"}, map[string]string{"app": "web"}},
		{"bare", nil, nil},
		{"mine", []string{"/touchstone-" + run + "-t1-00001"}, labels(run)},
		{"name alone", []string{"/touchstone-" + run + "-t1-00002"}, nil},
		{"label alone", []string{"/web-2"}, labels(run)},
		{"other run", []string{"/touchstone-" + stranger + "-t1-00001"}, labels(stranger)},
		{"other label", []string{"/touchstone-" + run + "-t1-00003"}, labels(stranger)},
		{"longer ID", []string{"/touchstone-" + run + "x-t1-00001"}, labels(run)},
		{"linked", []string{"/web-3/db", "/touchstone-" + run + "-t1-00004"}, labels(run)},
	}
	image := "127.0.0.1:1234/touchstone/" + run + "/probe:latest"
	images := []map[string]any{
		{"Id": "sha256:1", "RepoTags": []string{"web:1"}},
		{"Id": "sha256:2", "RepoTags": []string{image, "mine:1"}},
		{"Id": "sha256:3", "RepoTags": []string{"127.0.0.1:1234/touchstone/" + stranger + "/probe:latest"}},
		{"Id": "sha256:4", "Labels": labels(run)},
	}
	var removals []string
	socket := filepath.Join(t.TempDir(), "sock")
	listen(t, socket, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.47")
		answer := any([]any{})
		switch endpoint := path.Base(r.URL.Path); {
		case r.Method == http.MethodDelete:
			_, object, _ := strings.Cut(r.URL.Path, "/containers/")
			if object == "" {
				_, object, _ = strings.Cut(r.URL.Path, "/images/")
			}
			removals = append(removals, object)
		case endpoint == "info":
			answer = map[string]string{"ServerVersion": "1", "Name": "careless"}
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			answer = containers
		case strings.HasSuffix(r.URL.Path, "/images/json"):
			answer = images
		}
		enginetest.Check(t, json.NewEncoder(w).Encode(answer))
	})
	s := engine.Session{RunID: run, Sockets: map[string]string{"docker": socket}}
	n, err := docker.NewDriver().Sweep(t.Context(), s)
	if err != nil || n != 3 {
		t.Errorf("Sweep = %d, %v; want 3", n, err)
	}
	if diff := cmp.Diff([]string{"mine", "linked", image}, removals); diff != "" {
		t.Errorf("the sweep removed (-want +got):\n%s", diff)
	}
}
