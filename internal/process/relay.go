package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
)

// relayProgram executes its arguments and changes nothing. Every Linux distribution has it.
const relayProgram = "/usr/bin/env"

// relays decides which programs the forking thread may execute itself.
//
// A fork is a vfork: the thread waits until the child has executed its program. An execve blocks while a file server does not answer
// (NFS, or FUSE with a stopped server). Then the thread would block, and with the next garbage collection this whole program, because
// Go cannot suspend a thread within a vfork. So the thread executes only programs of local file systems. It starts any other program
// through relayProgram. The relay blocks instead, and a time limit can kill it or give it up. One more execve takes less than a millisecond.
//
// Rejected: a test read of the program before the fork, because the server can stop between the two; a fork without vfork, because it copies
// the page tables, and the kernel would share the OOM score of this program with the child.
type relays struct {
	known sync.Map // by path: whether the program needs the relay
	usual func() bool
}

func newRelays() *relays {
	return &relays{usual: sync.OnceValue(func() bool {
		_, err := os.Stat(relayProgram)
		return err == nil && local(relayProgram)
	})}
}

// args returns the arguments that execute a program: its own, or the relay's.
func (r *relays) args(argv []string) []string {
	path := argv[0]
	needs, ok := r.known.Load(path)
	if !ok {
		// env takes a name with an equals sign for a variable.
		needs = !strings.Contains(path, "=") && !local(path) && r.usual()
		r.known.Store(path, needs)
	}
	if needs == true {
		return append([]string{relayProgram}, argv...)
	}
	return argv
}

// localFileSystems do not wait for a file server. Unknown file systems count as remote, which costs an execve.
var localFileSystems = []string{
	"bcachefs", "btrfs", "devtmpfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs", "overlay", "proc", "ramfs",
	"reiserfs", "rootfs", "squashfs", "tmpfs", "vfat", "xfs", "zfs",
}

// local reports whether a program and its interpreters are on local file systems. It never touches another file system, because its own
// thread would block. A program that cannot be read counts as local: execve returns the error.
func local(program string) bool {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil || len(mounts) == 0 {
		return true
	}
	const mostInterpreters = 5 // the kernel's limit
	for range mostInterpreters {
		file, ok := resolve(mounts, program)
		if !ok {
			return false
		}
		if program = interpreter(file); program == "" {
			break
		}
	}
	return true
}

// resolve follows the symbolic links of a path. It returns false before it touches a file system that is not local.
func resolve(mounts []*mountinfo.Info, path string) (string, bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", true
	}
	const mostLinks = 40 // the kernel's limit
	location, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0 && links <= mostLinks; {
		next := filepath.Join(location, rest[0])
		rest = rest[1:]
		if !onLocal(mounts, next) {
			return "", false
		}
		destination, err := os.Readlink(next)
		if err != nil { // no link
			location = next
			continue
		}
		links++
		if filepath.IsAbs(destination) {
			location = "/"
		}
		rest = slices.Concat(strings.Split(destination, "/"), rest)
	}
	return location, true
}

// onLocal reports whether a path without links is on a local file system. The newest mount with the longest path counts.
func onLocal(mounts []*mountinfo.Info, path string) bool {
	var mount *mountinfo.Info
	for _, m := range mounts {
		covers := m.Mountpoint == "/" || path == m.Mountpoint || strings.HasPrefix(path, m.Mountpoint+"/")
		if covers && (mount == nil || len(m.Mountpoint) >= len(mount.Mountpoint)) {
			mount = m
		}
	}
	return mount == nil || slices.Contains(localFileSystems, mount.FSType)
}

// interpreter returns the program that the kernel executes or maps together with a file: of a script, or of a dynamically linked program.
// It is empty without one.
func interpreter(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it is only read from
	head := make([]byte, 256)        // the kernel reads no more
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	if script, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
		line, _, _ := bytes.Cut(script, []byte("\n"))
		if words := strings.Fields(string(line)); len(words) > 0 {
			return words[0]
		}
		return ""
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz <= 4096 {
			path, _ := io.ReadAll(p.Open())
			return string(bytes.TrimRight(path, "\x00"))
		}
	}
	return ""
}
