package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// Options configure the boot of a machine.
type Options struct {
	// Out is the directory for the job's output files and for ConsoleLog.
	Out string
	// Emulated means that KVM is not used. It works in an emulated machine on every host.
	Emulated bool
	// BootLimit limits the time until the machine is up, Limit the time until it is off.
	BootLimit, Limit time.Duration

	kernel []string               // extra arguments for the kernel
	qemu   []string               // extra arguments for QEMU
	kvm    bool                   // use KVM instead of emulation
	began  func(qemu *os.Process) // called when QEMU has started; nil for none
}

// ConsoleLog is the name of the file with the machine's console output.
const ConsoleLog = "console.log"

// Default limits against hanging. An emulated machine on a busy computer needs a small part of them.
const (
	usualBootLimit = 10 * time.Minute
	usualLimit     = 45 * time.Minute
)

// outputLimit bounds the wait for buffered output after QEMU has exited.
const outputLimit = 10 * time.Second

// outSize is the size of the output disk in bytes. Its file is sparse.
const outSize = 512 << 20

// BootError reports that a machine did not finish its job.
type BootError struct {
	Machine string
	Cause   error
	// Console holds the last lines of the machine's console output.
	Console string
}

func (e *BootError) Error() string {
	console := e.Console
	if console == "" {
		console = "(nothing)"
	}
	return fmt.Sprintf("machine %s: %v; end of its console output:\n%s", e.Machine, e.Cause, console)
}

// Unwrap returns the cause.
func (e *BootError) Unwrap() error { return e.Cause }

