// Package hosttest makes machines of files for the tests of the packages below host. Only tests import it.
package hosttest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// Files and contents of machines.
const (
	CPUs     = "sys/devices/system/cpu/"
	Governor = CPUs + "cpufreq/policy0/scaling_governor"
	Mounts   = "proc/self/mountinfo"
	Release  = "proc/sys/kernel/osrelease"

	MountV2 = "26 25 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,seclabel,nsdelegate,memory_recursiveprot"
	MountV1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"
	// Irqbalance is the process 200 in state S, started at 1234.
	Irqbalance = "200 (irqbalance) S 1 200 200 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1234 1 1"
)

// The namespaces of the kernel itself, and the first mount of a machine.
var (
	InitialNamespaces = Links{
		"proc/self/ns/uts": "uts:[4026531838]", "proc/self/ns/pid": "pid:[4026531836]", "proc/self/ns/cgroup": "cgroup:[4026531835]",
	}
	RootMount = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard"
)

// Files maps files of a machine to contents without the last line end.
type Files map[string]string

// Links maps symbolic links of a machine to their targets.
type Links map[string]string

// Write makes the links below a root.
func (l Links) Write(t testing.TB, root string) {
	t.Helper()
	for link, target := range l {
		file := filepath.Join(root, link)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700), os.Symlink(target, file))
	}
}

// Write writes the files below a root. They may exist. A name with a slash at its end is a directory.
func Write(t testing.TB, root string, files Files) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			must.Do(t, os.MkdirAll(file, 0o700))
			continue
		}
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text+"\n"), 0o600))
	}
}

// Memory returns the files without a directory on a disk.
func Memory(files Files) fs.FS {
	system := fstest.MapFS{}
	for name, text := range files {
		system[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return system
}

// Unpack writes an archive of a real machine below a new root.
func Unpack(t testing.TB, archive string) (root string) {
	t.Helper()
	files, err := txtar.ParseFile(archive)
	must.Do(t, err)
	root = t.TempDir()
	must.Do(t, txtar.Write(files, root))
	return root
}
