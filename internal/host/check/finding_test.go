package check

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/host/tune"
	"github.com/touchstone-bench/touchstone/internal/must"
)

func noPause(context.Context) error { return nil }

// inspect returns the finding of a name on a machine with these files.
func inspect(t *testing.T, name string, files hosttest.Files) Finding {
	t.Helper()
	root := t.TempDir()
	hosttest.Write(t, root, files)
	findings, err := Inspect(t.Context(), root, noPause)
	must.Do(t, err)
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no finding has the name %s", name)
	}
	return findings[i]
}

const (
	guest    = "flags\t: fpu hypervisor"
	idleStat = "cpu  100 0 100 9800 0 0 0 0 0 0"
)

func TestFindings(t *testing.T) {
	empty := hosttest.Files{}
	meminfo := func(lines ...string) hosttest.Files { return hosttest.Files{"proc/meminfo": strings.Join(lines, "\n")} }
	for _, tt := range []struct {
		name  string
		files hosttest.Files
		want  Rating
		now   string // a part of Now
	}{
		{"governor", empty, Unknown, "no CPU frequency driver"},
		{"governor", hosttest.Files{hosttest.Governor: "performance"}, Good, "performance"},
		{"governor", hosttest.Files{hosttest.Governor: "performance", hosttest.CPUs + "cpufreq/policy1/scaling_governor": "powersave"}, Poor, "performance,powersave"},
		{"governor", hosttest.Files{hosttest.Governor + "/": ""}, Unreadable, "is a directory"},
		{"governor", hosttest.Files{hosttest.CPUs + "cpufreq/policy0/": ""}, Unknown, "no governor"},

		{"turbo", empty, Unknown, "no switch"},
		{"turbo", hosttest.Files{machine.NoTurbo: "1"}, Good, "off"},
		{"turbo", hosttest.Files{machine.NoTurbo: "0"}, Poor, "on"},
		{"turbo", hosttest.Files{machine.Boost: "1"}, Poor, "on"},
		{"turbo", hosttest.Files{machine.Boost + "/": ""}, Unreadable, "boost"},

		{"smt", empty, Unknown, "does not report"},
		{"smt", hosttest.Files{hosttest.CPUs + "smt/active": "0", machine.SMT: "notsupported"}, Good, "notsupported"},
		{"smt", hosttest.Files{hosttest.CPUs + "smt/active": "0"}, Good, "off"},
		{"smt", hosttest.Files{hosttest.CPUs + "smt/active": "1", machine.SMT: "on"}, Poor, "on"},
		{"smt", hosttest.Files{hosttest.CPUs + "smt/active/": ""}, Unreadable, "smt/active"},

		{"cpu-kinds", empty, Good, "alike"},
		{"cpu-kinds", hosttest.Files{hosttest.CPUs + "online": "0-1", hosttest.CPUs + "cpu0/cpu_capacity": "380", hosttest.CPUs + "cpu1/cpu_capacity": "1024"}, Poor, "2 kinds"},

		{"thermal", empty, Unknown, "no temperature"},
		{"thermal", zone("45000", "passive", "95000"), Good, "45 °C on cpu-thermal, 50 K below"},
		{"thermal", zone("88000", "passive", "95000"), Poor, "7 K below"},
		{"thermal", zone("88000", "active", "95000"), Unknown, "no temperature"}, // a fan, which slows nothing
		{"thermal", zone("88000", "passive", "-274000"), Unknown, "no temperature"},
		{"thermal", hosttest.Files{"sys/class/hwmon/hwmon2/name": "coretemp", "sys/class/hwmon/hwmon2/temp1_input": "60000", "sys/class/hwmon/hwmon2/temp1_crit": "100000"}, Good, "40 K below"},
		{"thermal", hosttest.Files{"sys/class/hwmon/hwmon2/name": "nvme", "sys/class/hwmon/hwmon2/temp1_input": "80000", "sys/class/hwmon/hwmon2/temp1_crit": "85000"}, Unknown, "no temperature"},
		{"thermal", hosttest.Files{hosttest.CPUs + "online": "0", hosttest.CPUs + "cpu0/thermal_throttle/core_throttle_count": "0"}, Good, "throttled 0 times"},
		{"thermal", hosttest.Files{hosttest.CPUs + "online": "0", hosttest.CPUs + "cpu0/thermal_throttle/core_throttle_count": "3"}, Poor, "throttled 3 times"},

		{"virtualisation", empty, Good, "no hypervisor"},
		{"virtualisation", hosttest.Files{"proc/cpuinfo": "flags\t: fpu"}, Good, "no hypervisor"},
		{"virtualisation", hosttest.Files{"proc/cpuinfo": guest}, Poor, "guest of a hypervisor that is not identified"},
		{"virtualisation", hosttest.Files{"proc/cpuinfo": guest, "sys/module/kvm_pvm/": ""}, Poor, "module kvm_pvm"},
		{"virtualisation", hosttest.Files{"proc/cpuinfo": guest + " svm"}, Poor, "it can run nested virtual machines"},
		{"virtualisation", hosttest.Files{"proc/cpuinfo": "model name\t: QEMU TCG CPU\n" + guest}, Poor, "qemu"},

		{"steal", empty, Unknown, "no times"},
		{"steal", hosttest.Files{"proc/stat": idleStat}, Good, "no hypervisor"},
		{"steal", hosttest.Files{"proc/stat": idleStat, "proc/cpuinfo": guest}, Good, "0.0 %"},
		{"steal", hosttest.Files{"proc/stat": "cpu  100 0 100 9600 0 0 0 200 0 0", "proc/cpuinfo": guest}, Poor, "2.0 % of the CPU time since boot"},

		{"load", empty, Unknown, "does not exist"},
		{"load", hosttest.Files{"proc/loadavg": "0.10 0.2 0.3 1/2 3"}, Good, "0.10"},
		{"load", hosttest.Files{"proc/loadavg": "2.00 0.2 0.3 1/2 3"}, Poor, "2.00"},
		{"load", hosttest.Files{"proc/loadavg": "x"}, Unknown, "no number"},
		{"load", hosttest.Files{"proc/loadavg/": ""}, Unreadable, "loadavg"},

		{"irqbalance", empty, Unknown, "does not show the processes"},
		{"irqbalance", hosttest.Files{"proc/1/comm": "init"}, Good, "not running"},
		{"irqbalance", hosttest.Files{"proc/1/comm": "init", "proc/200/comm": "irqbalance", "proc/200/stat": hosttest.Irqbalance}, Poor, "running"},
		{"irqbalance", hosttest.Files{"proc/1/comm": "init", "proc/200/comm": "irqbalance", "proc/200/stat": strings.Replace(hosttest.Irqbalance, " S ", " T ", 1)}, Good, "stopped"},
		{"irqbalance", hosttest.Files{"proc/1/comm": "init", "proc/200/comm": "irqbalance", "proc/200/stat": strings.Replace(hosttest.Irqbalance, " S ", " Z ", 1)}, Good, "not running"},

		{"swap", empty, Unknown, "no SwapTotal"},
		{"swap", meminfo("SwapTotal: 0 kB", "SwapFree: 0 kB"), Good, "none"},
		{"swap", meminfo("SwapTotal: 1000000 kB", "SwapFree: 100000 kB"), Poor, "in use"},
		{"swap", hosttest.Files{"proc/meminfo": "SwapTotal: 1000 kB\nSwapFree: 1000 kB", machine.Swappiness: "60"}, Poor, "not in use, swappiness 60"},
		{"swap", hosttest.Files{"proc/meminfo": "SwapTotal: 1000 kB\nSwapFree: 1000 kB", machine.Swappiness: "0"}, Good, "swappiness 0"},
		{"swap", meminfo("SwapTotal: 1000 kB", "SwapFree: 1000 kB"), Unknown, "no swappiness"},
		{"swap", hosttest.Files{"proc/meminfo": "SwapTotal: 1000 kB\nSwapFree: 1000 kB", machine.Swappiness + "/": ""}, Unreadable, "swappiness"},

		{"memory", empty, Unknown, "no MemAvailable"},
		{"memory", meminfo("MemTotal: 8000000 kB", "MemAvailable: 4000000 kB"), Good, "3906 MiB available"},
		{"memory", meminfo("MemTotal: 8000000 kB", "MemAvailable: 400000 kB"), Poor, "390 MiB available"},

		{"thp", empty, Unknown, "no transparent huge pages"},
		{"thp", hosttest.Files{machine.THP: "always [madvise] never"}, Good, "madvise"},
		{"thp", hosttest.Files{machine.THP: "[always] madvise never"}, Poor, "always"},
		{"thp", hosttest.Files{machine.THP + "/": ""}, Unreadable, "enabled"},

		{"ksm", empty, Unknown, "no KSM"},
		{"ksm", hosttest.Files{machine.KSM + "run": "0"}, Good, "off"},
		{"ksm", hosttest.Files{machine.KSM + "run": "1", machine.KSM + "pages_sharing": "77"}, Poor, "on, 77 pages merged"},
		{"ksm", hosttest.Files{machine.KSM + "run/": ""}, Unreadable, "run"},

		{"favordynmods", empty, Unknown, "no table of mounts"},
		{"favordynmods", hosttest.Files{hosttest.Mounts + "/": ""}, Unreadable, "mount table"},
		{"favordynmods", hosttest.Files{hosttest.Mounts: "1 0 0:1 / / rw - ext4 /dev/x rw"}, Unknown, "no cgroup file system"},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV2, hosttest.Release: "5.15.0-1"}, Good, "always on before Linux 6.0"},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV2 + ",favordynmods", hosttest.Release: "6.1.0"}, Good, "on"},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV1 + ",favordynmods", hosttest.Release: "6.1.0"}, Good, "on"},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV2, hosttest.Release: "6.1.0"}, Poor, "off"},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV1, hosttest.Release: "6.1.0"}, Poor, "off"},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV2}, Unknown, "version"},

		{"timer-slack", empty, Unknown, "before 4.6"},
		{"timer-slack", hosttest.Files{"proc/self/timerslack_ns": "50000"}, Good, "50 µs"},
		{"timer-slack", hosttest.Files{"proc/self/timerslack_ns": "4000000"}, Poor, "4000 µs"},
		{"timer-slack", hosttest.Files{"proc/self/timerslack_ns": "x"}, Unknown, "no number"},

		{"mitigations", empty, Unknown, "does not list"},
		{"mitigations", hosttest.Files{hosttest.CPUs + "vulnerabilities/meltdown": "Not affected", hosttest.CPUs + "vulnerabilities/spectre_v2": "Mitigation: IBRS"}, Good, "on"},
		{"mitigations", hosttest.Files{hosttest.CPUs + "vulnerabilities/meltdown": "Vulnerable", hosttest.CPUs + "vulnerabilities/spectre_v2": "Mitigation: IBRS"}, Poor, "meltdown"},

		{"battery", empty, Good, "not on battery"},
		{"battery", hosttest.Files{"sys/class/power_supply/AC/type": "Mains", "sys/class/power_supply/AC/online": "0"}, Poor, "on battery"},
		{"voltage", empty, Unknown, "Raspberry Pi"},
		{"voltage", hosttest.Files{"sys/class/hwmon/hwmon0/name": "rpi_volt", "sys/class/hwmon/hwmon0/in0_lcrit_alarm": "0"}, Good, "sufficient"},
		{"voltage", hosttest.Files{"sys/class/hwmon/hwmon0/name": "rpi_volt", "sys/class/hwmon/hwmon0/in0_lcrit_alarm": "1"}, Poor, "too low"},
		{"voltage", hosttest.Files{"sys/class/hwmon/hwmon0/name": "rpi_volt", "sys/class/hwmon/hwmon0/in0_lcrit_alarm/": ""}, Unreadable, "alarm"},

		{"psi", empty, Poor, "not offered"},
		{"psi", hosttest.Files{"proc/pressure/cpu": "some avg10=0.00"}, Good, "offered"},
		{"memory-controller", empty, Unknown, "no cgroup"},
		{"memory-controller", hosttest.Files{hosttest.Mounts: hosttest.MountV2, "proc/self/cgroup": "0::/", "sys/fs/cgroup/cgroup.controllers": "cpu memory"}, Good, "offered"},
		{"memory-controller", hosttest.Files{hosttest.Mounts: hosttest.MountV2, "proc/self/cgroup": "0::/", "sys/fs/cgroup/cgroup.controllers": "cpu"}, Poor, "not offered"},
		{"memory-controller", hosttest.Files{
			hosttest.Mounts: hosttest.MountV2, "proc/self/cgroup": "0::/", "sys/fs/cgroup/cgroup.controllers": "cpu memory",
			"sys/fs/cgroup/cgroup.type": "domain", "sys/fs/cgroup/cgroup.procs": "1\n",
		}, Poor, "offered, and not passed on"},
	} {
		f := inspect(t, tt.name, tt.files)
		if f.Rating != tt.want || !strings.Contains(f.Now, tt.now) {
			t.Errorf("%s with %v is %s (%s), want %s (%s)", tt.name, tt.files, f.Rating, f.Now, tt.want, tt.now)
		}
		if f.Effect == "" || (f.Rating == Poor) != (f.Remedy != "") {
			t.Errorf("%s with %v has the effect %q and the remedy %q", tt.name, tt.files, f.Effect, f.Remedy)
		}
	}
}

