package vmhost

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// complete is a host that meets all requirements, and the guest that needs them.
func complete(t *testing.T) (map[string]string, Guest) {
	t.Helper()
	return map[string]string{
			"bin/qemu": "x", "bin/virtiofsd": "x", "guest/vmlinux": "x", "guest/initrd": "x",
			"dev/kvm": "", "dev/vhost-vsock": "", "proc/meminfo": "MemTotal: 4194304 kB\nMemAvailable:    2097152 kB\n",
		}, Guest{
			Hypervisor: "/bin/qemu", FileServer: "/bin/virtiofsd", Kernel: "/guest/vmlinux", Initrd: "/guest/initrd",
			Memory: 256 << 20, Vsock: true,
		}
}

// Each requirement of a guest has its own reason and remedy.
//
// Invariant machine-requirements.
func TestCheck(t *testing.T) {
	remove := func(name string) func(map[string]string, *Guest) {
		return func(has map[string]string, _ *Guest) { delete(has, name) }
	}
	for _, c := range []struct {
		name           string
		spoil          func(has map[string]string, g *Guest)
		kind           error
		reason, advice string
	}{
		{name: "complete", spoil: func(map[string]string, *Guest) {}},
		{name: "no requirement", spoil: func(has map[string]string, g *Guest) {
			clear(has)
			has["dev/kvm"] = ""
			*g = Guest{}
		}},
		{"no hypervisor", remove("bin/qemu"), ErrNoHypervisor, "the hypervisor /bin/qemu does not exist", "install qemu"},
		{"no file server", remove("bin/virtiofsd"), ErrNoFileServer, "the file server /bin/virtiofsd does not exist", "install virtiofsd"},
		{"a directory", func(_ map[string]string, g *Guest) { g.Hypervisor = "/bin" }, ErrNoHypervisor, "/bin is not executable", "correct the path"},
		{"no kernel", remove("guest/vmlinux"), ErrNoGuestKernel, "/guest/vmlinux does not exist", "correct the path"},
		{"an empty kernel", func(has map[string]string, _ *Guest) { has["guest/vmlinux"] = "" }, ErrNoGuestKernel, "/guest/vmlinux is empty", "correct the path"},
		{"no initrd", remove("guest/initrd"), ErrNoGuestImage, "/guest/initrd does not exist", "correct the path"},
		{"no image", func(_ map[string]string, g *Guest) { g.Image = "/guest" }, ErrNoGuestImage, "/guest is no regular file", "correct the path"},
		{"no file system", func(_ map[string]string, g *Guest) { g.Initrd = "" }, ErrNoGuestImage, "neither an image nor an initrd", "set one"},
		{"little memory", func(_ map[string]string, g *Guest) { g.Memory = 3 << 30 }, ErrLittleMemory, "the guest's memory is 3072 MiB, and 2048 MiB", "memory=MIB"},
		{"no KVM", remove("dev/kvm"), ErrNoKVM, "/dev/kvm", "firmware"},
		{"no vsock module", remove("dev/vhost-vsock"), ErrNoVsock, "this kernel has no module vhost_vsock", "CONFIG_VHOST_VSOCK"},
		{"vsock not loaded", func(has map[string]string, _ *Guest) {
			delete(has, "dev/vhost-vsock")
			has["proc/sys/kernel/osrelease"], has[modules] = release, "kernel/drivers/vhost/vhost_vsock.ko.xz: kernel/drivers/vhost/vhost.ko.xz\n"
		}, ErrNoVsock, "vhost_vsock is not loaded", "modprobe vhost_vsock"},
		{"no syslog", func(_ map[string]string, g *Guest) { g.Syslog = true }, ErrNoSyslog, "no program listens on /dev/log", "--managed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			content, guest := complete(t)
			content = maps.Clone(content)
			c.spoil(content, &guest)
			h := Host{Root: files(t, content), Arch: "amd64", Guest: func(context.Context, string) error { return nil }}
			for _, program := range []string{"bin/qemu", "bin/virtiofsd"} {
				if err := os.Chmod(h.path(program), 0o700); err != nil && content[program] != "" {
					t.Fatal(err)
				}
			}
			err := h.Check(t.Context(), guest)
			var lack *Lack
			switch {
			case c.kind == nil && err != nil:
				t.Error(err)
			case c.kind == nil:
			case !errors.As(err, &lack) || !errors.Is(err, c.kind) || !strings.Contains(lack.Reason, c.reason) || !strings.Contains(lack.Advice, c.advice):
				t.Errorf("Check: %v; want %v with %q and %q", err, c.kind, c.reason, c.advice)
			}
		})
	}
}

