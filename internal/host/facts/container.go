package facts

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
)

// Container returns the kind of the container that this program runs in, such as docker. It is empty outside of containers. root is the root of
// the file system: "/", or a copy in tests.
func Container(root string) string { return reader{machine.At(root)}.container() }

// otherContainer is the kind of a container that shows only that it exists.
const otherContainer = "of an unknown kind"

// marks are files that only containers of one kind have.
var marks = []struct{ file, name string }{
	{"run/.containerenv", "podman"},
	{".dockerenv", "docker"},
	{"var/run/secrets/kubernetes.io/serviceaccount", "kubernetes"},
	{"run/secrets/kubernetes.io/serviceaccount", "kubernetes"},
	{"dev/lxd/sock", "lxd"},
	{"dev/incus/sock", "incus"},
	{".flatpak-info", "flatpak"},
}

// layers are parts of the directories of a container's layers, which are in the options of its root mount.
var layers = []struct{ part, name string }{
	{"/docker/overlay2/", "docker"},
	{"/docker/rootfs/", "docker"},
	{"io.containerd.snapshotter", "containerd"},
	{"/containers/storage/", "podman or CRI-O"},
	{"/overlay2/l/", "docker"}, // with the data root in another folder
	{"/overlay/l/", "podman or CRI-O"},
	{"/buildkit/", "buildkit"},
}

// groups are parts of the cgroup paths of containers, from the special to the general.
var groups = []struct{ part, name string }{
	{"kubepods", "kubernetes"},
	{"/docker/", "docker"},
	{"/docker-", "docker"},
	{"/buildkit/", "buildkit"},
	{"/libpod-", "podman"},
	{"/libpod_", "podman"},
	{"/crio-", "CRI-O"},
	{"/cri-containerd-", "containerd"},
	{"/lxc/", "lxc"},
	{"/lxc.payload", "lxc"},
	{"/machine.slice/", "systemd-nspawn"},
	{"/garden/", "garden"},
}

// initial are the namespaces of the kernel itself, whose numbers are fixed (Linux, include/uapi/linux/nsfs.h, and include/linux/proc_ns.h before 6.18).
var initial = map[string]string{"uts": "uts:[4026531838]", "pid": "pid:[4026531836]", "cgroup": "cgroup:[4026531835]"}

// isInitial reports whether this program is in the initial namespaces of these kinds.
func (t reader) isInitial(kinds ...string) bool {
	for _, kind := range kinds {
		if namespace, err := fs.ReadLink(t.FS, "proc/self/ns/"+kind); err != nil || namespace != initial[kind] {
			return false
		}
	}
	return true
}

// SeesHost reports whether a program in a container sees the processes and the whole cgroup tree of the host, as in a privileged container for the
// care of a host.
func SeesHost(t machine.Tree) bool {
	return reader{t}.isInitial("pid", "cgroup") && slices.ContainsFunc(t.Lines("proc/self/mountinfo"), func(line string) bool {
		mount, system, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		return strings.HasPrefix(system, "cgroup") && len(fields) > 4 && fields[3] == "/"
	})
}

// container is a short version of systemd's detection (src/basic/virt.c), with the kinds that have no systemd, and with containers that share
// namespaces of the host.
func (t reader) container() string {
	if t.isInitial("uts", "pid") {
		return t.sharingContainer()
	}
	for _, file := range []string{"run/host/container-manager", "run/systemd/container"} {
		if name := t.Text(file); name != "" {
			return name
		}
	}
	if name := t.mark(); name != "" {
		return name
	}
	if t.Exists("proc/vz") && !t.Exists("proc/bc") {
		return "openvz"
	}
	if name := cmp.Or(t.variable("proc/1/environ"), t.rootLayer(), t.group("proc/self/cgroup"), t.group("proc/1/cgroup")); name != "" {
		return name
	}
	// Each distribution of WSL 2 is a container in one virtual machine. Containers of Docker have the same kernel, and marks.
	if release := strings.ToLower(t.Text("proc/sys/kernel/osrelease")); strings.Contains(release, "microsoft") || strings.Contains(release, "wsl") {
		return "wsl"
	}
	if comm := t.Text("proc/2/comm"); comm != "" && comm != "kthreadd" && t.Text("proc/1/comm") != "" {
		return otherContainer
	}
	return ""
}

// sharingContainer returns the kind of a container with the processes and the host name of the host, such as a pod of kubectl debug node. A machine
// without a container has the same namespaces. So a mark proves a container only if the host's first process has another root file
// system: virtual machines that are made from images have marks. In a chroot to the files of the host, the cgroup or the environment is left.
func (t reader) sharingContainer() string {
	if name := cmp.Or(t.rootLayer(), t.group("proc/self/cgroup")); name != "" {
		return name
	}
	if root, first := t.root("self"), t.root("1"); root != nil && first != nil && !slices.Equal(root[2:4], first[2:4]) {
		if name := t.mark(); name != "" {
			return name
		}
	}
	if t.isInitial("cgroup") {
		return ""
	}
	return t.variable("proc/self/environ")
}

// mark returns the kind of the first mark.
func (t reader) mark() string {
	for _, m := range marks {
		if t.Exists(m.file) {
			return m.name
		}
	}
	return ""
}

// variable returns the kind of a container that the environment of a process has. Only root can read the environment of the first process.
func (t reader) variable(file string) string {
	for _, variable := range strings.Fields(t.Text(file)) { // the zero bytes between the variables are blanks here
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "container" && value != "":
			return value
		case name == "KUBERNETES_SERVICE_HOST":
			return "kubernetes"
		}
	}
	return ""
}

// group returns the kind of a container whose cgroup is in a file.
func (t reader) group(file string) string {
	for _, line := range t.Lines(file) {
		for _, g := range groups {
			if strings.Contains(line+"/", g.part) {
				return g.name
			}
		}
	}
	return ""
}

// rootLayer reads the kind of a container from the layers of its root directory.
func (t reader) rootLayer() string {
	line := strings.Join(t.root("self"), " ")
	for _, l := range layers {
		if strings.Contains(line, l.part) {
			return l.name
		}
	}
	return ""
}

// root returns the fields of the root mount of a process: the third is the device, and the fourth the directory in it. It is nil without one,
// as in a chroot to a directory.
func (t reader) root(process string) []string {
	for _, line := range t.Lines("proc/" + process + "/mountinfo") {
		if fields := strings.Fields(line); len(fields) >= 10 && path.Clean(fields[4]) == "/" {
			return fields
		}
	}
	return nil
}