func zone(temperature, kind, limit string) hosttest.Files {
	const dir = "sys/class/thermal/thermal_zone0/"
	return hosttest.Files{dir + "type": "cpu-thermal", dir + "temp": temperature, dir + "trip_point_0_type": kind, dir + "trip_point_0_temp": limit}
}

// Each setting of a Tuner is a property, so the listing shows the effect of a tune.
func TestSettingsAreProperties(t *testing.T) {
	for _, name := range tune.Settings() {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			t.Errorf("%s is no property", name)
		}
	}
}

func TestTunable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files hosttest.Files
		want  bool
	}{
		{"ksm", hosttest.Files{machine.KSM + "run": "1"}, true},
		{"ksm", hosttest.Files{machine.KSM + "run": "0"}, false},
		{"psi", nil, false},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV2, hosttest.Release: "6.1.0"}, true},
		{"favordynmods", hosttest.Files{hosttest.Mounts: hosttest.MountV2, hosttest.Release: "6.18.0"}, false},
		{"swap", hosttest.Files{"proc/meminfo": "SwapTotal: 1000000 kB\nSwapFree: 0 kB", machine.Swappiness: "0"}, false},
	} {
		if got := inspect(t, tt.name, tt.files); got.Tunable != tt.want {
			t.Errorf("with %v the finding is %+v, want tunable %v", tt.files, got, tt.want)
		}
	}
}

