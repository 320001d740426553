package cgroup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOwnThreadFiles(t *testing.T) {
	for fixture, want := range map[string][]string{
		"v2-systemd": nil, "v2-with-net-cls": nil, "group-v2": nil, "group-arm64": nil,
		"hybrid-systemd": {"pids/user.slice/user-0.slice/session-1.scope/tasks"},
		"hybrid-split":   {"pids/tasks", "freezer/tasks", "memory/tasks", "cpuacct/tasks", "cpu/tasks"},
		"group-hybrid":   {"pids/tasks", "freezer/tasks", "memory/session/tasks", "cpuacct/tasks", "cpu/tasks"},
		"v1-comounted":   {"memory/tasks", "cpu,cpuacct/tasks"},
		"group-v1":       {"pids/tasks", "freezer/tasks", "cpu,cpuacct/tasks"},
	} {
		t.Run(fixture, func(t *testing.T) {
			root := unpack(t, fixture)
			h, err := Detect(root)
			if err != nil {
				t.Fatal(err)
			}
			files, err := h.OwnThreadFiles()
			if err != nil {
				t.Fatal(err)
			}
			for i, file := range files {
				files[i] = strings.TrimPrefix(file, root+"/sys/fs/cgroup/")
			}
			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("tasks files (-want +got):\n%s", diff)
			}
		})
	}
}
