package managed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// tree makes files and links of a machine. A link is a line with an arrow, and a target that begins with / is on the machine.
func tree(t *testing.T, lines ...string) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	for _, line := range lines {
		name, destination, isLink := strings.Cut(line, " -> ")
		path := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasPrefix(destination, "/") {
			destination = root + destination
		}
		if isLink {
			err = os.Symlink(destination, path)
		} else {
			err = os.WriteFile(path, nil, 0o755)
		}
		must.Do(t, err)
	}
	return root
}

// The layouts are the real ones of the distributions, with shorter names.
//
// Invariant linked-programs: A private daemon finds its programs behind links of /run and /var/lib, by the names that they are called by.
func TestVisiblePaths(t *testing.T) {
	for _, c := range []struct {
		name  string
		tree  []string
		paths []string
		want  []string
	}{
		{
			"Debian",
			[]string{"usr/bin/containerd", "usr/sbin/runc", "bin -> usr/bin"},
			[]string{"bin/containerd", "usr/sbin/runc", "usr/bin", "bin"},
			nil,
		},
		{
			"NixOS",
			[]string{
				"nix/store/system/sw -> /nix/store/path", "nix/store/path/bin/containerd -> /nix/store/containerd/bin/containerd",
				"nix/store/containerd/bin/containerd", "run/current-system -> /nix/store/system", "run/wrappers/bin -> /run/wrappers/wrappers.x",
				"run/wrappers/wrappers.x/mount", "run/containerd/containerd.sock",
			},
			[]string{"run/current-system/sw/bin/containerd", "run/wrappers/bin", "run/current-system/sw/bin"},
			[]string{"run/current-system", "run/wrappers/wrappers.x", "run/wrappers/bin"},
		},
		{
			"Guix",
			[]string{
				"run/current-system -> /var/guix/profiles/system", "var/guix/profiles/system -> system-7-link", "var/guix/profiles/system-7-link -> /gnu/store/system",
				"gnu/store/system/profile -> /gnu/store/profile", "gnu/store/profile/bin/crun -> ../../crun/bin/crun", "gnu/store/crun/bin/crun",
				"run/privileged/bin/sudo",
			},
			[]string{"run/current-system/profile/bin/crun", "run/privileged/bin"},
			[]string{"run/current-system", "run/privileged/bin"},
		},
		{
			"k3s",
			[]string{
				"var/lib/rancher/k3s/data/current -> /var/lib/rancher/k3s/data/5a1b", "var/lib/rancher/k3s/data/5a1b/bin/k3s",
				"var/lib/rancher/k3s/data/5a1b/bin/containerd -> k3s", "var/lib/rancher/k3s/data/5a1b/bin/cni",
				"var/lib/rancher/k3s/data/cni/bridge -> ../5a1b/bin/cni", "var/lib/rancher/k3s/agent/containerd/state",
			},
			[]string{"var/lib/rancher/k3s/data/current/bin/containerd", "var/lib/rancher/k3s/data/cni/bridge"},
			[]string{"var/lib/rancher/k3s/data/5a1b/bin", "var/lib/rancher/k3s/data/current", "var/lib/rancher/k3s/data/cni/bridge"},
		},
		{
			"RKE2",
			[]string{"var/lib/rancher/rke2/bin -> data/v1/bin", "var/lib/rancher/rke2/data/v1/bin/containerd"},
			[]string{"var/lib/rancher/rke2/bin/containerd"},
			[]string{"var/lib/rancher/rke2/data/v1/bin", "var/lib/rancher/rke2/bin"},
		},
		{
			"k0s",
			[]string{"var/lib/k0s/bin/containerd", "var/lib/k0s/bin/runc", "usr/local/bin/containerd -> /var/lib/k0s/bin/containerd"},
			[]string{"usr/local/bin/containerd", "var/lib/k0s/bin/runc"},
			[]string{"var/lib/k0s/bin"},
		},
		{
			"Fedora with snaps",
			[]string{"snap -> var/lib/snapd/snap", "var/lib/snapd/snap/bin/podman -> /usr/bin/snap", "usr/bin/snap"},
			[]string{"snap/bin", "snap/bin/podman"},
			[]string{"var/lib/snapd/snap/bin"},
		},
		{"a missing file, a loop and an empty directory name", []string{"run/a -> b", "run/b -> a"}, []string{"run/none/x", "run/a/x", "run"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, c.tree...)
			v := visible{private: []string{filepath.Join(root, "run"), filepath.Join(root, "var/lib")}}
			for _, path := range c.paths {
				v.addPath(filepath.Join(root, path))
			}
			var got []string
			for _, path := range v.keep {
				got = append(got, strings.TrimPrefix(path, root+"/"))
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("visible paths (-want +got):\n%s", diff)
			}
		})
	}
}
