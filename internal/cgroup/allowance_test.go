package cgroup

import (
	"path/filepath"
	"testing"
)

func TestAllowance(t *testing.T) {
	for _, tt := range []struct {
		name  string
		v2    bool
		base  string
		files map[string]string
		want  Allowance
		ok    bool
		fails bool
	}{
		{
			"the root of a container", true, "/",
			map[string]string{"memory.max": "1000\n", "memory.current": "400\n", "memory.stat": "anon 300\ninactive_file 70\nactive_file 30\n"},
			Allowance{700, 1000},
			true, false,
		},
		{
			"the lowest of a slice and its parents", true, "/user.slice/mine",
			map[string]string{
				"user.slice/memory.max": "5000\n", "user.slice/memory.current": "4900\n", "user.slice/memory.stat": "",
				"user.slice/mine/memory.max": "1000\n", "user.slice/mine/memory.current": "300\n", "user.slice/mine/memory.stat": "",
			},
			Allowance{100, 5000},
			true, false,
		},
		{"more than the limit is used", true, "/", map[string]string{"memory.max": "10\n", "memory.current": "11\n", "memory.stat": ""}, Allowance{0, 10}, true, false},
		{"max", true, "/mine", map[string]string{"mine/memory.max": "max\n"}, Allowance{}, false, false},
		{
			"v1", false, "/",
			map[string]string{
				"memory.limit_in_bytes": "4096\n", "memory.usage_in_bytes": "196\n", "memory.stat": "inactive_file 7\ntotal_inactive_file 60\ntotal_active_file 40\n",
			},
			Allowance{4000, 4096},
			true, false,
		},
		{"v1 without a limit", false, "/", map[string]string{"memory.limit_in_bytes": "9223372036854771712\n"}, Allowance{}, false, false},
		{"the root of a machine", true, "/", nil, Allowance{}, false, false},
		{"no right to make groups", true, "", map[string]string{"memory.max": "1000\n"}, Allowance{}, false, false},
		{"no number", true, "/", map[string]string{"memory.max": "much\n"}, Allowance{}, false, true},
		{"no number of pages", true, "/", map[string]string{"memory.max": "9\n", "memory.current": "1\n", "memory.stat": "active_file x\n"}, Allowance{}, false, true},
		{"no level", true, "/", map[string]string{"memory.max": "1\n"}, Allowance{}, false, true},
	} {
		dir := t.TempDir()
		for name, text := range tt.files {
			writeFixture(t, filepath.Join(dir, name), text)
		}
		h := &Hierarchy{Mounts: []Mount{{Dir: dir, V2: tt.v2, Controllers: []string{"memory", "pids"}}}, base: tt.base}
		got, ok, err := h.Memory()
		if got != tt.want || ok != tt.ok || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v, %v; want %+v, %v", tt.name, got, ok, err, tt.want, tt.ok)
		}
		if _, ok, err := h.Tasks(); ok || err != nil {
			t.Errorf("%s: a limit of tasks: %v, %v", tt.name, ok, err)
		}
	}
}
