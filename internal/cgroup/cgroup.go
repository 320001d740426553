// Package cgroup creates, measures, empties and removes control groups on cgroup v1, hybrid and v2.
//
// Touchstone needs groups for three reasons. They separate the cost of a trial from the other load of the machine. They give the
// native baseline its own group, like a container: in the caller's group it would compete with everything that the
// caller runs. And they find the processes that a trial left behind, and kill them.
//
// [Detect] finds the controllers. A [Group] is one path in all hierarchies at once, so callers need no distinction between the kinds of
// machines. Processes join only the hierarchies that account or kill processes: cpu, cpuacct, memory, pids and freezer on v1,
// and the unified tree. They join cpuset only through [Group.SetCPUs], because a new v1 cpuset refuses processes until it has CPUs
// and memory nodes. Remove visits every mounted hierarchy, including named ones, because runtimes create their groups in all of
// them.
//
// The package refuses any path that does not begin with [Prefix]. It runs as root beside other groups and must not be able to kill
// or remove one of them.
//
// github.com/containerd/cgroups was rejected: it depends on systemd, D-Bus and eBPF libraries, configures much that Touchstone
// does not need, does not wait until processes exit, and does not clean the named hierarchies.
package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Prefix begins the name of every top-level group of Touchstone.
const Prefix = "touchstone-"

// Mode is the cgroup version of a machine.
type Mode string

// The modes. They depend on the hierarchies of the controllers that Touchstone uses. A machine is V2 if its v1 hierarchies are all
// named or have only other controllers.
const (
	None   Mode = "none"   // no cgroup file system is mounted
	V1     Mode = "v1"     // controllers on v1, no unified tree
	Hybrid Mode = "hybrid" // controllers on v1, and a unified tree
	V2     Mode = "v2"     // controllers on the unified tree
)

// controllers are all controllers that the options of a v1 mount can name.
var controllers = []string{
	"blkio", "cpu", "cpuacct", "cpuset", "debug", "devices", "freezer", "hugetlb",
	"memory", "misc", "net_cls", "net_prio", "perf_event", "pids", "rdma",
}

// used are the controllers whose v1 hierarchies processes join.
var used = []string{"cpu", "cpuacct", "freezer", "memory", "pids"}

// enabled are the controllers to enable for groups of the unified tree. The functions of cpuacct and freezer are built into it.
var enabled = []string{"cpu", "memory", "pids"}

// Hierarchy holds all cgroup hierarchies of a machine that this process can see.
type Hierarchy struct {
	Mode Mode
	// Mounts are the hierarchies in mount order, without duplicates.
	Mounts []Mount

	// base is the parent of all new groups. If it is empty, noAccess is the reason.
	base     string
	noAccess error
	// own is the path of this process's /proc/self/cgroup.
	own string
}

// Mount is one hierarchy.
type Mount struct {
	// Dir is the mount point. Paths of groups are relative to it, like for OCI runtimes.
	Dir string
	// V2 is true for the unified tree.
	V2 bool
	// Name is the name of a named v1 hierarchy, such as systemd.
	Name string
	// Controllers are in alphabetical order.
	Controllers []string

	root string // the group at the root of the mount
}

// has reports whether the hierarchy has any of the given controllers.
func (m Mount) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(m.Controllers, n) })
}

// joined reports whether Touchstone's processes join the hierarchy.
func (m Mount) joined() bool { return m.V2 || m.has(used...) }

// hidden reports whether another mount covers the hierarchy, such as an empty /sys of a build sandbox. A copy of a machine lacks the directories
// of v1.
func (m Mount) hidden(root string) bool {
	name := filepath.Join(root, m.Dir)
	if m.V2 {
		name = filepath.Join(name, "cgroup.controllers")
	} else if root != "/" {
		return false
	}
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// Detect finds the hierarchies of a machine. root is the root of its file system: "/", or a copy in tests. A machine without
// cgroups is not an error: its mode is None.
func Detect(root string) (*Hierarchy, error) {
	f, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if errors.Is(err, fs.ErrNotExist) {
		return &Hierarchy{Mode: None, noAccess: errNothingMounted}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find cgroup hierarchies: %w", err)
	}
	defer func() { _ = f.Close() }()
	mounts, err := parseMounts(f)
	if err != nil {
		return nil, fmt.Errorf("find cgroup hierarchies: %w", err)
	}
	mounts = slices.DeleteFunc(mounts, func(m Mount) bool { return m.hidden(root) })
	for i := range mounts {
		m := &mounts[i]
		m.Dir = filepath.Join(root, m.Dir)
		if m.V2 {
			if m.Controllers, err = words(m.Dir, "cgroup.controllers"); err != nil {
				return nil, fmt.Errorf("find the controllers of the unified cgroup tree: %w", err)
			}
			slices.Sort(m.Controllers)
		}
	}
	h := &Hierarchy{Mode: modeOf(mounts), Mounts: mounts, own: filepath.Join(root, "proc/self/cgroup")}
	self, err := ownPath(h.own)
	if err != nil {
		return nil, fmt.Errorf("find the cgroup of this process: %w", err)
	}
	h.findBase(self)
	return h, nil
}

var errNothingMounted = errors.New("no cgroup file system is mounted")

// parseMounts reads a mountinfo file. If a hierarchy has several mounts, it returns the first one below /sys/fs/cgroup, or
// else the first one.
func parseMounts(r io.Reader) ([]Mount, error) {
	infos, err := mountinfo.GetMountsFromReader(r, func(i *mountinfo.Info) (skip, stop bool) {
		return i.FSType != "cgroup" && i.FSType != "cgroup2", false
	})
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	var mounts []Mount
	indices := map[string]int{} // index in mounts by version, name and controllers
	for _, info := range infos {
		m := Mount{Dir: info.Mountpoint, root: info.Root, V2: info.FSType == "cgroup2"}
		if !m.V2 {
			for option := range strings.SplitSeq(info.VFSOptions, ",") {
				if name, ok := strings.CutPrefix(option, "name="); ok {
					m.Name = name
				} else if slices.Contains(controllers, option) {
					m.Controllers = append(m.Controllers, option)
				}
			}
			slices.Sort(m.Controllers)
		}
		key := fmt.Sprint(m.V2, m.Name, m.Controllers)
		i, duplicate := indices[key]
		switch {
		case !duplicate:
			indices[key] = len(mounts)
			mounts = append(mounts, m)
		case standard(m.Dir) && !standard(mounts[i].Dir):
			mounts[i] = m
		}
	}
	return mounts, nil
}

// standard reports whether runtimes expect a hierarchy at dir.
func standard(dir string) bool {
	return dir == "/sys/fs/cgroup" || strings.HasPrefix(dir, "/sys/fs/cgroup/")
}

func modeOf(mounts []Mount) Mode {
	unified := slices.ContainsFunc(mounts, func(m Mount) bool { return m.V2 })
	legacy := slices.ContainsFunc(mounts, func(m Mount) bool { return !m.V2 && m.has(used...) })
	switch {
	case unified && legacy:
		return Hybrid
	case unified:
		return V2
	case legacy:
		return V1
	}
	return None
}

// ownPath reads the group in the unified tree from a /proc/PID/cgroup file. The path is empty without one.
func ownPath(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok && strings.HasPrefix(path, "/") {
			return strings.TrimSuffix(path, "\n"), nil
		}
	}
	return "", nil
}

