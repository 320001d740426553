package vmhost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// files makes a root directory. The value of a name that ends in a slash is ignored: the name is a directory.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range content {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		must.Do(t, os.MkdirAll(dir, 0o700))
		if dir == path {
			continue
		}
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

const (
	amd     = "processor\t: 0\nflags\t\t: fpu vme svm sse\n"
	intel   = "processor\t: 0\nflags\t\t: fpu vmx\n"
	virtual = "processor\t: 0\nflags\t\t: fpu hypervisor\n"
	bare    = "processor\t: 0\nflags\t\t: fpu sse\n"
	release = "6.12.0-test\n"
	modules = "lib/modules/6.12.0-test/modules.dep"
)

// Each state of a host has its own reason and remedy.
//
// Invariant machine-requirements: A missing requirement of a virtual machine is found without starting one, and no attempt hangs.
func TestKVM(t *testing.T) {
	for _, c := range []struct {
		name           string
		files          map[string]string
		arch           string
		guest          error
		kind           error
		reason, advice string
	}{
		{name: "works", files: map[string]string{"dev/kvm": ""}},
		{
			name: "nested virtualization off", files: map[string]string{"proc/cpuinfo": virtual},
			kind: ErrNoKVM, reason: "its hypervisor does not offer nested virtualization", advice: "kvm_amd.nested=1",
		},
		{
			name: "no virtualization", files: map[string]string{"proc/cpuinfo": bare},
			kind: ErrNoKVM, reason: "or the firmware has switched it off", advice: "in the firmware",
		},
		{
			name: "module not loaded", files: map[string]string{"proc/cpuinfo": amd, "proc/sys/kernel/osrelease": release, modules: "kernel/arch/x86/kvm/kvm-amd.ko.xz: kernel/virt/kvm.ko\n"},
			kind: ErrNoKVM, reason: "kvm_amd is not loaded", advice: "modprobe kvm_amd",
		},
		{
			name: "no module", files: map[string]string{"proc/cpuinfo": intel, "proc/sys/kernel/osrelease": release, modules: "kernel/arch/x86/kvm/kvm-amd.ko.xz:\n"},
			kind: ErrNoKVM, reason: "this kernel has no module kvm_intel", advice: "use a kernel with KVM",
		},
		{
			name: "module without a device", files: map[string]string{"proc/cpuinfo": intel, "sys/module/kvm_intel/": ""},
			kind: ErrNoKVM, reason: "kvm_intel is loaded without a device", advice: "dmesg",
		},
		{
			name: "no device file", files: map[string]string{"proc/cpuinfo": amd, "proc/misc": "183 hw_random\n232 kvm\n"},
			kind: ErrNoKVM, reason: "the device file is missing", advice: "mknod",
		},
		{
			name: "no KVM on arm64", arch: "arm64", files: map[string]string{"proc/misc": "183 hw_random\n"},
			kind: ErrNoKVM, reason: "the kernel has no KVM on this machine", advice: "EL2",
		},
		{
			name: "a guest hangs", files: map[string]string{"dev/kvm": ""}, guest: &GuestError{"the guest hangs before it is in real mode", true},
			kind: ErrUnusableKVM, reason: "a small test guest does not run: the guest hangs", advice: "another runtime",
		},
		{
			name: "paravirtual", files: map[string]string{"dev/kvm": "", "sys/module/kvm_pvm/": ""}, guest: &GuestError{Text: "the guest ends"},
			kind: ErrUnusableKVM, reason: "is paravirtual", advice: "no setting of this machine",
		},
		{
			name: "in use", files: map[string]string{"dev/kvm": ""}, guest: &GuestError{Text: "KVM_CREATE_VM /dev/kvm: EBUSY (16)"},
			kind: ErrUnusableKVM, reason: "another hypervisor", advice: "stop its machines",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := Host{Root: files(t, c.files), Arch: "amd64", Guest: func(context.Context, string) error { return c.guest }}
			if c.arch != "" {
				h.Arch = c.arch
			}
			err := h.KVM(t.Context())
			if c.kind == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var lack *Lack
			if !errors.As(err, &lack) || !errors.Is(err, c.kind) || !strings.Contains(lack.Reason, c.reason) || !strings.Contains(lack.Advice, c.advice) {
				t.Errorf("KVM: %v; want %v with %q and %q", err, c.kind, c.reason, c.advice)
			}
			var refusalErr *engine.UnsupportedError
			if !errors.As(Refuse("oci/runsc@platform=kvm", err), &refusalErr) || refusalErr.What != "oci/runsc@platform=kvm" || refusalErr.Reason != lack.Reason || refusalErr.Advice != lack.Advice {
				t.Errorf("Refuse: %+v", refusalErr)
			}
		})
	}
}

