// Package inventory lists the resources of a machine that a program may leave behind: processes, mounts, network interfaces and
// namespaces, cgroups and files. Two lists, before and after the program, show its leftovers, and resources of others that it removed.
//
// It is not part of the product. The lab lists a whole virtual machine with it, and the campaign a host in namespaces.
package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Resources is a set of resources. A key is the kind and the name or path.
type Resources map[string]bool

// List lists all resources of this machine. files are the directories whose files count, without the files below skip.
func List(files []string, skip ...string) (Resources, error) {
	r := Resources{}
	err := errors.Join(r.processes(), r.mounts(), r.cgroups(), r.interfaces(), r.namespaces())
	for _, dir := range files {
		err = errors.Join(err, r.files(dir, skip))
	}
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	return r, nil
}

// Beyond lists the resources in r that are not in baseline, except files below the paths to keep.
func (r Resources) Beyond(baseline Resources, keep ...string) []string {
	var additions []string
	for resource := range r {
		kind, path, _ := strings.Cut(resource, " ")
		isKept := kind == "file" && slices.ContainsFunc(keep, func(k string) bool { return path == k || strings.HasPrefix(path, k+"/") })
		if !baseline[resource] && !isKept {
			additions = append(additions, resource)
		}
	}
	slices.Sort(additions)
	return additions
}

// Add adds a resource of a kind that List does not know.
func (r Resources) Add(kind, name string) { r[kind+" "+name] = true }

// kernelThreads is the ID of kthreadd, the parent of all kernel threads.
const kernelThreads = 2

// kernelThread reports whether a process is one. In a PID namespace another process may have the ID of kthreadd.
func kernelThread(pid, parent string, cmdline []byte) bool {
	k := strconv.Itoa(kernelThreads)
	return len(cmdline) == 0 && (pid == k || parent == k)
}

// Zombie ends the name of a process that has exited, and that its parent has not reaped.
const Zombie = ", a zombie"

// processes lists the processes. One that exits meanwhile does not count, and a zombie does.
func (r Resources) processes() error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		// State and parent follow the name, which may contain any character.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, parent := filepath.Base(dir), string(fields[1])
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || pid == strconv.Itoa(os.Getpid()) || kernelThread(pid, parent, line) {
			continue
		}
		name := fmt.Sprintf("%s %q", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		if string(fields[0]) == "Z" {
			name += Zombie
		}
		r.Add("process", name)
	}
	return nil
}

func (r Resources) mounts() error {
	mounts, err := mountinfo.GetMounts(nil)
	for _, m := range mounts {
		r.Add("mount", m.Mountpoint+" "+m.FSType)
	}
	return err
}

func (r Resources) cgroups() error {
	return filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another program has just removed it
		}
		if err == nil && d.IsDir() {
			r.Add("cgroup", path)
		}
		return err
	})
}

func (r Resources) interfaces() error {
	entries, err := os.ReadDir("/sys/class/net")
	for _, e := range entries {
		r.Add("interface", e.Name())
	}
	return err
}

// namespaces lists the network namespaces of all processes. A mount can keep a further one alive, and is in the list of mounts.
func (r Resources) namespaces() error {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil { // the process may have exited
			r.Add("namespace", name)
		}
	}
	return err
}

func (r Resources) files(dir string, skip []string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another program has just removed it
		}
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skip, path) {
			return filepath.SkipDir
		}
		r.Add("file", path)
		return nil
	})
}
