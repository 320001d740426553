package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// emulator describes QEMU for one architecture.
type emulator struct {
	program string
	pkg     string // the Debian package
	board   []string
	console string
	// emulated and native are the CPU arguments for emulation and for KVM.
	emulated, native []string
}

var emulators = map[string]emulator{
	"amd64": {
		program: "qemu-system-x86_64", pkg: "qemu-system-x86", board: []string{"-machine", "q35"}, console: "ttyS0",
		// In QEMU 7.2 kernels crash with the features that are disabled here.
		emulated: []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,-cx16,-la57,-pku"},
		native:   []string{"-accel", "kvm", "-cpu", "host"},
	},
	"arm64": {
		program: "qemu-system-aarch64", pkg: "qemu-system-arm", board: []string{"-machine", "virt"}, console: "ttyAMA0",
		emulated: []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "cortex-a72"},
		native:   []string{"-accel", "kvm", "-cpu", "host"},
	},
}

// oldest is the lowest major version of QEMU that is known to work.
const oldest = 7

// versionLimit bounds the call of QEMU with --version.
const versionLimit = 30 * time.Second

var versionLine = regexp.MustCompile(`^QEMU emulator version (\d+)\.(\d+)`)

// emulator returns the emulator for a machine and the path of its program.
func (l *Lab) emulator(ctx context.Context, m Machine) (e emulator, program string, err error) {
	e, ok := emulators[m.Arch]
	if !ok {
		return e, "", fmt.Errorf("no emulator for %s", m.Arch)
	}
	program, err = e.find(ctx, l.Launcher)
	return e, program, err
}

// find looks for the program on PATH and checks its version.
func (e emulator) find(ctx context.Context, launcher *process.Launcher) (string, error) {
	path, err := exec.LookPath(e.program)
	if err != nil {
		return "", fmt.Errorf("%w; install the package %s", err, e.pkg)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, versionLimit, fmt.Errorf("%s printed no version within %v", e.program, versionLimit))
	defer cancel()
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Stdout = &stdout
	if err := launcher.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("read the version of %s: %w", e.program, err)
	}
	return path, e.check(stdout.Bytes())
}

// check checks the output of the program with --version.
func (e emulator) check(stdout []byte) error {
	found := versionLine.FindSubmatch(stdout)
	if found == nil {
		return fmt.Errorf("unknown version of %s: %.200q", e.program, stdout)
	}
	if major, err := strconv.Atoi(string(found[1])); err != nil || major < oldest {
		return fmt.Errorf("%s has version %s.%s, but %d.0 is required; install a newer package %s", e.program, found[1], found[2], oldest, e.pkg)
	}
	return nil
}

// kvmLimit limits the boot with KVM that only tests KVM. A machine takes a few seconds to boot and power off if KVM works.
const kvmLimit = 15 * time.Second

// useKVM reports whether KVM can run a machine. Where KVM does not work, QEMU exits with an error or the machine hangs.
func (l *Lab) useKVM(ctx context.Context, m Machine, i Image) bool {
	if m.Arch != runtime.GOARCH || unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) != nil {
		return false
	}
	why, known := l.kvm[m.Name]
	if !known {
		l.progress(m, "trying KVM")
		why = l.tryKVM(ctx, m, i)
		if ctx.Err() != nil {
			return false
		}
		if l.kvm == nil {
			l.kvm = map[string]error{}
		}
		l.kvm[m.Name] = why
		if why != nil {
			l.progress(m, "emulated, because KVM does not work: %v", firstLine(why))
		}
	}
	return why == nil
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
