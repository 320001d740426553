// Package job defines the messages between the host and a virtual machine of the lab. The host writes a [Job] to one disk, the
// machine writes a [Report] to another one. Each disk holds a plain tar archive. A tar archive needs no file system that both sides
// support, and it marks its end on a longer disk. The package refuses archives with anything but regular files with plain names.
package job

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// Directories in the machine.
const (
	// Dir holds the files of the job.
	Dir = "/opt/lab"
	// Out is the directory for output files. It is in memory, so steps can write to it when the disk is full.
	Out = "/out"
	// Modules is the directory of kernel modules in the initramfs. The names are in load order.
	Modules = "/modules"
)

// Messages of the machine on its console.
const (
	// Prefix marks the lines that are meant for the host.
	Prefix = "lab: "
	// Up is the message after the boot.
	Up = "the machine is up"
)

// Job is the work of a machine.
type Job struct {
	// Hostname is the machine's name.
	Hostname string `json:"hostname"`
	// Steps are executed one after the other. A failed step does not stop the job.
	Steps []Step `json:"steps"`
	// CPUs are the CPUs of the steps in the kernel's notation, such as "1-2". The default is all.
	CPUs string `json:"cpus,omitempty"`
	// Keep lists files and directories that steps may leave behind; see Report.Left.
	Keep []string `json:"keep,omitempty"`
}

// Step is one program.
type Step struct {
	// Name names the file with its output, Name.log below Out.
	Name string `json:"name"`
	// Args are the program and its arguments.
	Args []string `json:"args"`
	// Env holds environment variables in addition to PATH and the user's variables.
	Env []string `json:"env,omitempty"`
	// Stdout names a file below Out for the standard output. The default is Name.log.
	Stdout string `json:"stdout,omitempty"`
	// User is the name of the account in /etc/passwd that runs the step, in its home directory. The default is root.
	User string `json:"user,omitempty"`
	// Limit is the timeout. After it the step's process group is killed.
	Limit time.Duration `json:"limit_ns"`
	// Repeat makes a step that fails run once more. It is for steps that fail by faults of an emulator, or because the host is busy.
	Repeat bool `json:"repeat,omitempty"`
	// RepeatArgs replace Args when the step runs once more; nil are the same. They give a slow machine more time.
	RepeatArgs []string `json:"repeat_args,omitempty"`
}

// Report is the result of a job.
type Report struct {
	Steps []Outcome `json:"steps"`
	// Left lists the resources that the steps left behind: processes, mounts, cgroups, network interfaces, and files outside Job.Keep.
	Left []string `json:"left"`
}

// Step returns the outcome of the step with this name, or nil.
func (r *Report) Step(name string) *Outcome {
	if i := slices.IndexFunc(r.Steps, func(o Outcome) bool { return o.Name == name }); i >= 0 {
		return &r.Steps[i]
	}
	return nil
}

// Outcome is the result of a step.
type Outcome struct {
	Name string `json:"name"`
	// Code is the exit code, or -1 without one.
	Code int `json:"code"`
	// Error is the reason for a missing exit code: the program did not start, was killed, or exceeded its limit.
	Error string `json:"error,omitempty"`
	// Elapsed is the duration by the machine's clock.
	Elapsed time.Duration `json:"elapsed_ns"`
	// Memory is the peak resident memory of the program in bytes, without its children. It is the kernel's high-water mark, read
	// shortly before the exit.
	Memory int64 `json:"memory_bytes"`
	// Written is the number of bytes that all processes wrote to the disk, with the caches flushed after the step.
	Written int64 `json:"written_bytes"`
	// Output is the end of Name.log.
	Output string `json:"output,omitempty"`
	// Earlier is the failed outcome of a step that ran once more; nil for other steps.
	Earlier *Outcome `json:"earlier,omitempty"`
}

// Execute executes the step with run, once more if the step may be repeated and fails.
func (s Step) Execute(run func(Step) Outcome) Outcome {
	outcome := run(s)
	if s.Repeat && !outcome.OK() {
		firstTry := outcome
		if s.RepeatArgs != nil {
			s.Args = s.RepeatArgs
		}
		outcome = run(s)
		outcome.Earlier = &firstTry
	}
	return outcome
}

// OK reports whether the program exited with code 0.
func (o *Outcome) OK() bool { return o != nil && o.Code == 0 && o.Error == "" }

// documentName is the name of the job or report in an archive.
const documentName = "document.json"

// Size limits for files on a disk, in bytes.
const (
	maxDocument = 64 << 20
	maxFile     = 1 << 30
)

// Write writes an archive with a document, which is a Job or a Report. files maps names in the archive to files. The document is the last
// entry, so an archive with a document is complete.
func Write(w io.Writer, document any, files map[string]string) error {
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := addFile(archive, name, files[name]); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if err := add(archive, documentName, 0o600, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	return archive.Close()
}

func addFile(archive *tar.Writer, name, file string) error {
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was only read
	info, err := content.Stat()
	if err != nil {
		return err
	}
	return add(archive, name, info.Mode().Perm(), info.Size(), content)
}

func add(archive *tar.Writer, name string, mode fs.FileMode, size int64, content io.Reader) error {
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Size: size}); err != nil {
		return err
	}
	// A process may still append to a file. The entry must not exceed the size in its header.
	_, err := io.CopyN(archive, content, size)
	return err
}

// ErrNoReport is the error for a disk to which the machine wrote no report.
var ErrNoReport = errors.New("the report is missing")

// Read reads an archive: it decodes the document, and writes the files to a directory.
func Read(r io.Reader, dir string, document any) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	found := false
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && !found:
			return ErrNoReport
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the archive: %w", err)
		case header.Name == documentName:
			found = true
			err = json.NewDecoder(io.LimitReader(archive, maxDocument)).Decode(document)
		default:
			err = extractFile(root, header, archive)
		}
		if err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

func extractFile(root *os.Root, header *tar.Header, content io.Reader) error {
	if header.Typeflag != tar.TypeReg || path.Base(header.Name) != header.Name || header.Size > maxFile {
		return errors.New("not a regular file of at most 1 GiB with a plain name")
	}
	file, err := root.OpenFile(header.Name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fs.FileMode(header.Mode)&fs.ModePerm)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
