package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEnable(t *testing.T) {
	const kind = "domain\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"group without processes", map[string]string{"cgroup.type": kind, "cgroup.procs": ""}, true},
		{"group with processes", map[string]string{"cgroup.type": kind, "cgroup.procs": "1200\n"}, false},
		{"root of the tree", map[string]string{"cgroup.procs": "1\n2\n"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.files["cgroup.controllers"] = "cpuset cpu io memory pids\n"
			c.files["cgroup.subtree_control"] = ""
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			enable(dir)
			written, err := words(dir, "cgroup.subtree_control")
			if err != nil {
				t.Fatal(err)
			}
			if got := len(written) > 0; got != c.want {
				t.Errorf("enabled is %v (%q), want %v", got, written, c.want)
			}
		})
	}
}