// The remedy for favordynmods depends on the mounts and on the kernel.
func TestRemedyOfFavordynmods(t *testing.T) {
	const remount = "mount -o remount,nsdelegate,memory_recursiveprot,favordynmods /sys/fs/cgroup"
	for _, tt := range []struct{ mounts, release, want string }{
		{hosttest.MountV2, "6.1.0-18-amd64", remount},
		{hosttest.MountV2, "6.8.0", "boot with cgroup_favordynmods=true; or " + remount},
		{hosttest.MountV2, "6.18.44-fc", "boot with cgroup_favordynmods=true; or " + remount + ", which lasts until the next boot"},
		{hosttest.MountV1, "6.8.0", "boot with cgroup_favordynmods=true"},
		{hosttest.MountV1, "6.1.0", "boot with cgroup v2 or with Linux 6.7 or newer: a v1 hierarchy has this option only when it is first mounted"},
		{hosttest.MountV1 + "\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw", "6.1.0", "mount -o remount,favordynmods /sys/fs/cgroup/unified"},
	} {
		f := inspect(t, "favordynmods", map[string]string{hosttest.Mounts: tt.mounts, hosttest.Release: tt.release})
		if f.Remedy != tt.want {
			t.Errorf("with Linux %s and %q the remedy is %q, want %q", tt.release, tt.mounts, f.Remedy, tt.want)
		}
	}
}

