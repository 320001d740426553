package facts

import (
	"maps"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
)

// A virtual machine whose disk was made from an image of Docker has its mark, and the initial namespaces. A container can share these: its root is
// then another one than the root of the first process.
func TestMarkOfAnImage(t *testing.T) {
	const ownRoot = "93 69 0:39 / / rw,relatime master:2 - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0"
	for name, tt := range map[string]struct {
		change hosttest.Links
		roots  hosttest.Files
		want   string
	}{
		"initial namespaces":               {nil, nil, ""},
		"PIDs of its own":                  {hosttest.Links{"proc/self/ns/pid": "pid:[4026532201]"}, nil, "docker"},
		"a name of its own, with host PID": {hosttest.Links{"proc/self/ns/uts": "uts:[4026532200]"}, nil, "docker"},
		"another link":                     {hosttest.Links{"proc/self/ns/uts": "mnt:[4026531838]"}, nil, "docker"},
		"the root of the first process":    {nil, hosttest.Files{hosttest.Mounts: hosttest.RootMount, "proc/1/mountinfo": hosttest.RootMount}, ""},
		"another mount of that root":       {nil, hosttest.Files{hosttest.Mounts: "9 1 254:0 / / ro - ext4 /dev/vda rw", "proc/1/mountinfo": hosttest.RootMount}, ""},
		"a root of its own":                {nil, hosttest.Files{hosttest.Mounts: ownRoot, "proc/1/mountinfo": hosttest.RootMount}, "docker"},
		"a chroot to a directory":          {nil, hosttest.Files{hosttest.Mounts: "22 27 0:21 / /proc rw - proc proc rw", "proc/1/mountinfo": hosttest.RootMount}, ""},
	} {
		root := t.TempDir()
		hosttest.Write(t, root, hosttest.Files{".dockerenv": ""})
		hosttest.Write(t, root, tt.roots)
		links := maps.Clone(hosttest.InitialNamespaces)
		maps.Copy(links, tt.change)
		links.Write(t, root)
		if got := Container(root); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
