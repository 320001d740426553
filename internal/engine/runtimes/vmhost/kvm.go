package vmhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// kvmPath is the device of the kernel's hypervisor.
const kvmPath = "/dev/kvm"

// guestLimit bounds the proof. The guest takes microseconds with hardware virtualization, and milliseconds inside an emulated
// machine. The probe has a shorter limit of its own, with a more exact message.
const guestLimit = 15 * time.Second

// GuestError reports that the test guest did not do its work.
type GuestError struct {
	Text  string
	Hangs bool // it ran into a limit
}

func (e *GuestError) Error() string { return e.Text }

// KVM proves that this process can run a guest by /dev/kvm. Its Lack has one of the kinds ErrNoKVM, ErrNoPermission and
// ErrUnusableKVM.
func (h Host) KVM(ctx context.Context) error {
	device, err := os.OpenFile(h.path(kvmPath), os.O_RDWR, 0)
	switch {
	case err == nil:
		_ = device.Close()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		// A static node, as systemd makes it, exists without the driver.
		reason, advice := h.whyNoKVM()
		return &Lack{ErrNoKVM, reason, advice}
	case errors.Is(err, unix.EPERM):
		return &Lack{ErrNoPermission, kvmPath + " is forbidden by the device rules of this cgroup", "give this container or service the device " + kvmPath}
	case errors.Is(err, fs.ErrPermission):
		return &Lack{ErrNoPermission, "this user may not open " + kvmPath, refusal.Rights("run as root, or add the user to the group of the device (usually kvm)")}
	default:
		return &Lack{ErrNoKVM, err.Error(), "look at the kernel's log (dmesg)"}
	}
	err = h.Guest(ctx, h.path(kvmPath))
	var failed *GuestError
	if errors.As(err, &failed) {
		return h.unusable(failed)
	}
	return err
}

// unusable explains a device that runs no guest.
func (h Host) unusable(failed *GuestError) error {
	reason := kvmPath + " exists, but a small test guest does not run: " + failed.Text
	advice := "use a machine with hardware virtualization, or another runtime; the kernel's log (dmesg) may have the cause"
	switch {
	case h.exists("sys/module/kvm_pvm"):
		reason += "; the kernel's KVM is paravirtual (module kvm_pvm) and runs only guests that were built for it"
		advice = "use a machine with hardware or nested virtualization; no setting of this machine changes it"
	case strings.Contains(failed.Text, "EBUSY"):
		reason += "; another hypervisor, such as VirtualBox, uses the processor"
		advice = "stop its machines"
	}
	return &Lack{ErrUnusableKVM, reason, advice}
}

// whyNoKVM explains a missing /dev/kvm from the processor's flags and the kernel's modules.
func (h Host) whyNoKVM() (reason, advice string) {
	const missing = "there is no working " + kvmPath + ": "
	if h.registered() {
		return missing + "the kernel has KVM, and the device file is missing", "make it (mknod " + kvmPath + " c 10 232), or give this container the device"
	}
	if h.Arch != "amd64" {
		return missing + "the kernel has no KVM on this machine", "start a kernel with KVM in the mode for hypervisors (on arm64: EL2), and look at its log (dmesg)"
	}
	flags := h.flags()
	module := ""
	switch {
	case slices.Contains(flags, "svm"):
		module = "kvm_amd"
	case slices.Contains(flags, "vmx"):
		module = "kvm_intel"
	}
	switch {
	case module == "" && slices.Contains(flags, "hypervisor"):
		return missing + "this machine is virtual, and its hypervisor does not offer nested virtualization (neither svm nor vmx is in /proc/cpuinfo)",
			"switch nested virtualization on for this machine (KVM: kvm_intel.nested=1 or kvm_amd.nested=1 and the processor of the host; clouds: a type of machine that has it), or use bare metal"
	case module == "":
		return missing + "the processor has no virtualization, or the firmware has switched it off (neither svm nor vmx is in /proc/cpuinfo)",
			"switch Intel VT-x or AMD-V (SVM) on in the firmware"
	case h.exists("sys/module/" + module):
		return missing + "the kernel's module " + module + " is loaded without a device", "look at the kernel's log (dmesg): the firmware may have switched virtualization off"
	case h.hasModule(module):
		return missing + "the kernel's module " + module + " is not loaded", "load it: modprobe " + module
	}
	return missing + "this kernel has no module " + module, "use a kernel with KVM"
}

// registered reports whether the kernel's KVM is ready, with or without a file in /dev.
func (h Host) registered() bool {
	for line := range strings.Lines(h.text("proc/misc")) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == "kvm" {
			return true
		}
	}
	return false
}

// flags are the flags of the first processor.
func (h Host) flags() []string {
	for line := range strings.Lines(h.text("proc/cpuinfo")) {
		if name, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			return strings.Fields(flags)
		}
	}
	return nil
}

// once keeps the first result that is not the end of the caller's context.
type once struct {
	mu   sync.Mutex
	done bool
	err  error
}

var proof once

func (o *once) once(ctx context.Context, f func(context.Context) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return o.err
	}
	err := f(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o.done, o.err = true, err
	return err
}

// runGuest runs the probe's guest. A process that the kernel does not let die is left behind: it must not hold this program.
func runGuest(ctx context.Context, l *process.Launcher, probe, device string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, guestLimit, &GuestError{fmt.Sprintf("it did not end within %v", guestLimit), true})
	defer cancel()
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, probe, "kvm", "--device", device)
	cmd.Stderr = &complaint
	exits, err := l.Start(cmd)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("start a test guest: %w", err)
	}
	var exit process.Exit
	select {
	case exit = <-exits:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exit.Status == 0 {
		return nil
	}
	text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "kvm: ")
	if text == "" {
		text = (&process.ExitError{Command: probe, Exit: exit}).Error()
	}
	return &GuestError{text, exit.Status.ExitStatus() == probeHangs}
}

// probeHangs is the exit code of the probe's command kvm for a guest that hangs.
const probeHangs = 3