// OwnThreadFiles returns the v1 tasks files of this process's own groups. A thread that has joined another group through
// [Group.ThreadFiles] returns with them.
func (h *Hierarchy) OwnThreadFiles() ([]string, error) {
	// /proc/self/cgroup shows the groups of the main thread, which never joins another group.
	text, err := os.ReadFile(h.own)
	if err != nil {
		return nil, fmt.Errorf("find the cgroups of this process: %w", err)
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		controller, _, _ := strings.Cut(fields[1], ",")
		m, ok := h.Controller(controller)
		if !ok || m.V2 || !m.joined() {
			continue
		}
		rel, err := filepath.Rel(m.root, fields[2])
		if err != nil || !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("find the cgroups of this process: %s is not below %s", fields[2], m.Dir)
		}
		files = append(files, filepath.Join(m.Dir, rel, "tasks"))
	}
	return files, nil
}

// findBase looks for a group that lets this process create groups: the root, or on v2 the group of this process if it
// is delegated to the user.
func (h *Hierarchy) findBase(self string) {
	if h.Mode == None {
		h.noAccess = errNothingMounted
		return
	}
	for _, m := range h.Mounts {
		if m.joined() && h.noAccess == nil {
			h.noAccess = writable(m.Dir)
		}
	}
	if h.noAccess == nil {
		h.base = "/"
		return
	}
	if h.Mode != V2 {
		return
	}
	m, _ := h.unified()
	rel, err := filepath.Rel(m.root, self)
	if self == "" || err != nil || !filepath.IsLocal(rel) || rel == "." {
		return
	}
	// A process can move only with write access to cgroup.procs of the common ancestor of its old and its new group.
	dir := filepath.Join(m.Dir, rel)
	if h.noAccess = cmp.Or(writable(dir), writable(filepath.Join(dir, "cgroup.procs"))); h.noAccess == nil {
		h.base = "/" + rel
	}
}

func writable(name string) error {
	if err := unix.Access(name, unix.W_OK); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// Base returns the parent of all new groups: "/", or the caller's own group if that is delegated to an ordinary user. It is
// empty if groups cannot be created. The paths of Create, Open and Find are relative to it.
func (h *Hierarchy) Base() string { return h.base }

// Controller returns the hierarchy with a controller.
func (h *Hierarchy) Controller(name string) (Mount, bool) {
	return h.first(func(m Mount) bool { return m.has(name) })
}

// unified returns the unified tree.
func (h *Hierarchy) unified() (Mount, bool) {
	return h.first(func(m Mount) bool { return m.V2 })
}

func (h *Hierarchy) first(want func(Mount) bool) (Mount, bool) {
	i := slices.IndexFunc(h.Mounts, want)
	if i < 0 {
		return Mount{}, false
	}
	return h.Mounts[i], true
}

// Find returns the paths of the top-level groups with a name prefix in any hierarchy, in alphabetical order. prefix must begin with
// [Prefix].
func (h *Hierarchy) Find(prefix string) ([]string, error) {
	if err := checkPath("/" + prefix); err != nil {
		return nil, err
	}
	var found []string
	for _, m := range h.Mounts {
		entries, err := os.ReadDir(filepath.Join(m.Dir, h.base))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for cgroups named %s…: %w", prefix, err)
		}
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
				found = append(found, "/"+e.Name())
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// words reads a file with a list of words, such as cgroup.controllers.
func words(dir, file string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(text)), nil
}
