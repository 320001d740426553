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

	"github.com/touchstone-bench/touchstone/test/lab/job"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// emulator is what runs machines of an architecture.
type emulator struct {
	program string
	pkg     string // of Debian
	board   []string
	console string
	// emulated and native are the arguments for the CPU, by software and by KVM.
	emulated, native []string
}

var emulators = map[string]emulator{
	"amd64": {
		program: "qemu-system-x86_64", pkg: "qemu-system-x86", board: []string{"-machine", "q35"}, console: "ttyS0",
		// With these features, or with a thread for each CPU, kernels crash in QEMU 7.2.
		emulated: []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,-cx16,-la57,-pku"},
		native:   []string{"-accel", "kvm", "-cpu", "host"},
	},
	"arm64": {
		program: "qemu-system-aarch64", pkg: "qemu-system-arm", board: []string{"-machine", "virt"}, console: "ttyAMA0",
		emulated: []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "cortex-a72"},
		native:   []string{"-accel", "kvm", "-cpu", "host"},
	},
}

// oldest is the oldest version of QEMU that the machines are known to work with.
const oldest = 7

// versionLimit bounds the call that asks for QEMU's version.
const versionLimit = 30 * time.Second

var versionLine = regexp.MustCompile(`^QEMU emulator version (\d+)\.(\d+)`)

// emulator gives what runs a machine, and where its program is.
func (l *Lab) emulator(ctx context.Context, m Machine) (e emulator, program string, err error) {
	e, ok := emulators[m.Arch]
	if !ok {
		return e, "", fmt.Errorf("there is no emulator for %s", m.Arch)
	}
	program, err = e.find(ctx, l.Launcher)
	return e, program, err
}

// find finds the program, and makes sure that it is new enough.
func (e emulator) find(ctx context.Context, launcher *process.Launcher) (string, error) {
	path, err := exec.LookPath(e.program)
	if err != nil {
		return "", fmt.Errorf("%w; install the package %s", err, e.pkg)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, versionLimit, fmt.Errorf("%s did not tell its version within %v", e.program, versionLimit))
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Stdout = &said
	if err := launcher.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", e.program, err)
	}
	return path, e.check(said.Bytes())
}

// check reads what the program says of its version.
func (e emulator) check(said []byte) error {
	found := versionLine.FindSubmatch(said)
	if found == nil {
		return fmt.Errorf("%s does not tell its version: %.200q", e.program, said)
	}
	if major, err := strconv.Atoi(string(found[1])); err != nil || major < oldest {
		return fmt.Errorf("%s is of version %s.%s, and %d.0 is needed; install a newer package %s", e.program, found[1], found[2], oldest, e.pkg)
	}
	return nil
}

// kvmLimit is how long a machine may take to boot and switch itself off where KVM works, which is done in a few seconds.
const kvmLimit = 15 * time.Second

// useKVM tells whether KVM runs a machine: if it does not work, the kernel refuses, or never gets anywhere.
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
			l.progress(m, "KVM does not work here, it is emulated: %v", shortly(why))
		}
	}
	return why == nil
}

// tryKVM boots a machine that has nothing to do.
func (l *Lab) tryKVM(ctx context.Context, m Machine, i Image) error {
	out, err := os.MkdirTemp("", "lab-")
	if err != nil {
		return err
	}
	_, err = l.boot(ctx, m, i, job.Job{Hostname: m.Name}, nil, Options{BootLimit: kvmLimit, Limit: kvmLimit, Out: out, kvm: true})
	return errors.Join(err, os.RemoveAll(out))
}