// Inspect measures the use of the CPUs between two readings.
func TestSample(t *testing.T) {
	for _, tt := range []struct {
		name, before, after string
		steal, load         Rating
		now                 string
	}{
		{"idle", idleStat, "cpu  100 0 100 9950 0 0 0 0 0 0", Good, Good, "0 % of the CPU time in use"},
		{"busy, with a guest, whose time is in user", idleStat, "cpu  190 0 100 9860 0 0 0 0 50 0", Good, Poor, "60 % of the CPU time in use"},
		{"stolen", idleStat, "cpu  100 0 100 9940 0 0 0 10 0 0", Poor, Good, "0 % of the CPU time in use"},
		{"waiting for I/O is not use", idleStat, "cpu  100 0 100 9800 150 0 0 0 0 0", Good, Good, "0 % of the CPU time in use"},
		{"a copy of a machine", idleStat, idleStat, Good, Good, "load average 0.10 on 1 CPU"},
		{"a guest that was moved", idleStat, "cpu  10 0 10 980 0 0 0 0 0 0", Good, Good, "load average 0.10 on 1 CPU"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			hosttest.Write(t, root, map[string]string{"proc/stat": tt.before, "proc/loadavg": "0.10 0.2 0.3 1/2 3", "proc/cpuinfo": guest, hosttest.CPUs + "online": "0"})
			findings, err := Inspect(t.Context(), root, func(context.Context) error {
				hosttest.Write(t, root, map[string]string{"proc/stat": tt.after})
				return nil
			})
			must.Do(t, err)
			for _, f := range findings {
				switch f.Name {
				case "steal":
					if f.Rating != tt.steal {
						t.Errorf("steal is %s (%s), want %s", f.Rating, f.Now, tt.steal)
					}
				case "load":
					if f.Rating != tt.load || !strings.Contains(f.Now, tt.now) {
						t.Errorf("load is %s (%s), want %s (%s)", f.Rating, f.Now, tt.load, tt.now)
					}
				}
			}
		})
	}
}

