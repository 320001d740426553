package runtimes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/vmhost"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Only targets that select the platform kvm need KVM, and they are refused before any container is tried.
func TestPlatformNeedsKVM(t *testing.T) {
	l := launcher(t)
	root := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(root, "dev"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(root, "dev/kvm"), nil, 0o600))
	var works bool
	defer func(was func(engine.Session) vmhost.Host) { hostOf = was }(hostOf)
	hostOf = func(engine.Session) vmhost.Host {
		return vmhost.Host{Root: root, Arch: "amd64", Guest: func(context.Context, string) error {
			if works {
				return nil
			}
			return &vmhost.GuestError{Text: "the guest hangs before it is in real mode", Hangs: true}
		}}
	}
	bin := t.TempDir()
	for name, version := range map[string]string{"runsc": "runsc version 1", "crun": "crun version 1"} {
		must.Do(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+version+"\n"), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := engine.Session{
		Launcher: l, State: t.TempDir(), Probe: "/no/such/probe",
		Runtimes: map[string]target.Runtime{"mine": {Path: filepath.Join(bin, "runsc"), Options: []target.Option{{Name: "platform", Value: "kvm"}}}},
	}
	for _, works = range []bool{false, true} {
		for name, needs := range map[string]bool{
			"oci/runsc": false, "oci/runsc@platform=systrap": false, "oci/crun@platform=kvm": false,
			"oci/runsc@platform=kvm": true, "containerd/runsc@platform=kvm,shim=runc": true, "oci/mine": true, "oci/mine@platform=ptrace": false,
		} {
			parsed, err := target.Parse(name)
			must.Do(t, err)
			r, err := Get(t.Context(), s, parsed)
			if r.UsesKVM(parsed) != needs {
				t.Errorf("%s uses KVM: %v, want %v", name, !needs, needs)
			}
			switch isRefused := needs && !works; {
			case !isRefused && err != nil:
				t.Errorf("Get(%s): %v", name, err)
			case isRefused && (!engine.Unsupported(err) || !strings.Contains(err.Error(), name+": /dev/kvm exists, but a small test guest does not run: the guest hangs")):
				t.Errorf("Get(%s): %v, want a refusal with the reason", name, err)
			}
		}
		for _, c := range Candidates(t.Context(), s, "oci", func(f Found, _ target.Target) error { return f.Err }) {
			want := c.Target.Runtime != "youki" && c.Target.Runtime != "kata" && c.Target.Runtime != "runc"
			if platform, _ := c.Target.Option("platform"); platform == "kvm" || c.Target.String() == "oci/mine" {
				want = works
			}
			if want && c.Err != nil || !want && c.Target.Runtime == "runsc" && c.Err == nil {
				t.Errorf("candidate %s: %v", c.Target, c.Err)
			}
		}
	}
}

// A target of Kata is refused for the first missing part, before its engine starts. A user's daemon needs the host's syslog too.
func TestKataNeedsTheHost(t *testing.T) {
	l := launcher(t)
	root, bin := t.TempDir(), t.TempDir()
	write := func(file, text string, mode os.FileMode) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), mode))
	}
	config := filepath.Join(bin, "kata.toml")
	write(config, "[hypervisor.qemu]\npath = \"/bin/qemu\"\nkernel = \"/guest/vmlinux\"\ninitrd = \"/guest/initrd\"\nvirtio_fs_daemon = \"/bin/virtiofsd\"\ndefault_memory = 256\n", 0o600)
	write(filepath.Join(bin, "containerd-shim-kata-v2"), "#!/bin/sh\necho 'version: 3.32.0,'\n", 0o700)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	defer func(was func(engine.Session) vmhost.Host) { hostOf = was }(hostOf)
	hostOf = func(engine.Session) vmhost.Host {
		return vmhost.Host{Root: root, Arch: "amd64", Guest: func(context.Context, string) error { return nil }}
	}
	s := engine.Session{Launcher: l, State: t.TempDir()}
	kataTarget, err := target.Parse("containerd/kata@config=" + config)
	must.Do(t, err)
	for _, step := range []struct{ reason, file string }{
		{"the hypervisor /bin/qemu does not exist", "bin/qemu"},
		{"the file server /bin/virtiofsd does not exist", "bin/virtiofsd"},
		{"the guest's kernel: /guest/vmlinux does not exist", "guest/vmlinux"},
		{"the guest's file system: /guest/initrd does not exist", "guest/initrd"},
		{"there is no working /dev/kvm", "dev/kvm"},
		{"/dev/vhost-vsock does not exist", "dev/vhost-vsock"},
	} {
		_, err := Get(t.Context(), s, kataTarget)
		if !engine.Unsupported(err) || !strings.HasPrefix(err.Error(), kataTarget.String()+": "+step.reason) {
			t.Errorf("before %s: %v, want %q", step.file, err, step.reason)
		}
		write(filepath.Join(root, step.file), "x", 0o700)
	}
	r, err := Get(t.Context(), s, kataTarget)
	if err != nil {
		t.Errorf("with all parts: %v", err)
	}
	if err := r.CheckUser(t.Context(), s, kataTarget); !engine.Unsupported(err) || !strings.Contains(err.Error(), "the shim does not start without syslog") {
		t.Errorf("with the user's daemon: %v", err)
	}
}