// firstLine returns the first line of an error, without the console output.
func firstLine(err error) string {
	if b := (*BootError)(nil); errors.As(err, &b) {
		err = b.Cause
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Boot boots a machine from its system image, passes it a job with files of the host, waits until the machine is off, and returns the
// report. A failed step is part of the report. Boot returns an error only if the report is missing: a *BootError if QEMU was started.
// Boot removes everything that belongs to the machine, also after an error.
func (l *Lab) Boot(ctx context.Context, m Machine, i Image, work job.Job, files map[string]string, o Options) (job.Report, error) {
	if o.BootLimit == 0 {
		o.BootLimit = usualBootLimit
	}
	if o.Limit == 0 {
		o.Limit = usualLimit
	}
	o.kvm = !o.Emulated && l.useKVM(ctx, m, i)
	return l.boot(ctx, m, i, work, files, o)
}

func (l *Lab) boot(ctx context.Context, m Machine, i Image, work job.Job, files map[string]string, o Options) (job.Report, error) {
	zero := job.Report{}
	q, err := l.emulator(ctx, m)
	if err != nil {
		return zero, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	d, err := l.disks(m, i, work, files)
	if err != nil {
		return zero, fmt.Errorf("prepare machine %s: %w", m.Name, err)
	}
	defer d.close()
	console := &console{limit: consoleKept, up: make(chan struct{}), progress: func(line string) { l.progress(m.Name, "%s", line) }}
	cause := l.emulate(ctx, q, q.args(m, i, o), d, console, o)
	cause = errors.Join(cause, os.WriteFile(filepath.Join(o.Out, ConsoleLog), []byte(console.text(consoleKept)), 0o644))
	if cause != nil {
		return zero, &BootError{Machine: m.Name, Cause: cause, Console: console.text(consoleEnd)}
	}
	report, err := d.report(o.Out)
	if err != nil {
		return zero, &BootError{Machine: m.Name, Cause: fmt.Errorf("powered off: %w%s", err, console.panicked()), Console: console.text(consoleEnd)}
	}
	return report, nil
}

// disks are the files of one boot. They are unlinked, and live as long as their descriptors.
type disks struct{ initramfs, in, out *os.File }

// The descriptors of these files in QEMU.
const (
	initramfsFD = 3 + iota
	inFD
	outFD
)

func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (l *Lab) disks(m Machine, i Image, work job.Job, files map[string]string) (d disks, err error) {
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	for _, file := range []**os.File{&d.initramfs, &d.in, &d.out} {
		if *file, err = os.CreateTemp("", "lab-"); err != nil {
			return d, err
		}
		if err = os.Remove((*file).Name()); err != nil {
			return d, err
		}
	}
	if err := buffered(d.initramfs, func(w io.Writer) error {
		return writeInitramfs(w, filepath.Join(l.Guest, "guest-"+m.Arch), i.Modules)
	}); err != nil {
		return d, err
	}
	if err := buffered(d.in, func(w io.Writer) error { return job.Write(w, work, files) }); err != nil {
		return d, err
	}
	return d, d.out.Truncate(outSize)
}

func buffered(file *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(file, 1<<20)
	return errors.Join(write(w), w.Flush())
}

func (d disks) close() {
	for _, file := range []*os.File{d.initramfs, d.in, d.out} {
		if file != nil {
			_ = file.Close() // the file has no name, so nothing reads it later
		}
	}
}

// report reads the report from the output disk, and writes its files to a directory.
func (d disks) report(dir string) (job.Report, error) {
	if _, err := d.out.Seek(0, io.SeekStart); err != nil {
		return job.Report{}, err
	}
	var report job.Report
	err := job.Read(bufio.NewReaderSize(d.out, 1<<20), dir, &report)
	return report, err
}

// fastKernel holds kernel arguments that make an emulated machine faster. Mitigations cost the most under emulation. Without address
// randomization QEMU translates code once.
var fastKernel = []string{"mitigations=off", "init_on_alloc=0", "nokaslr", "norandmaps"}

// args returns the arguments of QEMU.
func (e emulator) args(m Machine, i Image, o Options) []string {
	cpu := e.emulated
	if o.kvm {
		cpu = e.native
	}
	kernel := append([]string{"console=" + e.console, "panic=-1", "quiet"}, fastKernel...)
	if !o.kvm {
		kernel = append(kernel, e.emulatedKernel...)
	}
	kernel = append(kernel, o.kernel...)
	args := append([]string{"-name", m.Name, "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"}, e.board...)
	args = append(args, cpu...)
	args = append(args,
		"-smp", strconv.Itoa(m.CPUs), "-m", strconv.Itoa(m.Memory), "-nic", "none",
		"-kernel", i.Kernel, "-initrd", descriptor(initramfsFD), "-append", strings.Join(kernel, " "),
	)
	for _, disk := range []string{
		// QEMU writes changes to a temporary file, which it unlinks at once.
		"file=" + i.Disk + ",snapshot=on,cache=unsafe",
		"file=" + descriptor(inFD) + ",readonly=on,cache=unsafe",
		"file=" + descriptor(outFD) + ",cache=unsafe",
	} {
		args = append(args, "-drive", disk+",format=raw,if=virtio")
	}
	return append(args, o.qemu...)
}

// emulate runs QEMU until it exits. It returns an error unless the machine powered itself off within the limits.
func (l *Lab) emulate(ctx context.Context, q qemu, args []string, d disks, console *console, o Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("still running after %v", o.Limit))
	defer cancel()
	ctx, hang := context.WithCancelCause(ctx)
	defer hang(nil)
	var output process.Output
	if err := output.Open(console, nil); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, q.argv[0], append(slices.Clone(q.argv[1:]), args...)...)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+os.TempDir()), q.env...) // TMPDIR is the directory of QEMU's snapshot file
	cmd.ExtraFiles = []*os.File{d.initramfs, d.in, d.out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output.Set(cmd)
	exits, err := l.Launcher.Start(cmd)
	if err = errors.Join(err, output.Close()); err != nil {
		return err
	}
	if o.began != nil {
		o.began(cmd.Process)
	}
	timer := time.NewTimer(o.BootLimit)
	defer timer.Stop()
	signal := console.up
	for {
		select {
		case <-signal:
			timer.Stop()
			signal = nil
		case <-timer.C:
			hang(fmt.Errorf("still booting after %v", o.BootLimit))
		case exit := <-exits:
			// QEMU has closed its end of the pipe, so the rest of the output arrives at once.
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), outputLimit)
			outputErr := output.Wait(rest)
			cancel()
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case exit.Status != 0:
				return fmt.Errorf("%w: %s", &process.ExitError{Command: q.program, Exit: exit}, strings.TrimSpace(output.Tail()))
			default:
				return outputErr
			}
		}
	}
}
