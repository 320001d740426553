package cgroup

import (
	"path/filepath"
	"testing"
)

// A process is held only if the groups that the kernel names are mounted here and list it.
func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		v2     bool
		root   string // of the mount
		groups string
		files  map[string]string
		want   bool
	}{
		{"v2", true, "/", "0::/docker/c\n", map[string]string{"docker/c": "7\n8\n"}, true},
		{"a group of systemd", true, "/", "0::/system.slice/docker-c.scope\n", map[string]string{"system.slice/docker-c.scope": "7\n"}, true},
		{"v1", false, "/", "4:cpu,memory,pids:/docker/c\n1:name=systemd:/other\n", map[string]string{"docker/c": "7\n"}, true},
		{"outside of the namespace", true, "/", "0::/../c\n", map[string]string{"c": "7\n"}, false},
		{"above the namespace", true, "/", "0::/..\n", map[string]string{"": "7\n"}, false},
		{"outside of the namespace on v1", false, "/", "4:cpu,memory,pids:/../../c\n", map[string]string{"c": "7\n"}, false},
		{"a part of the tree", true, "/docker/own", "0::/docker/c\n", map[string]string{"c": "7\n"}, false},
		{"below the part", true, "/docker", "0::/docker/c\n", map[string]string{"c": "7\n"}, true},
		{"no such group here", true, "/", "0::/docker/c\n", nil, false},
		{"a group of others", true, "/", "0::/docker/c\n", map[string]string{"docker/c": "0\n70\n"}, false},
		{"no controller in use", false, "/", "4:net_cls:/docker/c\n", map[string]string{"docker/c": "7\n"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			writeFixture(t, filepath.Join(root, "proc/7/cgroup"), tt.groups)
			for group, pids := range tt.files {
				writeFixture(t, filepath.Join(root, "mount", group, "cgroup.procs"), pids)
			}
			m := Mount{Dir: filepath.Join(root, "mount"), root: tt.root, V2: tt.v2, Controllers: []string{"cpu", "memory", "pids"}}
			h := &Hierarchy{Mounts: []Mount{m}, own: filepath.Join(root, "proc/self/cgroup")}
			if got, err := h.Holds(7); err != nil || got != tt.want {
				t.Errorf("Holds = %v, %v; want %v", got, err, tt.want)
			}
			if _, err := h.Holds(8); err == nil {
				t.Error("Holds accepts a process that does not exist")
			}
		})
	}
}
