// Package cgroup makes, measures, empties and removes control groups, on cgroup
// v1, hybrid and v2 alike.
//
// Touchstone needs groups for three things: to tell what a trial cost the host
// from what the rest of the machine did, to give the native baseline a group of
// its own beside the containers' (in the caller's group it competes with
// everything the caller runs), and to find and end whatever a trial left behind.
//
// [Detect] reads where the controllers are. A [Group] is one path in all
// hierarchies at once, so that callers need not know which kind of machine they
// are on. Processes join only the hierarchies that account or end processes: cpu,
// cpuacct, memory, pids and freezer on v1, and the unified tree. cpuset is
// left to [Group.SetCPUs], because a new v1 cpuset refuses processes until it has been given
// CPUs and memory nodes. Removing is wider:
// it visits every hierarchy that is mounted, named ones too, because runtimes make
// their groups in all of them.
//
// The package refuses any path that does not begin with [Prefix]: it runs as root
// beside other people's groups and must not be able to kill or remove one of them.
//
// github.com/containerd/cgroups is not used: it brings systemd, D-Bus and eBPF
// libraries along, sets up much that is not needed here, and neither waits for
// processes to end nor cleans the named hierarchies.
package cgroup

import (
	"bufio"
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

// Prefix begins the name of every top-level group that Touchstone makes.
const Prefix = "touchstone-"

// Mode is how a machine arranges its control groups.
type Mode string

// The modes. What counts is where the controllers are that Touchstone uses: a
// machine whose only v1 hierarchies are named ones, or carry controllers that
// Touchstone does not use, is V2.
const (
	None   Mode = "none"   // nothing is mounted
	V1     Mode = "v1"     // controllers on v1 and no unified tree
	Hybrid Mode = "hybrid" // controllers on v1, with a unified tree beside them
	V2     Mode = "v2"     // controllers on the unified tree
)

// controllers are all controllers a v1 mount can name among its options.
var controllers = []string{
	"blkio", "cpu", "cpuacct", "cpuset", "debug", "devices", "freezer", "hugetlb",
	"memory", "misc", "net_cls", "net_prio", "perf_event", "pids", "rdma",
}

// used are the controllers whose v1 hierarchies processes join.
var used = []string{"cpu", "cpuacct", "freezer", "memory", "pids"}

// enabled are the controllers that are switched on for groups of the unified
// tree, which has the work of cpuacct and freezer built in.
var enabled = []string{"cpu", "memory", "pids"}

// Hierarchy is all cgroup hierarchies of a machine, as one process sees them.
type Hierarchy struct {
	Mode Mode
	// Mounts are the hierarchies, each once, in the order of their mounting.
	Mounts []Mount

	// base is where groups can be made, empty if nowhere; noAccess says why.
	base     string
	noAccess error
	// own is the file with the groups of this process.
	own string
}

// Mount is one hierarchy.
type Mount struct {
	// Dir is the mount point. Paths of groups count from here, as they do for
	// OCI runtimes.
	Dir string
	// V2 tells the unified tree from a v1 hierarchy.
	V2 bool
	// Name is the name of a v1 hierarchy that has one, such as systemd.
	Name string
	// Controllers are in alphabetical order.
	Controllers []string

	root string // the group that the mount shows as its root
}

// has tells whether the hierarchy carries any of the given controllers.
func (m Mount) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(m.Controllers, n) })
}

// joined tells whether Touchstone's processes join the hierarchy.
func (m Mount) joined() bool { return m.V2 || m.has(used...) }

