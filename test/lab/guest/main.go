// Command guest is the first and only process of a machine of the lab: what the kernel starts from its initramfs, and what
// init is afterwards. It loads modules, mounts the disk and what Debian mounts, executes the job that it finds on the second
// disk, one step after the other, writes the report to the third, and switches the machine off.
//
// It stands for systemd in what Touchstone can see: cgroup v2 with all controllers handed down, a session's cgroup that is no
// root, shared mounts, /run and /tmp in memory, orphans that are reaped. Whatever goes wrong is said on the console, of
// which the host keeps the end.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// The machine's disks, in the order of the host's command line.
const (
	rootDisk = "/dev/vda"
	inDisk   = "/dev/vdb"
	outDisk  = "/dev/vdc"
)

// root is where the disk is mounted before it becomes the root.
const root = "/root"

func main() {
	if err := live(); err != nil {
		say("%v", err)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		say("switch off: %v", err)
	}
	select {} // if the first process ended the kernel would panic
}

// say writes a line that the host passes on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, job.Prefix+format+"\n", args...)
}

func live() error {
	if err := boot(); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	say(job.Up)
	work, err := readJob()
	if err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	if err := unix.Sethostname([]byte(work.Hostname)); err != nil {
		return fmt.Errorf("set the name of the host: %w", err)
	}
	report, err := execute(work)
	if err != nil {
		return fmt.Errorf("execute the job: %w", err)
	}
	if err := writeReport(report); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func readJob() (work job.Job, err error) {
	if err := os.MkdirAll(job.Dir, 0o755); err != nil {
		return work, err
	}
	disk, err := os.Open(inDisk)
	if err != nil {
		return work, err
	}
	defer func() { _ = disk.Close() }() // it was only read
	return job.Read(bufio.NewReaderSize(disk, 1<<20), job.Dir)
}

func writeReport(report job.Report) error {
	disk, err := os.OpenFile(outDisk, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(disk, 1<<20)
	err = job.WriteReport(buffered, report, job.Out)
	return errors.Join(err, buffered.Flush(), disk.Sync(), disk.Close())
}

// tailOf gives the end of a file.
func tailOf(file string) string {
	const most = 32 << 10
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// out is the path of a file that is to come out.
func out(name string) string { return filepath.Join(job.Out, name) }
