package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// programs returns a folder with stand-ins for the programs of two architectures. Only their owner can read them.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, arch), 0o700))
		for _, file := range []string{"touchstone", "LICENSE", "THIRD-PARTY-LICENSES", "touchstone.spdx.json"} {
			must.Do(t, os.WriteFile(filepath.Join(dir, arch, file), []byte(file+" of "+arch), 0o600))
		}
	}
	return dir
}

func testRelease(version string) release {
	return release{version, "0123456789abcdef0123456789abcdef01234567", time.Unix(1_800_000_000, 0).UTC()}
}

// unpacked builds the archive of a version, and returns the folder with its files and the digest of its index.
func unpacked(t *testing.T, version, dir string) (layoutDir, digest string) {
	t.Helper()
	var out bytes.Buffer
	archive := filepath.Join(t.TempDir(), "oci.tar")
	must.Do(t, testRelease(version).build(t.Context(), &out, dir, archive))
	file, err := os.Open(archive)
	must.Do(t, err)
	layoutDir = t.TempDir()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		content, err := io.ReadAll(r)
		path := filepath.Join(layoutDir, filepath.Clean("/"+header.Name))
		must.Do(t, err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644))
	}
	must.Do(t, file.Close())
	return layoutDir, strings.TrimSpace(out.String())
}

// files returns the headers and the contents of an image's files.
func files(t *testing.T, img v1.Image) (map[string]tar.Header, map[string]string) {
	t.Helper()
	headers, contents := map[string]tar.Header{}, map[string]string{}
	content := mutate.Extract(img)
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			must.Do(t, content.Close())
			return headers, contents
		}
		must.Do(t, err)
		text, err := io.ReadAll(r)
		must.Do(t, err)
		headers[strings.TrimSuffix(header.Name, "/")], contents[header.Name] = *header, string(text)
	}
}

// The image has the program and its licences, and runs it as a user without rights in a folder of that user.
func TestImage(t *testing.T) {
	dir := programs(t)
	img, err := testRelease("v1.0.0").image("arm64", filepath.Join(dir, "arm64"))
	must.Do(t, err)
	config, err := img.ConfigFile()
	must.Do(t, err)
	run := config.Config
	if config.OS != "linux" || config.Architecture != "arm64" || run.User != "65532:65532" || run.WorkingDir != "/data" || strings.Join(run.Entrypoint, " ") != "/usr/bin/touchstone" || run.Cmd != nil {
		t.Errorf("the configuration is %+v", config)
	}
	labels := maps.Clone(run.Labels)
	for label, want := range map[string]string{
		"version": "v1.0.0", "revision": testRelease("").revision, "licenses": "Apache-2.0", "source": source, "created": "2027-01-15T08:00:00Z",
	} {
		if got := labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("the label %s is %q, want %q", label, got, want)
		}
	}
	headers, contents := files(t, img)
	if contents["usr/bin/touchstone"] != "touchstone of arm64" || headers["usr/bin/touchstone"].Mode != 0o755 {
		t.Errorf("the program is %q, %v", contents["usr/bin/touchstone"], headers["usr/bin/touchstone"])
	}
	if contents["usr/share/doc/touchstone/THIRD-PARTY-LICENSES"] != "THIRD-PARTY-LICENSES of arm64" {
		t.Error("the image has no licences")
	}
	if data := headers["data"]; data.Uid != user || data.Gid != user {
		t.Errorf("/data belongs to user %d and group %d", data.Uid, data.Gid)
	}
	for name, header := range headers {
		if parent := filepath.Dir(name); parent != "." && headers[parent].Typeflag != tar.TypeDir {
			t.Errorf("%s has no folder before it", name)
		}
		if header.Mode&0o022 != 0 && name != "tmp" {
			t.Errorf("%s has the mode %o", name, header.Mode)
		}
	}
}

// A copy of the program must carry the licences.
func TestImageNeedsEveryDocument(t *testing.T) {
	for _, file := range []string{"touchstone", "LICENSE", "THIRD-PARTY-LICENSES", "touchstone.spdx.json"} {
		dir := programs(t)
		must.Do(t, os.Remove(filepath.Join(dir, "arm64", file)))
		if err := testRelease("v1").build(t.Context(), io.Discard, dir, filepath.Join(t.TempDir(), "oci.tar")); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("without %s: %v", file, err)
		}
	}
	if err := testRelease("v1").build(t.Context(), io.Discard, t.TempDir(), filepath.Join(t.TempDir(), "oci.tar")); err == nil {
		t.Error("an image without an architecture was built")
	}
	if err := testRelease("no tag").build(t.Context(), io.Discard, programs(t), filepath.Join(t.TempDir(), "oci.tar")); err == nil || !strings.Contains(err.Error(), "no tag") {
		t.Errorf("a version that cannot be a tag: %v", err)
	}
}

// A pushed image has the digest that the build printed, for both architectures. A second push changes nothing, and no push changes a published version.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/someone/touchstone"
	dir := programs(t)
	release, digest := unpacked(t, "v1.0.0", dir)
	for range 2 {
		var out bytes.Buffer
		must.Do(t, push(t.Context(), &out, release, repository))
		if got, want := out.String(), repository+":v1.0.0@"+digest+"\n"; got != want {
			t.Errorf("pushed %q, want %q", got, want)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "amd64/touchstone"), []byte("another program"), 0o600))
	forgery, _ := unpacked(t, "v1.0.0", dir)
	if err := push(t.Context(), io.Discard, forgery, repository); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("a published version was replaced: %v", err)
	}
	tag, err := name.NewTag(repository + ":v1.0.0")
	must.Do(t, err)
	index, err := remote.Index(tag, remote.WithContext(t.Context()))
	must.Do(t, err)
	if got, err := index.Digest(); err != nil || got.String() != digest {
		t.Errorf("the registry has %v, want %s (%v)", got, digest, err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := remote.Image(tag, remote.WithContext(t.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		must.Do(t, err)
		if _, contents := files(t, img); contents["usr/bin/touchstone"] != "touchstone of "+arch {
			t.Errorf("the image for %s has the program %q", arch, contents["usr/bin/touchstone"])
		}
	}
}

// A folder that is no release, a repository that is no name, and a registry that is not there are errors, and no image is published.
func TestPushRefuses(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/someone/touchstone"
	release, _ := unpacked(t, "v1.0.0", programs(t))
	two := t.TempDir()
	index, err := testRelease("v1").index(programs(t))
	must.Do(t, err)
	_, err = layout.Write(two, index)
	must.Do(t, err)
	outage := httptest.NewServer(nil)
	outage.Close()
	for _, tt := range []struct{ dir, repository, reason string }{
		{t.TempDir(), repository, "index.json"},
		{two, repository, "has 2 entries"},
		{release, "Not A Name", "Not A Name"},
		{release, strings.TrimPrefix(outage.URL, "http://") + "/touchstone", "refused"},
	} {
		if err := push(t.Context(), io.Discard, tt.dir, tt.repository); err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s to %s: %v, want %q", tt.dir, tt.repository, err, tt.reason)
		}
	}
}
