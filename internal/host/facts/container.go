package facts

import (
	"io/fs"
	"path"
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

// initial are the namespaces of the kernel itself, whose numbers are fixed. Every container has another one of them, also with the PIDs of the host.
var initial = map[string]string{"proc/self/ns/uts": "uts:[4026531838]", "proc/self/ns/pid": "pid:[4026531836]"}

// isOutside reports whether this program is in the initial namespaces. Virtual machines that are made from images have marks of containers.
func (t reader) isOutside() bool {
	for link, number := range initial {
		if namespace, err := fs.ReadLink(t.FS, link); err != nil || namespace != number {
			return false
		}
	}
	return true
}

// container is a short version of systemd's detection, with the kinds that have no systemd.
func (t reader) container() string {
	if t.isOutside() {
		return ""
	}
	for _, file := range []string{"run/host/container-manager", "run/systemd/container"} {
		if name := t.Text(file); name != "" {
			return name
		}
	}
	for _, m := range marks {
		if t.Exists(m.file) {
			return m.name
		}
	}
	if t.Exists("proc/vz") && !t.Exists("proc/bc") {
		return "openvz"
	}
	// The zero bytes between the variables are blanks here. Without root the file cannot be read.
	for _, variable := range strings.Fields(t.Text("proc/1/environ")) {
		if name, ok := strings.CutPrefix(variable, "container="); ok && name != "" {
			return name
		}
	}
	if name := t.rootLayer(); name != "" {
		return name
	}
	for _, line := range append(t.Lines("proc/self/cgroup"), t.Lines("proc/1/cgroup")...) {
		for _, g := range groups {
			if strings.Contains(line+"/", g.part) {
				return g.name
			}
		}
	}
	if comm := t.Text("proc/2/comm"); comm != "" && comm != "kthreadd" && t.Text("proc/1/comm") != "" {
		return otherContainer
	}
	return ""
}

// rootLayer reads the kind of a container from the layers of its root directory.
func (t reader) rootLayer() string {
	for _, line := range t.Lines("proc/self/mountinfo") {
		fields := strings.Fields(line)
		if len(fields) < 10 || path.Clean(fields[4]) != "/" {
			continue
		}
		for _, l := range layers {
			if strings.Contains(line, l.part) {
				return l.name
			}
		}
	}
	return ""
}
