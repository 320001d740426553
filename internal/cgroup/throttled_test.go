package cgroup

import (
	"errors"
	"path/filepath"
	"testing"
)

// Throttled is the sum over the group and all groups below it.
func TestThrottled(t *testing.T) {
	const none = "usage_usec 4306656\nuser_usec 1\n"
	for _, tt := range []struct {
		what        string
		controllers []string
		stat        map[string]string // cpu.stat by group
		want        int64
		unsupported bool
		fails       bool
	}{
		{what: "one", controllers: []string{"cpu"}, stat: map[string]string{"": "nr_periods 9\nnr_throttled 7\nthrottled_time 63\n"}, want: 7},
		{what: "below", controllers: []string{"cpu"}, stat: map[string]string{"": none, "a": "nr_throttled 7\n", "a/b": "nr_throttled 0\n", "c": "nr_throttled 2\n"}, want: 9},
		{what: "one is going", controllers: []string{"cpu"}, stat: map[string]string{"": "nr_throttled 7\n", "a/b": "nr_throttled 2\n"}, want: 9},
		{what: "a kernel without limits", controllers: []string{"cpu"}, stat: map[string]string{"": none}, unsupported: true},
		{what: "no controller", controllers: []string{"memory"}, stat: map[string]string{"": "nr_throttled 7\n"}, unsupported: true},
		{what: "no number", controllers: []string{"cpu"}, stat: map[string]string{"": "nr_throttled -7\n"}, fails: true},
	} {
		dir := t.TempDir()
		for group, text := range tt.stat {
			writeFixture(t, filepath.Join(dir, "touchstone-x", group, "cpu.stat"), text)
		}
		g := &Group{h: &Hierarchy{Mounts: []Mount{{Dir: dir, V2: true, Controllers: tt.controllers}}}, path: "/touchstone-x"}
		n, err := g.Throttled()
		if n != tt.want || errors.Is(err, errors.ErrUnsupported) != tt.unsupported || (err != nil) != (tt.unsupported || tt.fails) {
			t.Errorf("%s: %d, %v; want %d", tt.what, n, err, tt.want)
		}
	}
}