// Detect finds the hierarchies of the machine whose file system begins at root
// ("/", or a copy for tests). A machine without any is no error: its mode is None.
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
	for i := range mounts {
		m := &mounts[i]
		m.Dir = filepath.Join(root, m.Dir)
		if !m.V2 {
			continue
		}
		names, err := words(m.Dir, "cgroup.controllers")
		if err != nil {
			return nil, fmt.Errorf("find the controllers of the unified cgroup tree: %w", err)
		}
		slices.Sort(names)
		m.Controllers = names
	}
	h := &Hierarchy{Mode: modeOf(mounts), Mounts: mounts, own: filepath.Join(root, "proc/self/cgroup")}
	own, err := ownPath(h.own)
	if err != nil {
		return nil, fmt.Errorf("find the cgroup of this process: %w", err)
	}
	h.findBase(own)
	return h, nil
}

var errNothingMounted = errors.New("no cgroup file system is mounted")

// parseMounts reads a mountinfo file. A hierarchy that is mounted more than once
// is taken where it stands first below /sys/fs/cgroup, else where it stands first.
func parseMounts(r io.Reader) ([]Mount, error) {
	infos, err := mountinfo.GetMountsFromReader(r, func(i *mountinfo.Info) (skip, stop bool) {
		return i.FSType != "cgroup" && i.FSType != "cgroup2", false
	})
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	var mounts []Mount
	seen := map[string]int{} // what the mount carries → its place in mounts
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
		i, twice := seen[key]
		switch {
		case !twice:
			seen[key] = len(mounts)
			mounts = append(mounts, m)
		case usual(m.Dir) && !usual(mounts[i].Dir):
			mounts[i] = m
		}
	}
	return mounts, nil
}

// usual tells whether dir is where runtimes expect a hierarchy.
func usual(dir string) bool {
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

// ownPath reads the calling process's group in the unified tree from a
// /proc/PID/cgroup file; it is empty if there is none.
func ownPath(file string) (string, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "0::"); ok && strings.HasPrefix(path, "/") {
			return path, nil
		}
	}
	return "", lines.Err()
}

// findBase looks for the place where groups can be made: the root, else on v2 the
// group of this process if it has been delegated to its user.
func (h *Hierarchy) findBase(own string) {
	if h.Mode == None {
		h.noAccess = errNothingMounted
		return
	}
	for _, m := range h.Mounts {
		if !m.joined() {
			continue
		}
		if err := unix.Access(m.Dir, unix.W_OK); err != nil {
			h.noAccess = &fs.PathError{Op: "write", Path: m.Dir, Err: err}
			break
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
	rel, err := filepath.Rel(m.root, own)
	if own == "" || err != nil || !filepath.IsLocal(rel) || rel == "." {
		return
	}
	// Moving a process asks for write access to cgroup.procs of the group that
	// holds both its old and its new place.
	for _, file := range []string{"", "cgroup.procs"} {
		name := filepath.Join(m.Dir, rel, file)
		if err := unix.Access(name, unix.W_OK); err != nil {
			h.noAccess = &fs.PathError{Op: "write", Path: name, Err: err}
			return
		}
	}
	h.base, h.noAccess = "/"+rel, nil
}

// Base is the group below which groups can be made: "/", or the caller's own group
// where it has been delegated to an ordinary user, or empty if there is no such
// place. The paths that Create, Open and Find know count from it.
func (h *Hierarchy) Base() string { return h.base }

// Controller gives the hierarchy that carries a controller.
func (h *Hierarchy) Controller(name string) (Mount, bool) {
	i := slices.IndexFunc(h.Mounts, func(m Mount) bool { return m.has(name) })
	if i < 0 {
		return Mount{}, false
	}
	return h.Mounts[i], true
}

// unified gives the unified tree.
func (h *Hierarchy) unified() (Mount, bool) {
	i := slices.IndexFunc(h.Mounts, func(m Mount) bool { return m.V2 })
	if i < 0 {
		return Mount{}, false
	}
	return h.Mounts[i], true
}

// Find gives the paths of the top-level groups, in any hierarchy, whose names begin
// with prefix, in alphabetical order. Prefix itself must begin with [Prefix].
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

// words reads a file of words, such as cgroup.controllers.
func words(dir, file string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(text)), nil
}
