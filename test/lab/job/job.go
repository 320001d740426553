// Package job defines the messages between the host and a virtual machine of the lab. The host writes a [Job] to one disk, the
// machine writes a [Report] to another one. Each disk holds a plain tar archive. A tar archive needs no file system that both sides
// support, and it marks its end on a longer disk. The package refuses archives with anything but regular files with plain names.
package job

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
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
}

// OK reports whether the program exited with code 0.
func (o *Outcome) OK() bool { return o != nil && o.Code == 0 && o.Error == "" }

// Names in the archives.
const (
	jobName    = "job.json"
	reportName = "report.json"
)

// Size limits for files on a disk, in bytes.
const (
	maxDocument = 64 << 20
	maxFile     = 1 << 30
)

// Write writes the archive of a job. files maps names in Dir to files of the host.
func Write(w io.Writer, job Job, files map[string]string) error {
	archive := tar.NewWriter(w)
	if err := addDocument(archive, jobName, job); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := addFile(archive, name, files[name]); err != nil {
			return err
		}
	}
	return archive.Close()
}

// Read reads the archive of a job, and writes its files to a directory.
func Read(r io.Reader, dir string) (Job, error) {
	var job Job
	err := extract(r, dir, jobName, &job)
	return job, err
}

// WriteReport writes the archive of a report with the regular files of a directory. The report is the last entry, so an archive with a
// report is complete.
func WriteReport(w io.Writer, report Report, dir string) error {
	archive := tar.NewWriter(w)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if err := addFile(archive, e.Name(), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := addDocument(archive, reportName, report); err != nil {
		return err
	}
	return archive.Close()
}

// ErrNoReport is the error for a disk to which the machine wrote no report.
var ErrNoReport = errors.New("the report is missing")

// ReadReport reads the archive of a report, and writes its files to a directory.
func ReadReport(r io.Reader, dir string) (Report, error) {
	var report Report
	err := extract(r, dir, reportName, &report)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoReport
	}
	return report, err
}

func addDocument(archive *tar.Writer, name string, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err = archive.Write(text)
	return err
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
	// A process may still append to the file. The entry must not exceed the size in its header.
	header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size()}
	if err := archive.WriteHeader(&header); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	if _, err := io.CopyN(archive, content, info.Size()); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return nil
}

// extract writes the files of an archive to a directory, and decodes its document. Without a document it returns fs.ErrNotExist.
func extract(r io.Reader, dir, name string, document any) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	found := false
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if header.Name != name {
			err = extractFile(root, header, archive)
		} else {
			found = true
			err = json.NewDecoder(io.LimitReader(archive, maxDocument)).Decode(document)
		}
		if err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
	if !found {
		return fmt.Errorf("the archive has no %s: %w", name, fs.ErrNotExist)
	}
	return nil
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
