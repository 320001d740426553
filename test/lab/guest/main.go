// Command guest is the init process of the lab's virtual machines, in the initramfs and afterwards. It loads modules, mounts
// the disk and the usual file systems of Debian, executes the steps of the job on the second disk one after the other, writes the
// report to the third disk, and powers the machine off.
//
// It provides the parts of systemd that Touchstone depends on: cgroup v2 with all controllers enabled, a session cgroup below the root
// cgroup, shared mounts, /run and /tmp in memory, and a reaper of orphans. It writes errors to the console, and the host keeps the
// last lines of the console output.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// The machine's disks, in the order of the -drive arguments of QEMU.
const (
	rootDisk = "/dev/vda"
	inDisk   = "/dev/vdb"
	outDisk  = "/dev/vdc"
)

// root is the mount point of the disk before it becomes the root.
const root = "/root"

func main() {
	if err := run(); err != nil {
		say("%v", err)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		say("power off: %v", err)
	}
	select {} // the kernel panics if the init process exits
}

// say writes a message for the host to the console.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, job.Prefix+format+"\n", args...)
}

func run() error {
	if err := boot(); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	say(job.Up)
	work, err := readJob()
	if err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	if err := unix.Sethostname([]byte(work.Hostname)); err != nil {
		return fmt.Errorf("set the hostname: %w", err)
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
	err = job.Read(bufio.NewReaderSize(disk, 1<<20), job.Dir, &work)
	return work, err
}

func writeReport(report job.Report) error {
	entries, err := os.ReadDir(job.Out)
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.Type().IsRegular() {
			files[e.Name()] = out(e.Name())
		}
	}
	disk, err := os.OpenFile(outDisk, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(disk, 1<<20)
	err = job.Write(buffered, report, files)
	return errors.Join(err, buffered.Flush(), disk.Sync(), disk.Close())
}

// tailOf returns the last 32 KiB of a file, or the text of the error.
func tailOf(file string) string {
	const limit = 32 << 10
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(info.Size(), limit))
	n, _ := f.ReadAt(text, info.Size()-int64(len(text)))
	return string(text[:n])
}

// out returns the path of an output file.
func out(name string) string { return filepath.Join(job.Out, name) }
