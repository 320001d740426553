package setup

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "write the embedded source of the shim anew")

// TestShimIsCurrent: the embedded source of gVisor's shim is the module of the repository, which tools can read and lint. Its version of gVisor
// is the version of runsc, so that the two fit together.
func TestShimIsCurrent(t *testing.T) {
	const source = "../../scripts/tools/runsc-shim"
	dir := filepath.Join(t.TempDir(), "shim")
	must.Do(t, writeShim(dir))
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		want, err := os.ReadFile(filepath.Join(source, name))
		must.Do(t, err)
		if *update {
			must.Do(t, os.WriteFile(filepath.Join("shim", name+".txt"), want, 0o644))
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		must.Do(t, err)
		if string(text) != string(want) {
			t.Errorf("shim/%s.txt differs from %s/%s; make gen renews it", name, source, name)
		}
	}
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	must.Do(t, err)
	found := regexp.MustCompile(`(?m)^gvisor\.dev/gvisor (\S+) (h1:\S+)$`).FindStringSubmatch(string(sums))
	for _, r := range Lock() {
		if r.Name == "runsc" && (r.Build.Digest != found[2] || r.Build.Source != "gvisor.dev/gvisor@"+found[1] || !strings.Contains(found[1], "-"+r.Version)) {
			t.Errorf("the lock has %s with %s, and the shim %s with %s", r.Build.Source, r.Build.Digest, found[1], found[2])
		}
	}
}

// TestLock: each entry is complete.
func TestLock(t *testing.T) {
	for _, r := range Lock() {
		switch {
		case r.Name == "" || r.Version == "" || r.Licence == "" || len(r.Programs) == 0 || r.Bytes == 0:
			t.Errorf("%+v is incomplete", r)
		case r.number(r.Version) != r.Version:
			t.Errorf("the number of %s's version %s is %q", r.Name, r.Version, r.number(r.Version))
		case !r.isRecent(r.Version):
			t.Errorf("%s@%s is older than %s", r.Name, r.Version, r.Least)
		case r.Build == nil && r.Releases == nil && r.Manual == "":
			t.Errorf("%s has no source", r.Name)
		}
		for arch, release := range r.Releases {
			if machines[arch] == 0 || !strings.HasPrefix(release.URL, "https://") || len(release.SHA256) != 64 || release.Size == 0 {
				t.Errorf("%s for %s: %+v is incomplete", r.Name, arch, release)
			}
		}
		if b := r.Build; b != nil && (b.Minutes == 0 || b.Space == 0 || b.Source == "" || b.Digest == "" || b.Run == nil) {
			t.Errorf("the build of %s is incomplete", r.Name)
		}
	}
}

// TestVersions: the versions in the words of the programs are understood.
func TestVersions(t *testing.T) {
	recipes := map[string]Recipe{}
	for _, r := range Lock() {
		if _, ok := recipes[r.Name]; !ok {
			recipes[r.Name] = r
		}
	}
	for _, c := range []struct {
		name, text, want string
		isRecent         bool
	}{
		{"runc", "runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev\n", "1.1.5", true},
		{"runc", "runc version 1.0.3\n", "1.0.3", false},
		{"crun", "crun version 1.8.1\ncommit: f8a096be060b22ccd3d5f3ebe44108517fbf6c30\n", "1.8.1", false},
		{"crun", "crun version 1.21\n", "1.21", true},
		{"runsc", "runsc version 0.0~20221219.0\nspec: 1.0.2\n", "20221219", false},
		{"runsc", "runsc version release-20260714.0\nspec: 1.1.0-rc.1\n", "20260714", true},
		{"runsc", "runsc version v0.0.0-20260905035102-160fafc42237\n", "20260905", true},
		{"containerd", "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1\n", "1.6.20", true},
		{"containerd", "containerd github.com/containerd/containerd/v2 v2.4.2 \n", "2.4.2", true},
		{"crio", "crio version 1.34.0\nVersion:        1.34.0\n", "1.34.0", true},
		{"youki", "youki version 0.7.0\n", "0.7.0", true},
		{"kata", `Kata Containers containerd shim (Golang): id: "io.containerd.kata.v2", version: 3.32.0, commit: x`, "3.32.0", true},
	} {
		r := recipes[c.name]
		if number := r.number(c.text); number != c.want || r.isRecent(number) != c.isRecent {
			t.Errorf("%q has the version %q (recent: %t), want %q (%t)", c.text, number, r.isRecent(number), c.want, c.isRecent)
		}
	}
}
