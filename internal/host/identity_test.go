package host

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// fixture makes a machine of files.
func fixture(files map[string]string) tree {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return tree{all}
}

// changed returns the files with other contents.
func changed(files map[string]string, changes ...string) map[string]string {
	all := map[string]string{}
	for name, text := range files {
		all[name] = text
	}
	for i := 0; i < len(changes); i += 2 {
		all[changes[i]] = changes[i+1]
	}
	return all
}

// Hosts that nobody has named are one machine only if their identity proves it.
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
		"nothing is known, and nobody named it":      {"localhost", nil, nil, false},
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
		if err != nil {
			t.Fatal(err)
		}
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
	if none := fixture(nil).settings(nil); none != nil {
		t.Errorf("a machine without files has the settings %+v", none)
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

// A container is recognised by the traces that its kind leaves, without the rights of root.
func TestContainer(t *testing.T) {
	const overlay = "581 500 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/x,upperdir=%,workdir=/y"
	for name, tt := range map[string]struct {
		files files
		want  string
	}{
		"a host":                           {files{"proc/1/comm": "systemd", "proc/2/comm": "kthreadd", "proc/self/cgroup": "0::/user.slice/user-0.slice\n", "proc/1/environ": "HOME=/\x00TERM=linux\x00"}, ""},
		"a host with containers":           {files{"proc/2/comm": "kthreadd", "proc/1/cgroup": "0::/init.scope\n", mounts: "30 29 0:60 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/x/diff"}, ""},
		"no files":                         {files{}, ""},
		"Docker":                           {files{".dockerenv": ""}, "docker"},
		"Docker without its mark":          {files{mounts: strings.Replace(overlay, "%", "/var/lib/docker/overlay2/0a/diff", 1)}, "docker"},
		"Docker on v1":                     {files{"proc/self/cgroup": "4:memory:/docker/0a1b\n0::/\n"}, "docker"},
		"Docker with systemd":              {files{"proc/self/cgroup": "0::/system.slice/docker-0a1b.scope\n"}, "docker"},
		"Podman":                           {files{"run/.containerenv": "engine=\"podman-5.4\""}, "podman"},
		"Podman, without root":             {files{"proc/self/cgroup": "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0a.scope/container\n"}, "podman"},
		"a job of Kubernetes":              {files{"var/run/secrets/kubernetes.io/serviceaccount/": ""}, "kubernetes"},
		"a pod without a token":            {files{"proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-0a.scope\n"}, "kubernetes"},
		"containerd, with a private group": {files{"proc/self/cgroup": "0::/\n", mounts: strings.Replace(overlay, "%", "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs", 1)}, "containerd"},
		"LXC":                              {files{"proc/1/environ": "TERM=linux\x00container=lxc\x00"}, "lxc"},
		"Incus":                            {files{"dev/incus/sock": ""}, "incus"},
		"systemd-nspawn":                   {files{"run/host/container-manager": "systemd-nspawn\n"}, "systemd-nspawn"},
		"a container with systemd":         {files{"run/systemd/container": "lxc\n", ".dockerenv": ""}, "lxc"},
		"OpenVZ":                           {files{"proc/vz/": ""}, "openvz"},
		"a host of OpenVZ":                 {files{"proc/vz/": "", "proc/bc/": ""}, ""},
		"an unknown container":             {files{"proc/1/comm": "init", "proc/2/comm": "sh"}, otherContainer},
	} {
		root := t.TempDir()
		write(t, root, tt.files)
		if got := Container(root); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		f := inspect(t, "container", tt.files)
		if poor := f.Rating == Poor; poor != (tt.want != "") || poor && (f.Now != tt.want || !strings.Contains(f.Remedy, "--privileged --pid=host")) {
			t.Errorf("%s: the finding is %+v", name, f)
		}
		if facts := Facts(root); facts.Container != tt.want || strings.Contains(strings.Join(facts.Warnings, "\n"), "is no bare metal") != (tt.want != "") {
			t.Errorf("%s: the facts have the container %q and the warnings %q", name, facts.Container, facts.Warnings)
		}
	}
}

// A virtual machine whose disk was made from an image of Docker has its mark, and the initial namespaces.
func TestMarkOfAnImage(t *testing.T) {
	for name, tt := range map[string]struct {
		change map[string]string
		want   string
	}{
		"initial namespaces":               {nil, ""},
		"PIDs of its own":                  {map[string]string{"proc/self/ns/pid": "pid:[4026532201]"}, "docker"},
		"a name of its own, with host PID": {map[string]string{"proc/self/ns/uts": "uts:[4026532200]"}, "docker"},
		"another link":                     {map[string]string{"proc/self/ns/uts": "mnt:[4026531838]"}, "docker"},
	} {
		root := t.TempDir()
		write(t, root, files{".dockerenv": "", "proc/self/ns/": ""})
		links := maps.Clone(initial)
		maps.Copy(links, tt.change)
		for link, number := range links {
			if err := os.Symlink(number, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
		if got := Container(root); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The registrations have the format of Linux 6.1 with Debian's qemu-user-static.
const (
	qemuARM64 = `enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: POCF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
`
	pythonFiles = `enabled
interpreter /usr/bin/python3
flags: 
extension .pyc
`
)

// headOf is the beginning of a 64-bit little-endian executable for a machine.
func headOf(machine byte) []byte {
	return append([]byte("\x7fELF\x02\x01\x01"), 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, machine, 0)
}

func TestFindHandler(t *testing.T) {
	const arm64, riscv64 = 0xb7, 0xf3
	enabled := func(name, text string) map[string]string {
		return map[string]string{"status": "enabled\n", "register": "", "python3": pythonFiles, name: text}
	}
	for name, tt := range map[string]struct {
		files   map[string]string // nil without the directory
		program []byte
		want    Handler
		err     error
	}{
		"emulator":           {enabled("qemu-aarch64", qemuARM64), headOf(arm64), Handler{"qemu-aarch64", "/usr/libexec/qemu-binfmt/aarch64-binfmt-P", "POCF"}, nil},
		"other architecture": {enabled("qemu-aarch64", qemuARM64), headOf(riscv64), Handler{}, fs.ErrNotExist},
		"handler disabled":   {enabled("qemu-aarch64", "disabled"+qemuARM64[len("enabled"):]), headOf(arm64), Handler{}, fs.ErrNotExist},
		"all disabled":       {map[string]string{"status": "disabled\n", "qemu-aarch64": qemuARM64}, headOf(arm64), Handler{}, fs.ErrNotExist},
		"short program":      {enabled("qemu-aarch64", qemuARM64), headOf(arm64)[:10], Handler{}, fs.ErrNotExist},
		"empty program":      {enabled("qemu-aarch64", qemuARM64), nil, Handler{}, fs.ErrNotExist},
		"broken entry":       {enabled("odd", "enabled\ninterpreter /x\nmagic 7f4\n"), headOf(arm64), Handler{}, fs.ErrNotExist},
		"negative offset":    {enabled("odd", "enabled\ninterpreter /x\noffset -1\nmagic 7f\n"), headOf(arm64), Handler{}, fs.ErrNotExist},
		"mask of other size": {enabled("odd", "enabled\ninterpreter /x\nmagic 7f45\nmask ff\n"), headOf(arm64), Handler{}, fs.ErrNotExist},
		"magic without mask": {enabled("any", "enabled\ninterpreter /x\nflags: F\noffset 1\nmagic 454c46\n"), headOf(arm64), Handler{"any", "/x", "F"}, nil},
		"not mounted":        {map[string]string{}, headOf(arm64), Handler{}, ErrNotMounted},
		"not in the kernel":  {nil, headOf(arm64), Handler{}, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if tt.files != nil {
				write(t, root, files{"proc/sys/fs/binfmt_misc/": ""})
			}
			for file, text := range tt.files {
				write(t, root, files{"proc/sys/fs/binfmt_misc/" + file: text})
			}
			got, err := FindHandler(root, tt.program)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("FindHandler() = %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
