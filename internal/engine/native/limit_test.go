package native

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// A limit without a controller in the kernel is unsupported, and not a failure.
//
// Invariant missing-controller.
func TestLimitWithoutController(t *testing.T) {
	root := t.TempDir()
	enginetest.Files(t, root, map[string]string{
		"proc/self/mountinfo":                           "33 27 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/cgroup.controllers":              "cpu pids\n",
		"sys/fs/cgroup/touchstone-x/cpu.max":            "max 100000\n",
		"sys/fs/cgroup/touchstone-x/cgroup.procs":       "",
		"sys/fs/cgroup/touchstone-x/cgroup.controllers": "cpu pids\n",
	})
	groups, err := cgroup.Detect(root)
	must.Do(t, err)
	group, err := groups.Open("/touchstone-x")
	must.Do(t, err)
	c := &container{group: group}
	if err := c.limit(engine.Resources{CPU: 0.5}); err != nil {
		t.Errorf("limit of CPU time: %v", err)
	}
	if err := c.limit(engine.Resources{Memory: 1 << 20}); !engine.Unsupported(err) || !strings.Contains(err.Error(), "controller memory") {
		t.Errorf("limit of memory: %v, want one that names the missing controller", err)
	}
}
