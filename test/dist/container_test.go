package dist

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// ociArchive is the archive with the container image of the release, and loaded is the name of the image where it is loaded.
const (
	ociArchive = "touchstone-" + tag + "-oci.tar"
	loaded     = "localhost/touchstone:" + tag
)

// testPublished checks the image in the registry and the arguments of GitHub's program, one a line.
func testPublished(t *testing.T, repository, arguments, output string, architectures []string) {
	reference, err := name.NewTag(repository + ":" + tag)
	must.Do(t, err)
	index, err := remote.Index(reference, remote.WithContext(t.Context()))
	must.Do(t, err)
	manifest, err := index.IndexManifest()
	must.Do(t, err)
	var published []string
	for _, m := range manifest.Manifests {
		published = append(published, m.Platform.Architecture)
	}
	if !slices.Equal(published, architectures) {
		t.Errorf("the image is for %q, want %q", published, architectures)
	}
	digest, err := index.Digest()
	must.Do(t, err)
	for _, want := range []string{"the container image is " + digest.String(), "the container image is " + reference.String() + "@" + digest.String()} {
		if !strings.Contains(output, want+"\n") {
			t.Errorf("the release does not print %q:\n%s", want, output)
		}
	}
	for _, want := range []string{"create", tag, "Container image: `" + reference.String() + "@" + digest.String() + "`", "dist/" + ociArchive, "dist/SHA256SUMS.sig"} {
		if !slices.Contains(strings.Split(arguments, "\n"), want) {
			t.Errorf("the published release lacks %q:\n%s", want, arguments)
		}
	}
	img, err := remote.Image(reference, remote.WithContext(t.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	must.Do(t, err)
	config, err := img.ConfigFile()
	must.Do(t, err)
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != tag || config.Created.Unix() == 0 {
		t.Errorf("the image has the version %q and the time %v", got, config.Created)
	}
}

// testContainer loads the image into Podman, and reads results with it that the released program has recorded here.
//
// Invariant place-of-touchstone: Touchstone in a container says so: in its list of targets, in its properties of the machine, and in each run.
func testContainer(t *testing.T, dir string) {
	need(t, "podman", "crun")
	base := t.TempDir()
	release := "touchstone-" + tag + "-linux-" + runtime.GOARCH
	program := filepath.Join(base, "touchstone")
	must.Do(t, os.WriteFile(program, archive(t, filepath.Join(dir, release+".tar.gz"))[release+"/touchstone"], 0o755))
	for _, baseline := range []string{"A", "B"} {
		mustRun(t, base, nil, program, "benchmark", "-t", "fake/quick,fake/slow@create=30ms", "--filter", "operations.container.lifecycle", "-n", "6")
		mustRun(t, base, nil, program, "baseline", "save", baseline, "latest")
	}
	isolated(t, []string{"--net"}, "container.sh", base, filepath.Join(dir, ociArchive), loaded)
	for file, want := range map[string][]string{
		"version":   {tag},
		"forbidden": {"out/touchstone.db", "check the permissions"},
		"report":    {"fake/slow@create=30ms", "operations.container.lifecycle"},
		"compare":   {"A against B"},
		"runs":      {"complete"},
		"ui":        {"HTTP/1.0 401 Unauthorized", "HTTP/1.0 200 OK", "| fake/quick | Create |"},
		"host":      {"container          poor        podman"},
		"targets":   {"Touchstone itself runs in a container (podman)", "remedy: it runs in a container (podman): start Touchstone on the host"},
		"benchmark": {"! Touchstone itself runs in a container (podman)"},
	} {
		answer := string(read(t, filepath.Join(base, "answers", file)))
		for _, part := range want {
			if !strings.Contains(strings.Join(strings.Fields(answer), " "), strings.Join(strings.Fields(part), " ")) {
				t.Errorf("the answer of %s lacks %q:\n%s", file, part, answer)
			}
		}
	}
	if page := string(read(t, filepath.Join(base, "out/page.html"))); !strings.Contains(page, "fake/slow") {
		t.Error("the page from the container has no results")
	}
}

// testLoad checks that Docker loads an image for each architecture, and that containerd imports the index.
func testLoad(t *testing.T, dir string, architectures []string) {
	need(t, "dockerd", "docker", "ctr")
	base := t.TempDir()
	isolated(t, []string{"--net"}, "load.sh", base, filepath.Join(dir, ociArchive))
	images := strings.Fields(string(read(t, filepath.Join(base, "docker"))))
	for _, arch := range architectures {
		if !slices.Contains(images, loaded+"-"+arch) {
			t.Errorf("Docker has the images %q, and none for %s", images, arch)
		}
	}
	if images := strings.Fields(string(read(t, filepath.Join(base, "containerd")))); !slices.Contains(images, loaded) {
		t.Errorf("containerd has the images %q", images)
	}
}
