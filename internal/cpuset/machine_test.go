package cpuset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// machine makes a /sys with the given files below devices/system/cpu.
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
		"cpu0/topology/thread_siblings_list": "0,4\n", // 4 is offline
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
	if got := coresOf(root, online); got != "1,5 2-3" {
		t.Errorf("Cores() = %s, want 1,5 2-3", got)
	}
}

// TestMachines reads the machines of package host.
func TestMachines(t *testing.T) {
	const dir = "../host/testdata/"
	wants := map[string]struct{ online, cores string }{
		"kvm-guest": {"0", ""}, "laptop": {"0-7", "0,4"}, "raspberry-pi-4": {"0-3", ""},
		"riscv64": {"0-3", ""}, // from /proc/stat
		"rock-5b": {"0-2,4-5", ""}, "server-v2": {"0-31", ""},
		"vm-arm64": {"0-1", ""}, "vm-hybrid": {"0-1", ""}, "vm-v2": {"0-1", ""},
	}
	files, err := filepath.Glob(dir + "*.txtar")
	if err != nil || len(files) != len(wants) {
		t.Errorf("there are %q, %v; want %d", files, err, len(wants))
	}
	for name, want := range wants {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(dir + name + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			if err := txtar.Write(archive, root); err != nil {
				t.Fatal(err)
			}
			online, err := cpuset.Online(root)
			if online.String() != want.online || (err != nil) != (want.online == "") {
				t.Errorf("Online() = %s, %v; want %q", online, err, want.online)
			}
			if got := coresOf(root, online); got != want.cores {
				t.Errorf("Cores() = %s, want %s", got, want.cores)
			}
		})
	}
}

// coresOf spells the cores of a machine.
func coresOf(root string, online cpuset.Set) string {
	var cores []string
	for _, core := range cpuset.Cores(root, online) {
		cores = append(cores, core.String())
	}
	return strings.Join(cores, " ")
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
