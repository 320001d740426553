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

// A daemon makes a container for a request of a killed run while the run's image loses its name. Then Docker keeps the image, without a name and
// without an error. The sweep must remove both, since no later one finds the image.
//
// Invariant dead-runs.
func TestSweepWhileAContainerIsMade(t *testing.T) {
	const run, id = "20260101-000000-aaaa", "sha256:1"
	tag := "127.0.0.1:1234/touchstone/" + run + "/probe:latest"
	for _, tt := range []struct {
		name     string
		lists    int      // of containers without the new one after the image's name is gone
		renamed  []string // names of the image from another run
		removals []string
	}{
		{name: "listed at once", removals: []string{tag, id + ": conflict", "new", id}},
		{name: "listed later", lists: 2, removals: []string{tag, id + ": conflict", id + ": conflict", id + ": conflict", "new", id}},
		{name: "another run's too", renamed: []string{"127.0.0.1:99/touchstone/other/probe:latest"}, removals: []string{tag}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			names, exists := []string{tag}, true
			holder := false // whether a container holds the image
			var removals []string
			fail := func(w http.ResponseWriter, code int) {
				w.WriteHeader(code)
				_, _ = w.Write([]byte(`{"message": "refused"}`))
			}
			socket := filepath.Join(t.TempDir(), "sock")
			listen(t, socket, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", "1.47")
				object := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				answer := any([]any{})
				switch {
				case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/images/"+tag):
					removals, names, holder = append(removals, tag), tt.renamed, true
				case r.Method == http.MethodDelete && object == id && holder:
					removals = append(removals, id+": conflict")
					fail(w, http.StatusConflict)
					return
				case r.Method == http.MethodDelete && object == id:
					removals, exists = append(removals, id), false
				case r.Method == http.MethodDelete:
					removals, holder = append(removals, object), false
				case object == "info":
					answer = map[string]string{"ServerVersion": "1", "Name": "busy"}
				case strings.HasSuffix(r.URL.Path, "/containers/json"):
					if holder && tt.lists > 0 {
						tt.lists--
					} else if holder {
						answer = []listed{{"new", []string{"/touchstone-" + run + "-t1-00001"}, map[string]string{engine.Label: run}}}
					}
				case strings.HasSuffix(r.URL.Path, "/images/json"):
					answer = []map[string]any{{"Id": id, "RepoTags": names}}
				case !exists:
					fail(w, http.StatusNotFound)
					return
				default:
					answer = map[string]any{"Id": id, "RepoTags": names}
				}
				enginetest.Check(t, json.NewEncoder(w).Encode(answer))
			})
			_, err := docker.NewDriver().Sweep(t.Context(), engine.Session{RunID: run, Sockets: map[string]string{"docker": socket}})
			if err != nil {
				t.Errorf("Sweep: %v", err)
			}
			if diff := cmp.Diff(tt.removals, removals); diff != "" {
				t.Errorf("the sweep removed (-want +got):\n%s", diff)
			}
		})
	}
}
