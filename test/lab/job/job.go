// Package job is what the host and a machine of the lab tell each other: a [Job] goes in, a [Report] comes out, each as a tar
// archive that lies on a disk of its own. A tar archive, because it needs no file system of which the two would have
// to agree, and tells where it ends on a disk that is longer.
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

// Where things are in the machine.
const (
	// Dir has the files of the job.
	Dir = "/opt/lab"
	// Out is for the files that are to come out. It is in memory, so that there is room in it when the disk is full.
	Out = "/out"
	// Modules has, in the initramfs, the kernel modules that the machine needs, in the order of their names.
	Modules = "/modules"
)

// What the machine says on its console.
const (
	// Prefix begins the lines that are for the host.
	Prefix = "lab: "
	// Up follows it when the machine has booted.
	Up = "the machine is up"
)

// Job is what a machine is to do.
type Job struct {
	// Hostname is the machine's name.
	Hostname string `json:"hostname"`
	// Steps are executed one after the other, whatever becomes of those before.
	Steps []Step `json:"steps"`
	// Keep are paths of files and directories that steps may leave behind; see Report.Left.
	Keep []string `json:"keep,omitempty"`
}

// Step is one program.
type Step struct {
	// Name names the file with its output, Name.log below Out.
	Name string `json:"name"`
	// Args are the program and its arguments.
	Args []string `json:"args"`
	// Env are variables beside PATH and those of the user.
	Env []string `json:"env,omitempty"`
	// Stdout names a file below Out for what the program writes to standard output; empty is Name.log.
	Stdout string `json:"stdout,omitempty"`
	// User is who runs it, as /etc/passwd names them; empty is root. It starts in the user's home.
	User string `json:"user,omitempty"`
	// Limit is how long it may take. Then its process group is killed.
	Limit time.Duration `json:"limit_ns"`
}

// Report is what became of a job.
type Report struct {
	Steps []Outcome `json:"steps"`
	// Left is what there is at the end and was not before the first step: processes, mounts, cgroups, network interfaces,
	// and files that are not the job's to keep.
	Left []string `json:"left"`
}

// Step gives the outcome of the step of a name; nil if there is none.
func (r *Report) Step(name string) *Outcome {
	if i := slices.IndexFunc(r.Steps, func(o Outcome) bool { return o.Name == name }); i >= 0 {
		return &r.Steps[i]
	}
	return nil
}

// Outcome is what became of a step.
type Outcome struct {
	Name string `json:"name"`
	// Code is the exit code; -1 if there is none.
	Code int `json:"code"`
	// Error says why there is no exit code: it could not be started, was killed, or took longer than its limit.
	Error string `json:"error,omitempty"`
	// Elapsed is the time it took, by the machine's clock.
	Elapsed time.Duration `json:"elapsed_ns"`
	// Memory is the most resident memory that the program itself had, without those that it started, in bytes. It is the
	// kernel's high-water mark as seen shortly before the end.
	Memory int64 `json:"memory_bytes"`
	// Written is what was written to the disk until all of it was there, in bytes, by whomever.
	Written int64 `json:"written_bytes"`
	// Output is the end of what was written to Name.log.
	Output string `json:"output,omitempty"`
}

// OK tells whether the program ended with exit code 0.
func (o *Outcome) OK() bool { return o != nil && o.Code == 0 && o.Error == "" }

// Names in the archives.
const (
	jobName    = "job.json"
	reportName = "report.json"
)

// Bounds of what is read from a disk, in bytes.
const (
	maxDocument = 64 << 20
	maxFile     = 1 << 30
)

// Write writes a job's archive, with files of the host: they will be in Dir by these names.
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

// Read reads a job's archive, and puts its files into a directory.
func Read(r io.Reader, dir string) (Job, error) {
	var job Job
	err := extract(r, dir, jobName, &job)
	return job, err
}

// WriteReport writes a report's archive, with the regular files of a directory. The report comes last: an archive
// that has it is whole.
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

// ErrNoReport says that a machine has ended without one.
var ErrNoReport = errors.New("there is no report")

// ReadReport reads a report's archive, and puts its files into a directory.
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
	// What is still being written must not grow past what was promised.
	header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size()}
	if err := archive.WriteHeader(&header); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	if _, err := io.CopyN(archive, content, info.Size()); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return nil
}

// extract puts the files of an archive into a directory, and reads its document. The error is fs.ErrNotExist if it has none.
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
		return errors.New("it is no file of at most 1 GiB with a plain name")
	}
	file, err := root.OpenFile(header.Name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fs.FileMode(header.Mode)&fs.ModePerm)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
