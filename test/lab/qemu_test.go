package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/image/debian"
	"github.com/touchstone-bench/touchstone/internal/linker"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// emulator describes QEMU for one architecture.
type emulator struct {
	program string
	board   []string
	console string
	// emulated and native are the CPU arguments for emulation and for KVM.
	emulated, native []string
	// emulatedKernel holds kernel arguments that an emulated machine needs.
	emulatedKernel []string
}

var emulators = map[string]emulator{
	"amd64": {
		program: "qemu-system-x86_64", board: []string{"-machine", "q35"}, console: "ttyS0",
		// The emulated CPU is AMD's with all features, among them virtualization, so KVM works in the machine: see nestedCPUs. Without
		// la57 page tables have four levels instead of five, so an emulated CPU translates the addresses of a virtual machine in fewer steps.
		emulated: []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,-la57"},
		native:   []string{"-accel", "kvm", "-cpu", "host"},
		// The kernel waits for ticks of the timer, and panics without them. On a busy host they come too late.
		emulatedKernel: []string{"no_timer_check"},
	},
	"arm64": {
		program: "qemu-system-aarch64", board: []string{"-machine", "virt"}, console: "ttyAMA0",
		emulated: []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "cortex-a72"},
		native:   []string{"-accel", "kvm", "-cpu", "host"},
	},
}

// qemuPackages have QEMU for all machines. The host's QEMU is not used: with QEMU 7.2 of Debian 12 a machine with two CPUs
// crashes when it runs a virtual machine of its own.
var qemuPackages = []string{"qemu-system-x86", "qemu-system-arm"}

// qemuMembers are patterns of the files that QEMU needs of its packages and their dependencies.
var qemuMembers = []string{"./usr/bin/qemu-system-*", "./usr/lib*", "./usr/share/qemu", "./usr/share/seabios"}

// qemuSpace is the free disk space in bytes for the build of QEMU's tree.
const qemuSpace = 2 << 30

// qemu is the command for starting an emulator of an unpacked tree.
type qemu struct {
	emulator
	argv []string // the first arguments
	env  []string
}

// emulator returns the emulator for a machine. It unpacks QEMU's packages if the cache does not have them.
func (l *Lab) emulator(ctx context.Context, m Machine) (qemu, error) {
	e, ok := emulators[m.Arch]
	if !ok {
		return qemu{}, fmt.Errorf("no emulator for %s", m.Arch)
	}
	key, err := keyOf(debian.Suite, runtime.GOARCH, qemuPackages, qemuMembers)
	if err != nil {
		return qemu{}, err
	}
	dir, err := l.cached(ctx, "qemu", key, func(temporary, destination string) error {
		return l.unpackTo(ctx, "qemu", runtime.GOARCH, temporary, destination, qemuPackages, qemuSpace,
			append([]string{"--no-same-owner", "--wildcards"}, qemuMembers...)...)
	})
	if err != nil {
		return qemu{}, fmt.Errorf("unpack QEMU: %w", err)
	}
	return e.in(dir)
}

// in returns the command for the emulator in a tree. It starts with the tree's own dynamic linker and libraries, because the
// host's may be older.
func (e emulator) in(tree string) (qemu, error) {
	program := filepath.Join(tree, "usr/bin", e.program)
	content, err := os.Open(program)
	if err != nil {
		return qemu{}, err
	}
	defer func() { _ = content.Close() }() // it was only read
	needs, err := linker.Read(content, filepath.Dir(program))
	if err != nil {
		return qemu{}, fmt.Errorf("read %s: %w", program, err)
	}
	if needs.Interpreter == "" {
		return qemu{}, fmt.Errorf("%s has no dynamic linker", program)
	}
	// Packages have links of the root to usr only after their installation.
	loader, err := filepath.EvalSymlinks(filepath.Join(tree, "usr", needs.Interpreter))
	if err != nil {
		return qemu{}, fmt.Errorf("look for the dynamic linker of %s: %w", program, err)
	}
	libraries, share := filepath.Dir(loader), filepath.Join(tree, "usr/share")
	return qemu{
		emulator: e,
		argv:     []string{loader, "--library-path", libraries, program, "-L", filepath.Join(share, "qemu"), "-L", filepath.Join(share, "seabios")},
		env:      []string{"QEMU_MODULE_DIR=" + filepath.Join(libraries, "qemu")},
	}, nil
}

// kvmLimit limits the boot with KVM that only tests KVM. A machine takes a few seconds to boot and power off if KVM works.
const kvmLimit = 15 * time.Second

// useKVM reports whether KVM can run a machine. Where KVM does not work, QEMU exits with an error or the machine hangs.
func (l *Lab) useKVM(ctx context.Context, m Machine, i Image) bool {
	if m.Arch != runtime.GOARCH || unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) != nil {
		return false
	}
	cause, ok := l.kvm[m.Name]
	if !ok {
		l.progress(m.Name, "trying KVM")
		cause = l.tryKVM(ctx, m, i)
		if ctx.Err() != nil {
			return false
		}
		if l.kvm == nil {
			l.kvm = map[string]error{}
		}
		l.kvm[m.Name] = cause
		if cause != nil {
			l.progress(m.Name, "emulated, because KVM does not work: %v", firstLine(cause))
		}
	}
	return cause == nil
}

// tryKVM boots a machine with an empty job.
func (l *Lab) tryKVM(ctx context.Context, m Machine, i Image) error {
	out, err := os.MkdirTemp("", "lab-")
	if err != nil {
		return err
	}
	_, err = l.boot(ctx, m, i, job.Job{Hostname: m.Name}, nil, Options{BootLimit: kvmLimit, Limit: kvmLimit, Out: out, kvm: true})
	return errors.Join(err, os.RemoveAll(out))
}
