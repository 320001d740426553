package facts

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// changed returns the files with other contents.
func changed(files map[string]string, changes ...string) map[string]string {
	result := map[string]string{}
	for name, text := range files {
		result[name] = text
	}
	for i := 0; i < len(changes); i += 2 {
		result[changes[i]] = changes[i+1]
	}
	return result
}

// Hosts with a usual name are one machine only if their identity proves it.
//
// Invariant machine-identity: Runs of hosts without a name of their own are of one machine only by an equal identity.
func TestIdentity(t *testing.T) {
	const id, boot, mac = "etc/machine-id", "proc/sys/kernel/random/boot_id", "sys/class/net/eth0/address"
	files := map[string]string{
		id: "0123456789abcdef0123456789abcdef", boot: "11111111-2222-3333-4444-555555555555",
		mac: "52:54:00:12:34:56", "sys/class/net/eth0/addr_assign_type": "0", "sys/class/net/eth0/device/id": "1",
		"sys/class/net/docker0/address": "02:42:00:00:00:01", "sys/class/net/docker0/addr_assign_type": "3",
	}
	noID := changed(files)
	delete(noID, id)
	noMAC := changed(files)
	delete(noMAC, mac)
	board := changed(noMAC, "proc/device-tree/serial-number", "1000000012345678")
	for name, c := range map[string]struct {
		hostname string
		a, b     map[string]string
		same     bool
	}{
		"the same boot":                 {"localhost", files, files, true},
		"the same machine after a boot": {"localhost.localdomain", files, changed(files, boot, "x"), true},
		"a network card on USB": {
			"bench1", files, changed(files, boot, "x", "sys/class/net/usb0/address", "00:00:00:00:00:01", "sys/class/net/usb0/addr_assign_type", "0",
				"sys/class/net/usb0/device/bInterfaceNumber", "00"), true,
		},
		"a copy of the image":                        {"(none)", files, changed(files, boot, "x", mac, "52:54:00:12:34:57"), false},
		"a copy with a name of its own":              {"bench-template", files, changed(files, boot, "x", mac, "52:54:00:12:34:57"), false},
		"another system":                             {"ubuntu", files, changed(files, boot, "x", id, "f"), false},
		"another system with a name of its own":      {"bench1", files, changed(files, boot, "x", id, "f"), false},
		"no machine ID, the same boot":               {"(none)", noID, noID, true},
		"no machine ID, another boot":                {"(none)", noID, changed(noID, boot, "x"), false},
		"an image before its first boot":             {"localhost", changed(noID, id, "uninitialized"), changed(noID, id, "uninitialized", boot, "x"), false},
		"no hardware address, another boot":          {"raspberrypi", noMAC, changed(noMAC, boot, "x"), false},
		"no hardware address, a name of its own":     {"bench1", noMAC, changed(noMAC, boot, "x"), true},
		"a board with a serial number":               {"raspberrypi", board, changed(board, boot, "x"), true},
		"two boards of one image":                    {"raspberrypi", board, changed(board, boot, "x", "proc/device-tree/serial-number", "2"), false},
		"nothing is known, and the name is usual":    {"localhost", nil, nil, false},
		"nothing is known of a machine with a name":  {"bench1", nil, nil, true},
		"an older run of a machine with a name":      {"bench1", files, nil, true},
		"an older run of a machine that has no name": {"", files, nil, false},
	} {
		make := func(files map[string]string) result.Host {
			return result.Host{Hostname: c.hostname, CPU: "c", CPUs: 2, Memory: 1 << 30, Identity: fixture(files).identity()}
		}
		a, b := make(c.a), make(c.b)
		if a.SameMachine(&b) != c.same || b.SameMachine(&a) != c.same {
			t.Errorf("%s: it is the same machine: %v, want %v", name, a.SameMachine(&b), c.same)
		}
		text, err := json.Marshal(a)
		must.Do(t, err)
		for _, secret := range c.a {
			if len(secret) > 1 && strings.Contains(string(text), secret) {
				t.Errorf("%s: %s is in the facts", name, secret)
			}
		}
	}
}

func TestSettings(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	got := fixture(map[string]string{
		cpu + "cpufreq/policy0/scaling_driver": "intel_pstate", cpu + "cpufreq/policy0/energy_performance_preference": "balance_performance",
		cpu + "cpufreq/policy1/scaling_driver": "intel_pstate", cpu + "cpufreq/policy1/energy_performance_preference": "balance_performance",
		cpu + "cpuidle/current_driver": "intel_idle", cpu + "cpuidle/current_governor": "menu",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
		"sys/kernel/debug/sched/preempt":                                  "none voluntary (full) lazy",
		"proc/sys/kernel/numa_balancing":                                  "1", "proc/sys/net/core/bpf_jit_enable": "0",
	}).settings(map[string]string{"microcode": "0x2b000603"})
	want := result.Settings{
		Microcode: "0x2b000603", Scaling: "intel_pstate balance_performance", Idle: "intel_idle menu", Clock: "hpet", Preemption: "full", NUMABalancing: "1", BPFJIT: "0",
	}
	if got == nil || *got != want {
		t.Errorf("the settings are %+v, want %+v", got, want)
	}
	if settings := fixture(nil).settings(nil); settings != nil {
		t.Errorf("a machine without files has the settings %+v", settings)
	}
}

func TestFileSystem(t *testing.T) {
	const mounts = `22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
23 22 0:20 / /run rw - tmpfs tmpfs rw
24 22 8:2 / /srv/my\040data rw - xfs /dev/sda2 rw
25 22 0:50 / /var/lib rw - overlay overlay rw,lowerdir=/secret
26 25 0:51 / /var/lib rw - btrfs /dev/sdb rw
malformed`
	machine := fixture(map[string]string{"proc/self/mountinfo": mounts})
	for dir, want := range map[string]string{
		"/": "ext4", "/home/user": "ext4", "/run": "tmpfs", "/running": "ext4", "/run/touchstone": "tmpfs", "/var/lib/touchstone": "btrfs", "/srv/my data/x": "xfs",
	} {
		if got := machine.fileSystem(dir); got != want {
			t.Errorf("%s is on %q, want %q", dir, got, want)
		}
	}
	if got := FileSystem("/proc/self"); got != "proc" {
		t.Errorf("/proc/self is on %q", got)
	}
}

func fixture(files hosttest.Files) reader { return reader{machine.Tree{FS: hosttest.Memory(files)}} }