// A device without a driver behaves like a missing one: systemd makes such a node before the module is loaded.
func TestKVMWithoutDriver(t *testing.T) {
	h := Host{Root: files(t, map[string]string{"dev/": "", "proc/cpuinfo": virtual}), Arch: "amd64"}
	if err := unix.Mknod(h.path(kvmPath), unix.S_IFCHR|0o600, int(unix.Mkdev(10, 254))); err != nil {
		t.Skipf("devices need root: %v", err)
	}
	if err := h.KVM(t.Context()); !errors.Is(err, ErrNoKVM) && !errors.Is(err, ErrNoPermission) {
		t.Errorf("KVM: %v", err)
	}
}

func TestKVMNeedsPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may open any file")
	}
	h := Host{Root: files(t, map[string]string{"dev/kvm": ""}), Arch: "amd64"}
	must.Do(t, os.Chmod(h.path(kvmPath), 0))
	if err := h.KVM(t.Context()); !errors.Is(err, ErrNoPermission) {
		t.Errorf("KVM: %v, want %v", err, ErrNoPermission)
	}
}

// An error of this program is no property of the host.
func TestKVMFailsWithoutProof(t *testing.T) {
	errBroken := errors.New("no probe")
	h := Host{Root: files(t, map[string]string{"dev/kvm": ""}), Guest: func(context.Context, string) error { return errBroken }}
	if err := h.KVM(t.Context()); !errors.Is(err, errBroken) || engine.Unsupported(Refuse("x", err)) {
		t.Errorf("KVM: %v", err)
	}
}

// The proof runs once, unless its caller gives up.
func TestProofIsKept(t *testing.T) {
	var o once
	calls := 0
	lostCtx, cancel := context.WithCancel(t.Context())
	err := o.once(lostCtx, func(context.Context) error {
		calls++
		cancel()
		return &GuestError{Hangs: true}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled proof: %v", err)
	}
	want := &GuestError{Text: "no"}
	for range 2 {
		err := o.once(t.Context(), func(context.Context) error {
			calls++
			return want
		})
		if !errors.Is(err, want) {
			t.Errorf("the proof: %v", err)
		}
	}
	if calls != 2 {
		t.Errorf("the proof ran %d times, want 2", calls)
	}
}

func launcher(t *testing.T) *process.Launcher {
	t.Helper()
	l, err := process.New(process.Options{})
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, l.Close()) })
	return l
}

// Invariant machine-requirements.
func TestGuestsOutcome(t *testing.T) {
	l := launcher(t)
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "probe")
		must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
		return path
	}
	for _, c := range []struct {
		text  string
		want  string
		hangs bool
	}{
		{text: "[ \"$*\" = 'kvm --device /dev/x' ]"},
		{text: "echo 'kvm: the guest hangs before it is in real mode' >&2; exit 3", want: "the guest hangs before it is in real mode", hangs: true},
		{text: "echo 'kvm: KVM_CREATE_VM /dev/kvm: ENOMEM (12)' >&2; exit 1", want: "KVM_CREATE_VM /dev/kvm: ENOMEM (12)"},
		{text: "kill -9 $$", want: "was killed by signal 9"},
	} {
		err := runGuest(t.Context(), l, script(c.text), "/dev/x")
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		var failed *GuestError
		if !errors.As(err, &failed) || !strings.Contains(failed.Text, c.want) || failed.Hangs != c.hangs {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	if err := runGuest(t.Context(), l, "/no/such/probe", "/dev/x"); err == nil || errors.As(err, new(*GuestError)) {
		t.Errorf("without a probe: %v", err)
	}
	hanging := script("exec sleep 600")
	for _, limit := range []time.Duration{0, 50 * time.Millisecond} { // before the start and after it
		ctx, cancel := context.WithTimeoutCause(t.Context(), limit, &GuestError{Text: "the limit", Hangs: true})
		defer cancel()
		var failed *GuestError
		if err := runGuest(ctx, l, hanging, "/dev/x"); !errors.As(err, &failed) || !failed.Hangs {
			t.Errorf("a probe that hangs, with a limit of %v: %v", limit, err)
		}
	}
}

// The probe's guest ends on every host, with one of the distinct outcomes.
//
// Invariant machine-requirements.
func TestRealProof(t *testing.T) {
	l, probe := launcher(t), filepath.Join(t.TempDir(), "probe")
	must.Do(t, image.WriteProbe(probe))
	s := engine.Session{Launcher: l, Probe: probe}
	err := Of(s).KVM(t.Context())
	var lack *Lack
	switch {
	case err == nil:
		t.Log("KVM works on this host")
	case errors.As(err, &lack) && lack.Reason != "" && lack.Advice != "":
		t.Log(err)
	default:
		t.Errorf("KVM: %v", err)
	}
	if err := runGuest(t.Context(), l, probe, "/dev/null"); err == nil || !strings.Contains(err.Error(), "KVM_GET_API_VERSION /dev/null: ENOTTY") {
		t.Errorf("a device that is not KVM: %v", err)
	}
}