// The memory of a guest with a file server is a file.
func TestSharedMemory(t *testing.T) {
	h := Host{Root: files(t, map[string]string{"dev/shm/": ""})}
	const tooMuch = 1 << 60
	if err := h.memory(Guest{Memory: tooMuch}); err != nil {
		t.Errorf("without shared memory: %v", err)
	}
	if err := h.memory(Guest{Memory: tooMuch, Shared: true}); !errors.Is(err, ErrLittleMemory) || !strings.Contains(err.Error(), "/dev/shm") {
		t.Errorf("with shared memory: %v", err)
	}
	if err := h.memory(Guest{Memory: 1, Shared: true}); err != nil {
		t.Errorf("one byte: %v", err)
	}
}

func TestSyslog(t *testing.T) {
	for _, network := range []string{"unixgram", "unix"} {
		// The path of a socket is short.
		root, err := os.MkdirTemp("", "ts") //nolint:usetesting // see above
		must.Do(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(root) })
		h := Host{Root: root}
		path := h.path("/var/run/log")
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		var stop func() error
		if network == "unixgram" {
			conn, err := net.ListenUnixgram(network, &net.UnixAddr{Name: path, Net: network})
			must.Do(t, err)
			stop = conn.Close
		} else {
			listener, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
			must.Do(t, err)
			listener.SetUnlinkOnClose(false)
			stop = listener.Close
		}
		if err := h.syslog(t.Context(), true); err != nil {
			t.Errorf("with a socket %s: %v", network, err)
		}
		must.Do(t, stop())
		if err := h.syslog(t.Context(), true); !errors.Is(err, ErrNoSyslog) {
			t.Errorf("with a socket %s that no program listens on: %v", network, err)
		}
	}
}

// process writes a process of /proc with its arguments and open files.
func proc(t *testing.T, dir, pid, args string, links ...string) {
	t.Helper()
	fds := filepath.Join(dir, pid, "fd")
	must.Do(t, os.MkdirAll(fds, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, pid, "cmdline"), []byte(args), 0o600))
	for n, link := range links {
		must.Do(t, os.Symlink(link, filepath.Join(fds, string(rune('0'+n)))))
	}
}

// Invariant kvm-platform: A target of gVisor's platform kvm runs on KVM, or the trial fails.
func TestProveUse(t *testing.T) {
	dir := t.TempDir()
	const boot = "runsc-sandbox\x00--platform=kvm\x00boot\x00--bundle=/b\x00"
	proc(t, dir, "10", boot, "/dev/null", "anon_inode:kvm-vm", "anon_inode:[eventfd]", "anon_inode:kvm-vcpu:0")
	proc(t, dir, "11", boot, "/dev/null", "socket:[1]")
	proc(t, dir, "12", boot, "anon_inode:kvm-vm")
	proc(t, dir, "13", boot) // exiting
	proc(t, dir, "14", "runsc-gofer\x00gofer\x00", "/dev/null")
	proc(t, dir, "15", boot, "/dev/null") // it has closed a part of its descriptors
	must.Do(t, os.WriteFile(filepath.Join(dir, "15", "stat"), []byte("15 (a ) b) R 1 15 15 0 -1 4194564 0 0"), 0o600))
	for _, c := range []struct {
		pids []int
		want string
	}{
		{pids: []int{10}},
		{pids: []int{15}},
		{pids: []int{14, 10, 13, 999}},
		{pids: nil},
		{[]int{10, 11}, "the sandbox (process 11) holds no virtual machine of KVM"},
		{[]int{12}, "the sandbox (process 12) holds no virtual processor of KVM"},
	} {
		err := ProveUse(dir, c.pids)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("ProveUse(%v): %v, want %q", c.pids, err, c.want)
		}
	}
}
