package cgroup

import (
	"path/filepath"
	"strings"
	"testing"
)

// The limits are those of the process's own groups, on v1 and in the unified tree. Its parents' limits do not count.
func TestLimitsOf(t *testing.T) {
	const unlimited = "9223372036854771712"
	for _, tt := range []struct {
		name   string
		v2     bool
		groups string
		files  map[string]string // of the process's group
		want   Limits
		err    string
	}{
		{"v2", true, "0::/x/c\n", map[string]string{"cpu.max": "50000 100000", "memory.max": "67108864", "pids.max": "32"}, Limits{CPU: 0.5, Memory: 64 << 20, PIDs: 32}, ""},
		{"v2 without limits", true, "0::/x/c\n", map[string]string{"cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"}, Limits{}, ""},
		{"v2 without controllers", true, "0::/x/c\n", nil, Limits{}, ""},
		{"v1", false, "4:cpu,memory,pids:/x/c\n0::/\n", map[string]string{"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000", "memory.limit_in_bytes": "1048576"}, Limits{CPU: 1.5, Memory: 1 << 20}, ""},
		{"v1 without limits", false, "4:cpu,memory,pids:/x/c\n", map[string]string{"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "memory.limit_in_bytes": unlimited, "pids.max": "max"}, Limits{}, ""},
		{"another period", true, "0::/x/c\n", map[string]string{"cpu.max": "5000 10000"}, Limits{CPU: 0.5}, ""},
		{"no group", false, "4:freezer:/x/c\n", map[string]string{"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"}, Limits{}, ""},
		{"garbage", true, "0::/x/c\n", map[string]string{"cpu.max": "half of it"}, Limits{}, "instead of a quota and a period"},
		{"no number", true, "0::/x/c\n", map[string]string{"cpu.max": "half 100000"}, Limits{}, "which is no limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			m := Mount{Dir: filepath.Join(root, "mount"), root: "/", V2: tt.v2, Controllers: []string{"cpu", "memory", "pids"}}
			files := map[string]string{"proc/7/cgroup": tt.groups, "mount/x/cpu.max": "1000 100000", "mount/x/cpu.cfs_quota_us": "1000"}
			for name, value := range tt.files {
				files["mount/x/c/"+name] = value + "\n"
			}
			for name, value := range files {
				writeFixture(t, filepath.Join(root, name), value)
			}
			h := &Hierarchy{Mounts: []Mount{m}, own: filepath.Join(root, "proc/self/cgroup")}
			got, err := h.LimitsOf(7)
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || tt.err == "" && err != nil || got != tt.want {
				t.Errorf("LimitsOf = %+v, %v; want %+v and the error %q", got, err, tt.want, tt.err)
			}
			if _, isGroup := h.Controller("cpu"); isGroup && strings.Contains(tt.groups, "/x/c") && tt.name != "no group" {
				of, groupErr := (&Group{h: h, path: "/x/c"}).Limits()
				if of != got || (groupErr == nil) != (err == nil) {
					t.Errorf("Limits of the group = %+v, %v; want the same as of the process", of, groupErr)
				}
			}
			if _, err := h.LimitsOf(8); err == nil {
				t.Error("LimitsOf accepts a process that does not exist")
			}
		})
	}
}
