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

// things are what there is on the machine, each by what it is and where.
type things map[string]bool

// inventory looks for all that a program may leave behind. Network namespaces live by processes or by mounts, and interfaces
// other than those of the host by namespaces.
func inventory() (things, error) {
	t := things{}
	for _, look := range []func() error{t.processes, t.mounts, t.cgroups, t.interfaces, t.files} {
		if err := look(); err != nil {
			return nil, fmt.Errorf("see what there is: %w", err)
		}
	}
	return t, nil
}

// left lists what there is now and was not then, but for files that may be.
func (t things) left(now things, keep []string) []string {
	var left []string
	for thing := range now {
		kind, path, _ := strings.Cut(thing, " ")
		kept := kind == "file" && slices.ContainsFunc(keep, func(k string) bool { return path == k || strings.HasPrefix(path, k+"/") })
		if !t[thing] && !kept {
			left = append(left, thing)
		}
	}
	slices.Sort(left)
	return left
}

func (t things) add(kind, what string) { t[kind+" "+what] = true }

// kernelThreads is the process whose children are threads of the kernel.
const kernelThreads = 2

func (t things) processes() error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		// What follows the name, which may hold anything: state and parent.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, parent := filepath.Base(dir), string(fields[1])
		if pid == strconv.Itoa(os.Getpid()) || pid == strconv.Itoa(kernelThreads) || parent == strconv.Itoa(kernelThreads) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		t.add("process", fmt.Sprintf("%s %q, %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}), fields[0]))
	}
	return nil
}

func (t things) mounts() error {
	mounts, err := mountinfo.GetMounts(nil)
	for _, m := range mounts {
		t.add("mount", m.Mountpoint+" "+m.FSType)
	}
	return err
}

func (t things) cgroups() error {
	return filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			t.add("cgroup", path)
		}
		return err
	})
}

func (t things) interfaces() error {
	entries, err := os.ReadDir("/sys/class/net")
	for _, e := range entries {
		t.add("interface", e.Name())
	}
	return err
}

// files lists those on the disk and in memory, but not those of the lab itself.
func (t things) files() error {
	skip := []string{"/proc", "/sys", job.Dir, job.Out}
	return filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skip, path) {
			return filepath.SkipDir
		}
		t.add("file", path)
		return nil
	})
}
