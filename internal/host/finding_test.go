package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func noPause(context.Context) error { return nil }

// inspect returns the finding of a name on a machine with these files.
func inspect(t *testing.T, name string, files files) Finding {
	t.Helper()
	root := t.TempDir()
	write(t, root, files)
	findings, err := Inspect(t.Context(), root, noPause)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no finding has the name %s", name)
	}
	return findings[i]
}

const (
	policy0  = cpuDir + "cpufreq/policy0/scaling_governor"
	mounts   = "proc/self/mountinfo"
	v2Mount  = "26 25 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,seclabel,nsdelegate,memory_recursiveprot"
	v1Mount  = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"
	release  = "proc/sys/kernel/osrelease"
	guest    = "flags\t: fpu hypervisor"
	idleStat = "cpu  100 0 100 9800 0 0 0 0 0 0"
	// process 200 is irqbalance in state S, started at 1234
	balance = "200 (irqbalance) S 1 200 200 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1234 1 1"
)

func TestFindings(t *testing.T) {
	none := files{}
	meminfo := func(lines ...string) files { return files{"proc/meminfo": strings.Join(lines, "\n")} }
	for _, tt := range []struct {
		name  string
		files files
		want  Rating
		now   string // a part of Now
	}{
		{"governor", none, Unknown, "no CPU frequency driver"},
		{"governor", files{policy0: "performance"}, Good, "performance"},
		{"governor", files{policy0: "performance", cpuDir + "cpufreq/policy1/scaling_governor": "powersave"}, Poor, "performance,powersave"},
		{"governor", files{policy0 + "/": ""}, Unreadable, "is a directory"},
		{"governor", files{cpuDir + "cpufreq/policy0/": ""}, Unknown, "no governor"},

		{"turbo", none, Unknown, "no switch"},
		{"turbo", files{noTurboFile: "1"}, Good, "off"},
		{"turbo", files{noTurboFile: "0"}, Poor, "on"},
		{"turbo", files{boostFile: "0"}, Good, "off"},
		{"turbo", files{boostFile: "1"}, Poor, "on"},
		{"turbo", files{boostFile + "/": ""}, Unreadable, "boost"},

		{"smt", none, Unknown, "does not report"},
		{"smt", files{cpuDir + "smt/active": "0", smtControl: "notsupported"}, Good, "notsupported"},
		{"smt", files{cpuDir + "smt/active": "0"}, Good, "off"},
		{"smt", files{cpuDir + "smt/active": "1", smtControl: "on"}, Poor, "on"},
		{"smt", files{cpuDir + "smt/active/": ""}, Unreadable, "smt/active"},

		{"cpu-kinds", none, Good, "alike"},
		{"cpu-kinds", files{cpuDir + "online": "0-1", cpuDir + "cpu0/cpu_capacity": "380", cpuDir + "cpu1/cpu_capacity": "1024"}, Poor, "2 kinds"},

		{"thermal", none, Unknown, "no temperature"},
		{"thermal", zone("45000", "passive", "95000"), Good, "45 °C on cpu-thermal, 50 K below"},
		{"thermal", zone("88000", "passive", "95000"), Poor, "7 K below"},
		{"thermal", zone("88000", "active", "95000"), Unknown, "no temperature"}, // a fan, which slows nothing
		{"thermal", zone("88000", "passive", "-274000"), Unknown, "no temperature"},
		{"thermal", files{"sys/class/hwmon/hwmon2/name": "coretemp", "sys/class/hwmon/hwmon2/temp1_input": "60000", "sys/class/hwmon/hwmon2/temp1_crit": "100000"}, Good, "40 K below"},
		{"thermal", files{"sys/class/hwmon/hwmon2/name": "nvme", "sys/class/hwmon/hwmon2/temp1_input": "80000", "sys/class/hwmon/hwmon2/temp1_crit": "85000"}, Unknown, "no temperature"},
		{"thermal", files{cpuDir + "online": "0", cpuDir + "cpu0/thermal_throttle/core_throttle_count": "0"}, Good, "throttled 0 times"},
		{"thermal", files{cpuDir + "online": "0", cpuDir + "cpu0/thermal_throttle/core_throttle_count": "3"}, Poor, "throttled 3 times"},

		{"virtualisation", none, Good, "no hypervisor"},
		{"virtualisation", files{"proc/cpuinfo": "flags\t: fpu"}, Good, "no hypervisor"},
		{"virtualisation", files{"proc/cpuinfo": guest}, Poor, "guest of a hypervisor that is not identified"},
		{"virtualisation", files{"proc/cpuinfo": guest, "sys/module/kvm_pvm/": ""}, Poor, "module kvm_pvm"},
		{"virtualisation", files{"proc/cpuinfo": guest + " svm"}, Poor, "it can run nested virtual machines"},
		{"virtualisation", files{"proc/cpuinfo": "flags\t: fpu vmx"}, Good, "no hypervisor"},
		{"virtualisation", files{"proc/cpuinfo": "model name\t: QEMU TCG CPU\n" + guest}, Poor, "qemu"},

		{"steal", none, Unknown, "no times"},
		{"steal", files{"proc/stat": idleStat}, Good, "no hypervisor"},
		{"steal", files{"proc/stat": idleStat, "proc/cpuinfo": guest}, Good, "0.0 %"},
		{"steal", files{"proc/stat": "cpu  100 0 100 9600 0 0 0 200 0 0", "proc/cpuinfo": guest}, Poor, "2.0 % of the CPU time since boot"},

		{"load", none, Unknown, "does not exist"},
		{"load", files{"proc/loadavg": "0.10 0.2 0.3 1/2 3"}, Good, "0.10"},
		{"load", files{"proc/loadavg": "2.00 0.2 0.3 1/2 3"}, Poor, "2.00"},
		{"load", files{"proc/loadavg": "x"}, Unknown, "no number"},
		{"load", files{"proc/loadavg/": ""}, Unreadable, "loadavg"},

		{"irqbalance", none, Unknown, "does not show the processes"},
		{"irqbalance", files{"proc/1/comm": "init"}, Good, "not running"},
		{"irqbalance", files{"proc/1/comm": "init", "proc/200/comm": "irqbalance", "proc/200/stat": balance}, Poor, "running"},
		{"irqbalance", files{"proc/1/comm": "init", "proc/200/comm": "irqbalance", "proc/200/stat": strings.Replace(balance, " S ", " T ", 1)}, Good, "stopped"},
		{"irqbalance", files{"proc/1/comm": "init", "proc/200/comm": "irqbalance", "proc/200/stat": strings.Replace(balance, " S ", " Z ", 1)}, Good, "not running"},

		{"swap", none, Unknown, "no SwapTotal"},
		{"swap", meminfo("SwapTotal: 0 kB", "SwapFree: 0 kB"), Good, "none"},
		{"swap", meminfo("SwapTotal: 1000000 kB", "SwapFree: 100000 kB"), Poor, "in use"},
		{"swap", files{"proc/meminfo": "SwapTotal: 1000 kB\nSwapFree: 1000 kB", swappinessFile: "60"}, Poor, "not in use, swappiness 60"},
		{"swap", files{"proc/meminfo": "SwapTotal: 1000 kB\nSwapFree: 1000 kB", swappinessFile: "0"}, Good, "swappiness 0"},
		{"swap", meminfo("SwapTotal: 1000 kB", "SwapFree: 1000 kB"), Unknown, "no swappiness"},
		{"swap", files{"proc/meminfo": "SwapTotal: 1000 kB\nSwapFree: 1000 kB", swappinessFile + "/": ""}, Unreadable, "swappiness"},

		{"memory", none, Unknown, "no MemAvailable"},
		{"memory", meminfo("MemTotal: 8000000 kB", "MemAvailable: 4000000 kB"), Good, "3906 MiB available"},
		{"memory", meminfo("MemTotal: 8000000 kB", "MemAvailable: 400000 kB"), Poor, "390 MiB available"},

		{"thp", none, Unknown, "no transparent huge pages"},
		{"thp", files{thpFile: "always [madvise] never"}, Good, "madvise"},
		{"thp", files{thpFile: "always madvise [never]"}, Good, "never"},
		{"thp", files{thpFile: "[always] madvise never"}, Poor, "always"},
		{"thp", files{thpFile + "/": ""}, Unreadable, "enabled"},

		{"ksm", none, Unknown, "no KSM"},
		{"ksm", files{ksmDir + "run": "0"}, Good, "off"},
		{"ksm", files{ksmDir + "run": "2"}, Good, "off"},
		{"ksm", files{ksmDir + "run": "1", ksmDir + "pages_sharing": "77"}, Poor, "on, 77 pages merged"},
		{"ksm", files{ksmDir + "run/": ""}, Unreadable, "run"},

		{"favordynmods", none, Unknown, "no table of mounts"},
		{"favordynmods", files{mounts + "/": ""}, Unreadable, "mount table"},
		{"favordynmods", files{mounts: "1 0 0:1 / / rw - ext4 /dev/x rw"}, Unknown, "no cgroup file system"},
		{"favordynmods", files{mounts: v2Mount, release: "5.15.0-1"}, Good, "always on before Linux 6.0"},
		{"favordynmods", files{mounts: v2Mount + ",favordynmods", release: "6.1.0"}, Good, "on"},
		{"favordynmods", files{mounts: v1Mount + ",favordynmods", release: "6.1.0"}, Good, "on"},
		{"favordynmods", files{mounts: v2Mount, release: "6.1.0"}, Poor, "off"},
		{"favordynmods", files{mounts: v1Mount, release: "6.1.0"}, Poor, "off"},
		{"favordynmods", files{mounts: v2Mount}, Unknown, "version"},

		{"timer-slack", none, Unknown, "before 4.6"},
		{"timer-slack", files{"proc/self/timerslack_ns": "50000"}, Good, "50 µs"},
		{"timer-slack", files{"proc/self/timerslack_ns": "4000000"}, Poor, "4000 µs"},
		{"timer-slack", files{"proc/self/timerslack_ns": "x"}, Unknown, "no number"},

		{"mitigations", none, Unknown, "does not list"},
		{"mitigations", files{cpuDir + "vulnerabilities/meltdown": "Not affected", cpuDir + "vulnerabilities/spectre_v2": "Mitigation: IBRS"}, Good, "on"},
		{"mitigations", files{cpuDir + "vulnerabilities/meltdown": "Vulnerable", cpuDir + "vulnerabilities/spectre_v2": "Mitigation: IBRS"}, Poor, "meltdown"},

		{"battery", none, Good, "not on battery"},
		{"battery", files{"sys/class/power_supply/AC/type": "Mains", "sys/class/power_supply/AC/online": "0"}, Poor, "on battery"},
		{"voltage", none, Unknown, "Raspberry Pi"},
		{"voltage", files{"sys/class/hwmon/hwmon0/name": "rpi_volt", "sys/class/hwmon/hwmon0/in0_lcrit_alarm": "0"}, Good, "sufficient"},
		{"voltage", files{"sys/class/hwmon/hwmon0/name": "rpi_volt", "sys/class/hwmon/hwmon0/in0_lcrit_alarm": "1"}, Poor, "too low"},
		{"voltage", files{"sys/class/hwmon/hwmon0/name": "rpi_volt", "sys/class/hwmon/hwmon0/in0_lcrit_alarm/": ""}, Unreadable, "alarm"},

		{"psi", none, Poor, "not offered"},
		{"psi", files{"proc/pressure/cpu": "some avg10=0.00"}, Good, "offered"},
		{"memory-controller", none, Unknown, "no cgroup"},
		{"memory-controller", files{mounts: v2Mount, "proc/self/cgroup": "0::/", "sys/fs/cgroup/cgroup.controllers": "cpu memory"}, Good, "offered"},
		{"memory-controller", files{mounts: v2Mount, "proc/self/cgroup": "0::/", "sys/fs/cgroup/cgroup.controllers": "cpu"}, Poor, "not offered"},
		{"memory-controller", files{
			mounts: v2Mount, "proc/self/cgroup": "0::/", "sys/fs/cgroup/cgroup.controllers": "cpu memory",
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

func zone(temperature, kind, limit string) files {
	const dir = "sys/class/thermal/thermal_zone0/"
	return files{dir + "type": "cpu-thermal", dir + "temp": temperature, dir + "trip_point_0_type": kind, dir + "trip_point_0_temp": limit}
}

// Each setting of a Tuner is a property, so the listing shows the effect of a tune.
func TestSettingsAreProperties(t *testing.T) {
	for _, name := range Settings() {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			t.Errorf("%s is no property", name)
		}
	}
}

func TestTunable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files files
		want  bool
	}{
		{"ksm", files{ksmDir + "run": "1"}, true},
		{"ksm", files{ksmDir + "run": "0"}, false},
		{"psi", nil, false},
		{favordynmods, files{mounts: v2Mount, release: "6.1.0"}, true},
		{favordynmods, files{mounts: v2Mount, release: "6.18.0"}, false},
		{"swap", files{"proc/meminfo": "SwapTotal: 1000000 kB\nSwapFree: 0 kB", swappinessFile: "0"}, false},
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
		{v2Mount, "6.1.0-18-amd64", remount},
		{v2Mount, "6.8.0", "boot with cgroup_favordynmods=true; or " + remount},
		{v2Mount, "6.18.44-fc", "boot with cgroup_favordynmods=true; or " + remount + ", which lasts until the next boot"},
		{v1Mount, "6.8.0", "boot with cgroup_favordynmods=true"},
		{v1Mount, "6.1.0", "boot with cgroup v2 or with Linux 6.7 or newer: a v1 hierarchy has this option only when it is first mounted"},
		{v1Mount + "\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw", "6.1.0", "mount -o remount,favordynmods /sys/fs/cgroup/unified"},
	} {
		f := inspect(t, favordynmods, map[string]string{mounts: tt.mounts, release: tt.release})
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
		{"a copy of a machine", idleStat, idleStat, Good, Good, "load average 0.10 on 1 CPUs"},
		{"a guest that was moved", idleStat, "cpu  10 0 10 980 0 0 0 0 0 0", Good, Good, "load average 0.10 on 1 CPUs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, map[string]string{"proc/stat": tt.before, "proc/loadavg": "0.10 0.2 0.3 1/2 3", "proc/cpuinfo": guest, cpuDir + "online": "0"})
			findings, err := Inspect(t.Context(), root, func(context.Context) error {
				write(t, root, map[string]string{"proc/stat": tt.after})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
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
