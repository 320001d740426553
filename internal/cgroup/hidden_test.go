package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// A mount that another one covers is no hierarchy: build sandboxes mount an empty /sys over it.
func TestDetectHiddenMounts(t *testing.T) {
	const v1 = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	for name, c := range map[string]struct {
		mounts string
		files  []string
		want   Mode
	}{
		"covered v2":           {"30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", nil, None},
		"v2":                   {"30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", []string{"sys/fs/cgroup/cgroup.controllers"}, V2},
		"covered v2 beside v1": {v1 + "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", nil, V1},
		"nothing":              {"", nil, None},
	} {
		root := t.TempDir()
		for file, text := range map[string]string{"proc/self/mountinfo": c.mounts, "proc/self/cgroup": "0::/\n"} {
			writeFixture(t, filepath.Join(root, file), text)
		}
		for _, file := range c.files {
			writeFixture(t, filepath.Join(root, file), "cpu memory\n")
		}
		h, err := Detect(root)
		if err != nil || h.Mode != c.want {
			t.Errorf("%s: Detect() = %+v, %v; want mode %s", name, h, err, c.want)
		}
	}
	covered := Mount{Dir: "/nonexistent"}
	if !covered.hidden("/") {
		t.Error("a v1 mount without a directory is a hierarchy")
	}
}

func writeFixture(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
