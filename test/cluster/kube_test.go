package cluster_test

import (
	"go/format"
	"os"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// The formatter of the repository does not see the module test/kube.
func TestKubeIsFormatted(t *testing.T) {
	source, err := os.ReadFile("../kube/main.go")
	must.Do(t, err)
	formatted, err := format.Source(source)
	must.Do(t, err)
	if string(formatted) != string(source) {
		t.Error("test/kube/main.go is not formatted: run gofmt -w test/kube")
	}
}

// The tests run against the release of Kubernetes whose modules the product uses.
func TestKubeHasTheProductsRelease(t *testing.T) {
	releases := make(map[string]string)
	for _, r := range moduleFile(t, "../kube/go.mod").Replace {
		releases[r.New.Path] = semver.MajorMinor(r.New.Version)
	}
	count := 0
	for _, r := range moduleFile(t, "../../go.mod").Require {
		release, found := releases[r.Mod.Path]
		if !found {
			continue
		}
		count++
		if version := semver.MajorMinor(r.Mod.Version); version != release {
			t.Errorf("go.mod requires %s of %s, and test/kube of %s: use one release in both", r.Mod.Path, version, release)
		}
	}
	if count == 0 {
		t.Error("go.mod and test/kube share no module of Kubernetes")
	}
}

func moduleFile(t *testing.T, path string) *modfile.File {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Do(t, err)
	file, err := modfile.Parse(path, text, nil)
	must.Do(t, err)
	return file
}
