package cpuset_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/thread"
)

func TestUsable(t *testing.T) {
	online := cpuset.Set{0, 1, 2, 3, 4, 5, 6, 7}
	for name, c := range map[string]struct {
		access cpuset.Access
		want   string
	}{
		"nothing is known":                    {cpuset.Access{}, "0-7"},
		"all":                                 {cpuset.Access{Allowed: online, Mask: online}, "0-7"},
		"a cpuset":                            {cpuset.Access{Allowed: cpuset.Set{0, 1}, Mask: cpuset.Set{0, 1}}, "0-1"},
		"a cpuset with CPUs that are offline": {cpuset.Access{Allowed: cpuset.Set{6, 7, 8, 9}}, "6-7"},
		"taskset":                             {cpuset.Access{Allowed: online, Mask: cpuset.Set{2}}, "2"},
		"a sandbox that hides the cpuset":     {cpuset.Access{Mask: cpuset.Set{2, 3}}, "2-3"},
		"taskset in a cpuset":                 {cpuset.Access{Allowed: cpuset.Set{2, 3}, Mask: cpuset.Set{3}}, "3"},
		"isolcpus, which no mask has":         {cpuset.Access{Allowed: online, Mask: cpuset.Set{0, 1, 2, 3}, Isolated: cpuset.Set{4, 5, 6, 7}}, "0-7"},
		"isolcpus outside of the cpuset":      {cpuset.Access{Allowed: cpuset.Set{0, 1}, Mask: cpuset.Set{0, 1}, Isolated: cpuset.Set{6, 7}}, "0-1"},
		"isolcpus that taskset asks for":      {cpuset.Access{Allowed: online, Mask: cpuset.Set{6}, Isolated: cpuset.Set{6, 7}}, "6-7"},
	} {
		if got := c.access.Usable(online).String(); got != c.want {
			t.Errorf("%s: the usable CPUs are %s, want %s", name, got, c.want)
		}
	}
}

// The mask of this process does not change, and a thread with a narrower one does not hide the cpuset.
func TestReadAccess(t *testing.T) {
	before, err := cpuset.ReadAccess()
	if err != nil || len(before.Mask) == 0 {
		t.Fatalf("ReadAccess() = %+v, %v", before, err)
	}
	done := make(chan struct{})
	thread.Go(func() {
		defer close(done)
		var one unix.CPUSet
		one.Set(before.Mask[0])
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		after, err := cpuset.ReadAccess()
		if err != nil || after.Allowed.String() != before.Allowed.String() {
			t.Errorf("the cpuset is %s, %v; want %s", after.Allowed, err, before.Allowed)
		}
	})
	<-done
}

// Without /sys the CPUs come from /proc/stat.
func TestOnlineWithoutSys(t *testing.T) {
	for text, want := range map[string]string{
		"cpu  9 9\ncpu0 4 4\ncpu1 5 5\nintr 1\n": "0-1",
		"cpu  9 9\ncpu0 4 4\ncpu3 5 5\n":         "0,3",
		"cpu  9 9\n":                             "",
		"":                                       "",
		"cpufreq 1\ncpu99999 1\n":                "",
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "proc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc/stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := cpuset.Online(root)
		if got.String() != want || (err != nil) != (want == "") {
			t.Errorf("%q: Online() = %s, %v; want %q", text, got, err, want)
		}
	}
}
