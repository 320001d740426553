package cpuset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// machine makes a /sys with these files below devices/system/cpu.
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, "sys/devices/system/cpu", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMachine(t *testing.T) {
	root := machine(t, map[string]string{
		"online":                             "0-3,5,7\n",
		"cpu0/topology/thread_siblings_list": "0,4\n", // of which 4 is offline
		"cpu1/topology/thread_siblings_list": "1,5\n",
		"cpu2/topology/thread_siblings_list": "2-3\n",
		"cpu3/topology/thread_siblings_list": "2-3\n",
		"cpu5/topology/thread_siblings_list": "1,5\n",
		"cpu7/topology/thread_siblings_list": "?\n",
	})
	online, err := cpuset.Online(root)
	if err != nil || online.String() != "0-3,5,7" {
		t.Fatalf("Online() = %s, %v", online, err)
	}
	var cores []string
	for _, core := range cpuset.Cores(root, online) {
		cores = append(cores, core.String())
	}
	if got := strings.Join(cores, " "); got != "1,5 2-3" {
		t.Errorf("Cores() = %s, want 1,5 2-3", got)
	}
}

func TestMachineThatDoesNotTell(t *testing.T) {
	if set, err := cpuset.Online(t.TempDir()); err == nil {
		t.Errorf("Online() = %s without a file", set)
	}
	if set, err := cpuset.Online(machine(t, map[string]string{"online": "\n"})); err == nil {
		t.Errorf("Online() = %s of an empty file", set)
	}
	if cores := cpuset.Cores(t.TempDir(), cpuset.Set{0, 1}); cores != nil {
		t.Errorf("Cores() = %v without a file", cores)
	}
}

func TestThisMachine(t *testing.T) {
	online, err := cpuset.Online("/")
	if err != nil || len(online) == 0 {
		t.Errorf("Online() = %s, %v", online, err)
	}
	for _, core := range cpuset.Cores("/", online) {
		if len(core) < 2 || len(core.Without(online)) > 0 {
			t.Errorf("a core has the CPUs %s, of the machine's %s", core, online)
		}
	}
}
