package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// The real image is shown, saved, loaded into another cache, pushed, verified and removed.
func TestRealImage(t *testing.T) {
	_, img := enginetest.Workload(t)
	digest, err := img.Digest()
	must.Do(t, err)
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		got := cli.New(cli.Environment{Stdout: &out, Stderr: &errs}).Run(t.Context(), append([]string{"image"}, args...))
		if got != want {
			t.Fatalf("image %v: exit code %d, want %d: %s", args, got, want, errs.String())
		}
		return out.String()
	}

	var description struct {
		Name, Digest   string
		Size, Unpacked int64
		Packages       []struct{ Name, Version, Copyright string }
	}
	must.Do(t, json.Unmarshal([]byte(run(0, "show", "-o", "json")), &description))
	if description.Digest != digest.String() || description.Size < 10<<20 || description.Unpacked < description.Size || len(description.Packages) < 30 {
		t.Errorf("shown: %+v", description)
	}
	if table := run(0, "show"); !strings.Contains(table, digest.String()) || !strings.Contains(table, "fio") {
		t.Errorf("as a table: %s", table)
	}
	if bill := run(0, "sbom"); !json.Valid([]byte(bill)) || !strings.Contains(bill, `"SPDX-2.3"`) {
		t.Errorf("the bill of materials begins with %.100s", bill)
	}
	if name, _, _ := strings.Cut(run(0, "build"), " "); name != description.Name {
		t.Errorf("build gives %s, want %s", name, description.Name)
	}

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/bench/workload:test"
	if output := run(0, "push", ref); !strings.Contains(output, digest.String()) {
		t.Errorf("pushed: %s", output)
	}
	tag, err := name.ParseReference(ref)
	must.Do(t, err)
	if head, err := remote.Head(tag); err != nil || head.Digest != digest {
		t.Errorf("in the registry: %+v, %v", head, err)
	}

	ours, err := image.OpenCache("")
	must.Do(t, err)
	list := "packages-" + runtime.GOARCH + ".lock"
	_, err = os.Stat(filepath.Join(ours.Dir(), list))
	isPinned := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isPinned {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "workload.tar")
	run(0, "save", file)
	folder := filepath.Join(t.TempDir(), "cache")
	t.Setenv(image.CacheVariable, folder)
	run(1, "show")
	if !isPinned { // the mirror has no longer the packages of the embedded list, and the binary does not know the image
		run(1, "load", file)
		run(0, "load", file, "--name", "mine")
		return
	}
	if output := run(0, "load", file); output != description.Name+" "+digest.String()+"\n" {
		t.Errorf("loaded: %s", output)
	}
	list = filepath.Join(folder, list)
	if output := run(0, "build"); !strings.Contains(output, digest.String()) {
		t.Errorf("build does not use the loaded image: %s", output)
	}
	must.Do(t, os.WriteFile(list, []byte("of one's own"), 0o600))
	if output := run(0, "build", "--pinned"); !strings.Contains(output, digest.String()) {
		t.Errorf("with the embedded list: %s", output)
	}
	if _, err := os.Stat(list); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the other list is still in use: %v", err)
	}
	run(1, "load", file, "--name", description.Name)
	run(0, "load", file, "--name", "mine")
	run(0, "prune")
	if list := run(0, "list"); !strings.Contains(list, description.Name) || !strings.Contains(list, "mine") {
		t.Errorf("after prune the list is %s", list)
	}
	if verified := run(0, "verify"); strings.Count(verified, "is intact") != 2 {
		t.Errorf("verified: %s", verified)
	}
	run(0, "remove", description.Name, "mine")
	if left, err := filepath.Glob(filepath.Join(folder, "blobs", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
