package cpuset_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/thread"
)

func TestParse(t *testing.T) {
	for list, want := range map[string]struct {
		cpus []int
		text string
	}{
		"0":           {[]int{0}, "0"},
		"0-3,8":       {[]int{0, 1, 2, 3, 8}, "0-3,8"},
		"8,0-3,2,1-2": {[]int{0, 1, 2, 3, 8}, "0-3,8"},
		"8190-8191":   {[]int{8190, 8191}, "8190-8191"},
	} {
		got, err := cpuset.Parse(list)
		if err != nil || !slices.Equal(got, want.cpus) || got.String() != want.text {
			t.Errorf("Parse(%q) = %v (%s), %v; want %v (%s)", list, []int(got), got, err, want.cpus, want.text)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for list, want := range map[string]string{
		"":          `"" is not a CPU or a range of CPUs`,
		"0,":        `"" is not a CPU or a range of CPUs`,
		"-1":        `"-1" is not a CPU`,
		"01":        `"01" is not a CPU`,
		"0 1":       `"0 1" is not a CPU`,
		"0-":        `"0-" is not a CPU`,
		"0-31:2/16": `"0-31:2/16" is not a CPU`,
		"3-1":       "the range 3-1 ends before it begins",
		"8192":      "no kernel has a CPU 8192",
		"0-99999":   `"0-99999" is not a CPU`,
		"\x1b[2J":   `"\x1b[2J" is not a CPU`,
		"1-\u0661":  `is not a CPU`,
	} {
		set, err := cpuset.Parse(list)
		if err == nil || !strings.Contains(err.Error(), want) || set != nil {
			t.Errorf("Parse(%q) = %v, %v; want %s", list, set, err, want)
		}
	}
}

func TestOperations(t *testing.T) {
	a, b := cpuset.Set{0, 1, 2, 5}, cpuset.Set{2, 3, 5}
	if got := a.And(b).String(); got != "2,5" {
		t.Errorf("And gives %s, want 2,5", got)
	}
	if got := a.Without(b).String(); got != "0-1" {
		t.Errorf("Without gives %s, want 0-1", got)
	}
	if got := a.Without(a).String(); got != "" {
		t.Errorf("nothing is spelled %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, list := range []string{"0", "0-3,8", "3-1", "0-8191,0-8191", "", ",", "1-", "٣"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		set, err := cpuset.Parse(list)
		if err != nil {
			return
		}
		echo, err := cpuset.Parse(set.String())
		if err != nil || !slices.Equal(set, echo) || !slices.IsSorted(set) || len(set) == 0 {
			t.Fatalf("%q is %v, spelled %q, read %v, %v", list, []int(set), set, []int(echo), err)
		}
	})
}

// machine makes a /sys with the given files below devices/system/cpu.
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, "sys/devices/system/cpu", name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
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
			must.Do(t, err)
			root := t.TempDir()
			must.Do(t, txtar.Write(archive, root))
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

// Invariant usable-cpus: No part of a run leaves the CPUs that the process may use.
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
//
// Invariant usable-cpus.
func TestReadAccess(t *testing.T) {
	start, err := cpuset.ReadAccess()
	if err != nil || len(start.Mask) == 0 {
		t.Fatalf("ReadAccess() = %+v, %v", start, err)
	}
	done := make(chan struct{})
	thread.Go(func() {
		defer close(done)
		var one unix.CPUSet
		one.Set(start.Mask[0])
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		end, err := cpuset.ReadAccess()
		if err != nil || end.Allowed.String() != start.Allowed.String() {
			t.Errorf("the cpuset is %s, %v; want %s", end.Allowed, err, start.Allowed)
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
		must.Do(t, os.Mkdir(filepath.Join(root, "proc"), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(root, "proc/stat"), []byte(text), 0o600))
		got, err := cpuset.Online(root)
		if got.String() != want || (err != nil) != (want == "") {
			t.Errorf("%q: Online() = %s, %v; want %q", text, got, err, want)
		}
	}
}
