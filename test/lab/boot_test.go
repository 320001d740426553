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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/test/lab/job"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// Options say how to boot a machine.
type Options struct {
	// Out is the directory for the files that come out, and for ConsoleLog.
	Out string
	// BootLimit is how long the machine may take until it is up, Limit how long in all.
	BootLimit, Limit time.Duration

	kernel []string // further arguments of the kernel
	qemu   []string // further arguments of QEMU
	kvm    bool     // not emulated
	began  func(qemu *os.Process)
}

// ConsoleLog is the file with what a machine has written to its console.
const ConsoleLog = "console.log"

// Limits for machines that are emulated on a busy computer.
const (
	usualBootLimit = 2 * time.Minute
	usualLimit     = 15 * time.Minute
)

// outputLimit bounds the wait for the rest of the output of QEMU, which has ended.
const outputLimit = 10 * time.Second

// outSize is the most that can come out of a machine, in bytes; the file is as long as what does.
const outSize = 512 << 20

// BootError says that a machine has not done its job to the end.
type BootError struct {
	Machine string
	Cause   error
	// Console is the end of what the machine wrote to its console.
	Console string
}

func (e *BootError) Error() string {
	console := e.Console
	if console == "" {
		console = "(nothing)"
	}
	return fmt.Sprintf("machine %s: %v; its console ends with:\n%s", e.Machine, e.Cause, console)
}

// Unwrap gives the cause.
func (e *BootError) Unwrap() error { return e.Cause }

// shortly is the first line of an error, without the console.
func shortly(err error) string {
	if b := (*BootError)(nil); errors.As(err, &b) {
		err = b.Cause
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Boot boots a machine with its system, has it do a job with files of the host, and gives the report, when the machine is off. Steps
// that fail are in the report; an error is that there is none, and if the machine was started it is a *BootError. Nothing is
// left of the machine in either case.
func (l *Lab) Boot(ctx context.Context, m Machine, i Image, work job.Job, files map[string]string, o Options) (job.Report, error) {
	if o.BootLimit == 0 {
		o.BootLimit = usualBootLimit
	}
	if o.Limit == 0 {
		o.Limit = usualLimit
	}
	o.kvm = l.useKVM(ctx, m, i)
	return l.boot(ctx, m, i, work, files, o)
}

func (l *Lab) boot(ctx context.Context, m Machine, i Image, work job.Job, files map[string]string, o Options) (job.Report, error) {
	none := job.Report{}
	e, program, err := l.emulator(ctx, m)
	if err != nil {
		return none, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	d, err := l.disks(m, i, work, files)
	if err != nil {
		return none, fmt.Errorf("prepare machine %s: %w", m.Name, err)
	}
	defer d.close()
	console := &console{limit: consoleKept, up: make(chan struct{}), progress: func(line string) { l.progress(m, "%s", line) }}
	cause := l.emulate(ctx, program, e.args(m, i, o), d, console, o)
	cause = errors.Join(cause, os.WriteFile(filepath.Join(o.Out, ConsoleLog), []byte(console.text(consoleKept)), 0o644))
	if cause != nil {
		return none, &BootError{Machine: m.Name, Cause: cause, Console: console.text(consoleEnd)}
	}
	report, err := d.report(o.Out)
	if err != nil {
		return none, &BootError{Machine: m.Name, Cause: fmt.Errorf("it is off: %w%s", err, console.panicked()), Console: console.text(consoleEnd)}
	}
	return report, nil
}

// disks are the files of a boot. They have no names any more.
type disks struct{ initramfs, in, out *os.File }

// The descriptors that QEMU has them by.
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
			_ = file.Close() // of a file that nobody can open any more
		}
	}
}

// report reads what has come out.
func (d disks) report(to string) (job.Report, error) {
	if _, err := d.out.Seek(0, io.SeekStart); err != nil {
		return job.Report{}, err
	}
	return job.ReadReport(bufio.NewReaderSize(d.out, 1<<20), to)
}

// fastKernel are arguments for kernels whose CPU may be emulated: what protects it costs the most there, and code that is always at
// the same address is translated once.
var fastKernel = []string{"mitigations=off", "init_on_alloc=0", "nokaslr", "norandmaps"}

// args is the command line of QEMU, without the program.
func (e emulator) args(m Machine, i Image, o Options) []string {
	cpu := e.emulated
	if o.kvm {
		cpu = e.native
	}
	kernel := append([]string{"console=" + e.console, "panic=-1", "quiet"}, fastKernel...)
	kernel = append(kernel, o.kernel...)
	args := append([]string{"-name", m.Name, "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"}, e.board...)
	args = append(args, cpu...)
	args = append(args,
		"-smp", strconv.Itoa(m.CPUs), "-m", strconv.Itoa(m.Memory), "-nic", "none",
		"-kernel", i.Kernel, "-initrd", descriptor(initramfsFD), "-append", strings.Join(kernel, " "),
	)
	for _, disk := range []string{
		// What is written goes to a file of QEMU's own, which it deletes at once.
		"file=" + i.Disk + ",snapshot=on,cache=unsafe",
		"file=" + descriptor(inFD) + ",readonly=on,cache=unsafe",
		"file=" + descriptor(outFD) + ",cache=unsafe",
	} {
		args = append(args, "-drive", disk+",format=raw,if=virtio")
	}
	return append(args, o.qemu...)
}

// emulate runs QEMU to its end. An error says why that is not the one that the machine has brought about.
func (l *Lab) emulate(ctx context.Context, program string, args []string, d disks, console *console, o Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("it did not end within %v", o.Limit))
	defer cancel()
	ctx, hang := context.WithCancelCause(ctx)
	defer hang(nil)
	var output process.Output
	if err := output.Open(console, nil); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+os.TempDir()) // where it makes the snapshot
	cmd.ExtraFiles = []*os.File{d.initramfs, d.in, d.out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output.Set(cmd)
	ended, err := l.Launcher.Start(cmd)
	if err = errors.Join(err, output.Close()); err != nil {
		return err
	}
	if o.began != nil {
		o.began(cmd.Process)
	}
	slow := time.NewTimer(o.BootLimit)
	defer slow.Stop()
	up := console.up
	for {
		select {
		case <-up:
			slow.Stop()
			up = nil
		case <-slow.C:
			hang(fmt.Errorf("it was not up within %v", o.BootLimit))
		case exit := <-ended:
			// All that it said comes at once, now that nobody holds the other end.
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), outputLimit)
			said := output.Wait(rest)
			cancel()
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case exit.Status != 0:
				return fmt.Errorf("%w: %s", &process.ExitError{Command: program, Exit: exit}, strings.TrimSpace(output.Tail()))
			default:
				return said
			}
		}
	}
}
