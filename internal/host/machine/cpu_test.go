package machine

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
)

func TestOnlineCPUs(t *testing.T) {
	stat := &fstest.MapFile{Data: []byte("cpu  9 9\ncpu0 4 4\ncpu2 5 5\nintr 1\n")}
	for list, want := range map[string][]int{
		"0-1,4,6-7\n":  {0, 1, 4, 6, 7},
		"":             {0, 2}, // from /proc/stat
		"1-0\n":        {0, 2},
		"0-99999999\n": {0, 2},
	} {
		machine := Tree{fstest.MapFS{"proc/stat": stat, "sys/devices/system/cpu/online": {Data: []byte(list)}}}
		if got := machine.OnlineCPUs(); !slices.Equal(got, want) {
			t.Errorf("with the list %q the CPUs %v are online, want %v", list, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	const cpus = "sys/devices/system/cpu/"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"big.LITTLE", map[string]string{cpus + "online": "0-3", cpus + "cpu0/cpu_capacity": "380", cpus + "cpu1/cpu_capacity": "380", cpus + "cpu2/cpu_capacity": "1024", cpus + "cpu3/cpu_capacity": "1024"}, "0-1 2-3"},
		{"three, not in order", map[string]string{cpus + "online": "0-2", cpus + "cpu0/cpu_capacity": "1024", cpus + "cpu1/cpu_capacity": "90", cpus + "cpu2/cpu_capacity": "500"}, "1 2 0"},
		{"of one design", map[string]string{cpus + "online": "0-1", cpus + "cpu0/cpu_capacity": "1010", cpus + "cpu1/cpu_capacity": "1024"}, ""},
		{"alike", map[string]string{cpus + "online": "0-1", cpus + "cpu0/cpu_capacity": "1024", cpus + "cpu1/cpu_capacity": "1024"}, ""},
		{"the slow ones are offline", map[string]string{cpus + "online": "2-3", cpus + "cpu0/cpu_capacity": "380", cpus + "cpu2/cpu_capacity": "1024", cpus + "cpu3/cpu_capacity": "1024"}, ""},
		{"one does not tell", map[string]string{cpus + "online": "0-1", cpus + "cpu0/cpu_capacity": "380"}, ""},
		{"performance and efficiency cores", map[string]string{cpus + "online": "0-7", "sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-15"}, "4-7 0-3"},
		{"performance cores alone", map[string]string{cpus + "online": "0-3", "sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-7"}, ""},
		{"x86", map[string]string{cpus + "online": "0-1"}, ""},
		{"three kinds of Intel", map[string]string{cpus + "online": "0-7", "sys/devices/cpu_core/cpus": "0-1", "sys/devices/cpu_atom/cpus": "2-5", "sys/devices/cpu_lowpower/cpus": "6-7"}, "6-7 2-5 0-1"},
		{"compact cores of AMD, by frequency", map[string]string{cpus + "online": "0-2", cpus + "cpu0/cpufreq/cpuinfo_max_freq": "5100000", cpus + "cpu1/cpufreq/cpuinfo_max_freq": "5157000", cpus + "cpu2/cpufreq/cpuinfo_max_freq": "3300000"}, "2 0-1"},
		{"best cores of one design", map[string]string{cpus + "online": "0-1", cpus + "cpu0/cpufreq/cpuinfo_max_freq": "4500000", cpus + "cpu1/cpufreq/cpuinfo_max_freq": "4900000"}, ""},
		{"designs without speeds", map[string]string{cpus + "online": "0-2", "proc/cpuinfo": "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd03\n\nprocessor : 1\nCPU implementer : 0x41\nCPU part : 0xd03\n\nprocessor : 2\nCPU implementer : 0x41\nCPU part : 0xd09\n"}, "0-1 2"},
		{"one design without speeds", map[string]string{cpus + "online": "0-1", "proc/cpuinfo": "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n\nprocessor : 1\nCPU implementer : 0x41\nCPU part : 0xd0c\n"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			kinds, ranked := Tree{hosttest.Memory(tt.files)}.Kinds()
			for _, set := range kinds {
				got = append(got, set.String())
			}
			if want := !strings.HasPrefix(tt.name, "designs"); kinds != nil && ranked != want {
				t.Errorf("the speeds are known: %v, want %v", ranked, want)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("kinds = %q, want %q", got, tt.want)
			}
		})
	}
}

// The strings of a device tree end with a zero byte.
func TestTextOfDeviceTree(t *testing.T) {
	machine := Tree{fstest.MapFS{"proc/device-tree/model": {Data: []byte("Board v1\x00")}}}
	if got := machine.CPUModel(nil); got != "Board v1" {
		t.Errorf("model = %q", got)
	}
}
