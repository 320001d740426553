package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// resources is a set of the machine's resources. A key is the kind and the name or path.
type resources map[string]bool

// inventory lists all resources that a program may leave behind. It needs no list of network namespaces: a process or a mount keeps a
// namespace alive, and the namespace its interfaces.
func inventory() (resources, error) {
	r := resources{}
	for _, list := range []func() error{r.processes, r.mounts, r.cgroups, r.interfaces, r.files} {
		if err := list(); err != nil {
			return nil, fmt.Errorf("list resources: %w", err)
		}
	}
	return r, nil
}

// left lists the resources in now that are not in r, except files below the paths to keep.
func (r resources) left(now resources, keep []string) []string {
	var left []string
	for resource := range now {
		kind, path, _ := strings.Cut(resource, " ")
		kept := kind == "file" && slices.ContainsFunc(keep, func(k string) bool { return path == k || strings.HasPrefix(path, k+"/") })
		if !r[resource] && !kept {
			left = append(left, resource)
		}
	}
	slices.Sort(left)
	return left
}

func (r resources) add(kind, name string) { r[kind+" "+name] = true }

// kernelThreads is the ID of kthreadd, the parent of all kernel threads.
const kernelThreads = 2

func (r resources) processes() error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // the process has exited
		}
		// State and parent follow the name, which may contain any character.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, parent := filepath.Base(dir), string(fields[1])
		if pid == strconv.Itoa(os.Getpid()) || pid == strconv.Itoa(kernelThreads) || parent == strconv.Itoa(kernelThreads) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		r.add("process", fmt.Sprintf("%s %q, %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}), fields[0]))
	}
	return nil
}

func (r resources) mounts() error {
	mounts, err := mountinfo.GetMounts(nil)
	for _, m := range mounts {
		r.add("mount", m.Mountpoint+" "+m.FSType)
	}
	return err
}

func (r resources) cgroups() error {
	return filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			r.add("cgroup", path)
		}
		return err
	})
}

func (r resources) interfaces() error {
	entries, err := os.ReadDir("/sys/class/net")
	for _, e := range entries {
		r.add("interface", e.Name())
	}
	return err
}

// files lists all files on the disk and on tmpfs, except the lab's own.
func (r resources) files() error {
	skip := []string{"/proc", "/sys", job.Dir, job.Out}
	return filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skip, path) {
			return filepath.SkipDir
		}
		r.add("file", path)
		return nil
	})
}
