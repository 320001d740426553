package host

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A container is recognised by the traces that its kind leaves, without the rights of root.
func TestContainer(t *testing.T) {
	const overlay = "581 500 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/x,upperdir=%,workdir=/y"
	for name, tt := range map[string]struct {
		files files
		want  string
	}{
		"a host":                           {files{"proc/1/comm": "systemd", "proc/2/comm": "kthreadd", "proc/self/cgroup": "0::/user.slice/user-0.slice\n", "proc/1/environ": "HOME=/\x00TERM=linux\x00"}, ""},
		"a host with containers":           {files{"proc/2/comm": "kthreadd", "proc/1/cgroup": "0::/init.scope\n", mounts: "30 29 0:60 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/x/diff"}, ""},
		"no files":                         {files{}, ""},
		"Docker":                           {files{".dockerenv": ""}, "docker"},
		"Docker without its mark":          {files{mounts: strings.Replace(overlay, "%", "/var/lib/docker/overlay2/0a/diff", 1)}, "docker"},
		"Docker on v1":                     {files{"proc/self/cgroup": "4:memory:/docker/0a1b\n0::/\n"}, "docker"},
		"Docker with systemd":              {files{"proc/self/cgroup": "0::/system.slice/docker-0a1b.scope\n"}, "docker"},
		"Podman":                           {files{"run/.containerenv": "engine=\"podman-5.4\""}, "podman"},
		"Podman, without root":             {files{"proc/self/cgroup": "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0a.scope/container\n"}, "podman"},
		"a job of Kubernetes":              {files{"var/run/secrets/kubernetes.io/serviceaccount/": ""}, "kubernetes"},
		"a pod without a token":            {files{"proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-0a.scope\n"}, "kubernetes"},
		"containerd, with a private group": {files{"proc/self/cgroup": "0::/\n", mounts: strings.Replace(overlay, "%", "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs", 1)}, "containerd"},
		"LXC":                              {files{"proc/1/environ": "TERM=linux\x00container=lxc\x00"}, "lxc"},
		"Incus":                            {files{"dev/incus/sock": ""}, "incus"},
		"systemd-nspawn":                   {files{"run/host/container-manager": "systemd-nspawn\n"}, "systemd-nspawn"},
		"a container with systemd":         {files{"run/systemd/container": "lxc\n", ".dockerenv": ""}, "lxc"},
		"OpenVZ":                           {files{"proc/vz/": ""}, "openvz"},
		"a host of OpenVZ":                 {files{"proc/vz/": "", "proc/bc/": ""}, ""},
		"an unknown container":             {files{"proc/1/comm": "init", "proc/2/comm": "sh"}, otherContainer},
	} {
		root := t.TempDir()
		write(t, root, tt.files)
		if got := Container(root); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		f := inspect(t, "container", tt.files)
		if poor := f.Rating == Poor; poor != (tt.want != "") || poor && (f.Now != tt.want || !strings.Contains(f.Remedy, "--privileged --pid=host")) {
			t.Errorf("%s: the finding is %+v", name, f)
		}
		if facts := Facts(root); facts.Container != tt.want || strings.Contains(strings.Join(facts.Warnings, "\n"), "is no bare metal") != (tt.want != "") {
			t.Errorf("%s: the facts have the container %q and the warnings %q", name, facts.Container, facts.Warnings)
		}
	}
}

// A virtual machine whose disk was made from an image of Docker has its mark, and the initial namespaces.
func TestMarkOfAnImage(t *testing.T) {
	for name, tt := range map[string]struct {
		change map[string]string
		want   string
	}{
		"initial namespaces":               {nil, ""},
		"PIDs of its own":                  {map[string]string{"proc/self/ns/pid": "pid:[4026532201]"}, "docker"},
		"a name of its own, with host PID": {map[string]string{"proc/self/ns/uts": "uts:[4026532200]"}, "docker"},
		"another link":                     {map[string]string{"proc/self/ns/uts": "mnt:[4026531838]"}, "docker"},
	} {
		root := t.TempDir()
		write(t, root, files{".dockerenv": "", "proc/self/ns/": ""})
		links := maps.Clone(initial)
		maps.Copy(links, tt.change)
		for link, number := range links {
			if err := os.Symlink(number, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
		if got := Container(root); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