func TestInspectIsInterrupted(t *testing.T) {
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if _, err := Inspect(ctx, t.TempDir(), Pause); !errors.Is(err, interrupted) {
		t.Errorf("the error is %v, want %v", err, interrupted)
	}
}

// After a tune the findings have the state before it.
func TestFindingsOfATunedMachine(t *testing.T) {
	root := t.TempDir()
	hosttest.Write(t, root, hosttest.Files{
		"proc/sys/kernel/random/boot_id": "0f3b8f1a-1111-2222-3333-444455556666",
		hosttest.Governor:                "powersave", hosttest.CPUs + "cpufreq/policy1/scaling_governor": "schedutil",
		machine.Boost: "1", machine.THP: "[always] madvise never", machine.KSM + "run": "1", "proc/meminfo": "SwapTotal: 1000 kB\nSwapFree: 1000 kB", machine.Swappiness: "60",
	})
	names := []string{"governor", "turbo", "thp", "ksm", "swap"}
	_, err := tune.New(root).Apply(t.Context(), names, false)
	must.Do(t, err)
	findings, err := Inspect(t.Context(), root, noPause)
	must.Do(t, err)
	for _, f := range findings {
		if slices.Contains(names, f.Name) != (f.Before != "") || f.Before != "" && f.Rating != Good {
			t.Errorf("after tune a finding is %+v", f)
		}
	}
}
