package cgroup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

func TestLevel(t *testing.T) {
	both := []string{"memory", "pids"}
	for _, tt := range []struct {
		name        string
		v2          bool
		controllers []string
		files       map[string]string
		want        Level
		fails       bool
	}{
		{"v2", true, both, map[string]string{"memory.current": "4096\n", "pids.current": "7\n"}, Level{4096, 7}, false},
		{"v1", false, both, map[string]string{"memory.usage_in_bytes": "8192\n", "pids.current": "2\n"}, Level{8192, 2}, false},
		{"a controller that is not enabled", true, both, map[string]string{"pids.current": "2\n"}, Level{0, 2}, false},
		{"a missing controller", false, []string{"cpu"}, map[string]string{"pids.current": "2\n"}, Level{}, false},
		{"no number", true, both, map[string]string{"memory.current": "much\n"}, Level{}, true},
	} {
		dir := t.TempDir()
		tt.files["cgroup.procs"] = ""
		for file, text := range tt.files {
			writeFixture(t, filepath.Join(dir, "touchstone-x", file), text)
		}
		h := &Hierarchy{Mounts: []Mount{{Dir: dir, V2: tt.v2, Controllers: tt.controllers}}}
		got, err := (&Group{h: h, path: "/touchstone-x"}).Level()
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
		if _, err := (&Group{h: h, path: "/touchstone-y"}).Level(); len(tt.controllers) == 2 && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a missing group: %v", tt.name, err)
		}
	}
}
