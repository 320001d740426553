package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/image/debian"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// recipe is the version of how a system is made here. Another one makes systems of another name.
const recipe = "2"

const (
	// diskSize is that of the machine's disk, of which the host's takes what is in use.
	diskSize = "2G"
	// inodes are enough for what is unpacked in a machine; for the usual number of them the kernel would write tables for a while.
	inodes = "65536"
	// room is what the making takes on the host's disk, in bytes.
	room = 3 << 30
	// toolLimit bounds one call of tar or mke2fs.
	toolLimit = 5 * time.Minute
)

// Image is the system of a machine. Its files are the cache's, for reading only.
type Image struct {
	// Kernel is the file with the kernel.
	Kernel string
	// Disk is the file with the root file system, ext4.
	Disk string
	// Modules is the directory with the kernel's modules that are to be loaded, in the order of their names.
	Modules string
}

func imageIn(dir string) Image {
	return Image{Kernel: filepath.Join(dir, "kernel"), Disk: filepath.Join(dir, "disk"), Modules: filepath.Join(dir, "modules")}
}

// key is a digest of all that determines the system, but for what versions of packages the mirror has. A machine that has
// been made stays as it is until something of that changes, or somebody deletes it.
func (m Machine) key() (string, error) {
	text, err := json.Marshal([]any{recipe, debian.Suite, m.Arch, m.packages(), m.Modules, skeleton, diskSize, inodes})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:12], nil
}

// packages are those of the machine with its kernel, which is Debian's for virtual machines.
func (m Machine) packages() []string {
	return append([]string{"linux-image-cloud-" + m.Arch}, m.Packages...)
}

// Build gives the system of a machine: from the cache, or made and put there, in place of older ones of the same machine. Of
// several processes one makes it, and the others wait. It needs root, since files of the system belong to different users.
func (l *Lab) Build(ctx context.Context, m Machine) (Image, error) {
	i, err := l.build(ctx, m)
	if err != nil {
		return Image{}, fmt.Errorf("build machine %s: %w", m.Name, err)
	}
	return i, nil
}

func (l *Lab) build(ctx context.Context, m Machine) (i Image, err error) {
	if _, _, err := l.emulator(ctx, m); err != nil {
		return Image{}, err // nobody could boot it
	}
	key, err := m.key()
	if err != nil {
		return Image{}, err
	}
	cache, err := image.OpenCache("")
	if err != nil {
		return Image{}, err
	}
	kept := filepath.Join(cache.Dir(), "lab")
	dir := filepath.Join(kept, m.Name+"-"+key)
	if _, err := os.Stat(dir); err == nil {
		return imageIn(dir), nil
	}
	if os.Geteuid() != 0 {
		return Image{}, errors.New("only root can make its files")
	}
	temporary, release, err := cache.Exclusive(ctx, "lab-"+m.Name, func() { l.progress(m, "waiting for another process that builds it") })
	if err != nil {
		return Image{}, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if _, err := os.Stat(dir); err == nil { // somebody has made it meanwhile
		return imageIn(dir), nil
	}
	made := filepath.Join(temporary, "image")
	if err := l.make(ctx, m, temporary, made); err != nil {
		return Image{}, err
	}
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return Image{}, err
	}
	older, err := filepath.Glob(filepath.Join(kept, m.Name+"-*"))
	if err != nil {
		return Image{}, err
	}
	for _, dir := range older {
		if err := os.RemoveAll(dir); err != nil {
			return Image{}, err
		}
	}
	return imageIn(dir), os.Rename(made, dir)
}

// make makes the system in a directory. temporary has room for what is needed on the way.
func (l *Lab) make(ctx context.Context, m Machine, temporary, to string) error {
	options := debian.Options{Arch: m.Arch, Launcher: l.Launcher, Progress: func(step string) { l.progress(m, "%s", step) }}
	packages, err := debian.Fetch(ctx, options, temporary, m.packages(), room)
	if err != nil {
		return err
	}
	if err := packages.Close(); err != nil {
		return err
	}
	tree := filepath.Join(temporary, "tree")
	i := imageIn(to)
	for _, dir := range []string{tree, to, i.Modules} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	l.progress(m, "making the disk")
	unpack := []string{"tar", "--extract", "--file=" + packages.Name(), "--directory=" + tree, "--numeric-owner", "--exclude=./var/cache/apt", "--exclude=./dev/*"}
	if err := l.tool(ctx, unpack...); err != nil {
		return err
	}
	if err := takeKernel(tree, i.Kernel); err != nil {
		return err
	}
	if err := takeModules(filepath.Join(tree, "usr/lib/modules"), i.Modules, m.Modules); err != nil {
		return err
	}
	for path, content := range skeleton {
		if err := place(tree, path, content); err != nil {
			return err
		}
	}
	// The tables are written now: the kernel would do it later, and it would count as written by what runs then.
	return l.tool(ctx, "mke2fs", "-q", "-t", "ext4", "-N", inodes, "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", tree, i.Disk, diskSize)
}

// tool runs a program of the host.
func (l *Lab) tool(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, toolLimit, fmt.Errorf("%s took longer than %v", args[0], toolLimit))
	defer cancel()
	var output process.Output
	if err := output.Open(nil, nil); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	output.Set(cmd)
	err := l.Launcher.Run(ctx, cmd)
	if err = errors.Join(err, output.Close(), output.Wait(ctx)); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(output.Tail()))
	}
	return nil
}

// skeleton is what no package brings. What ends in a slash is a directory; what begins with "-> ", a link. There is an
// ordinary user, and the configuration that installing packages would have made.
var skeleton = map[string]string{
	"bin": "-> usr/bin", "lib": "-> usr/lib", "lib64": "-> usr/lib64", "sbin": "-> usr/sbin",
	"dev/": "", "proc/": "", "sys/": "", "run/": "", "tmp/": "", "root/": "", "home/user/": "", "opt/": "", "usr/lib64/": "", "usr/sbin/": "",
	"var/run": "-> /run", "var/lock": "-> /run/lock",
	"etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
	"etc/group":         "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n",
	"etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"etc/machine-id":    "", // as before the first boot
}

// place puts something of the skeleton into a tree, unless a package has brought it. Where there is to be a link, an empty
// directory of a package gives way, as it does when the package is installed.
func place(tree, path, content string) error {
	full := filepath.Join(tree, path)
	to, isLink := strings.CutPrefix(content, "-> ")
	if info, err := os.Lstat(full); err == nil {
		if !isLink || !info.IsDir() {
			return nil
		}
		if err := os.Remove(full); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	switch {
	case isLink:
		return os.Symlink(to, full)
	case strings.HasSuffix(path, "/"):
		return os.MkdirAll(full, 0o755)
	default:
		return os.WriteFile(full, []byte(content), 0o644)
	}
}

// takeKernel moves the kernel out of a tree: QEMU loads it.
func takeKernel(tree, to string) error {
	kernels, err := filepath.Glob(filepath.Join(tree, "boot/vmlinuz-*"))
	if err != nil {
		return err
	}
	if len(kernels) != 1 {
		return fmt.Errorf("the packages have %d kernels, and should have one", len(kernels))
	}
	return os.Rename(kernels[0], to)
}

// What determines a system gives it another name, and what does not leaves it.
func TestKey(t *testing.T) {
	key := func(m Machine) string {
		k, err := m.key()
		if err != nil || len(k) != 12 {
			t.Fatalf("the key is %q, %v", k, err)
		}
		return k
	}
	m := V2()
	before := key(m)
	m.Memory, m.CPUs = 1, 1 // of no concern to the disk
	if after := key(m); after != before {
		t.Errorf("with another memory the key is %s, and was %s", after, before)
	}
	for name, change := range map[string]func(*Machine){
		"another package":      func(m *Machine) { m.Packages = append([]string{"sysbench"}, m.Packages...) },
		"another module":       func(m *Machine) { m.Modules = m.Modules[1:] },
		"another architecture": func(m *Machine) { m.Arch = "arm64" },
	} {
		m := V2()
		if change(&m); key(m) == before {
			t.Errorf("%s leaves the key as it is", name)
		}
	}
}

func TestPlace(t *testing.T) {
	tree := t.TempDir()
	for _, dir := range []string{"var/run", "etc", "full/kept", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(tree, "etc/hosts"), []byte("theirs"), 0o644), os.Symlink("elsewhere", filepath.Join(tree, "bin"))); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{"var/run": "-> /run", "etc/hosts": "ours", "etc/passwd": "ours", "bin": "-> usr/bin", "home/user/": ""} {
		if err := place(tree, path, content); err != nil {
			t.Error(err)
		}
	}
	for link, want := range map[string]string{"var/run": "/run", "bin": "elsewhere"} {
		if got, err := os.Readlink(filepath.Join(tree, link)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v; want %s", link, got, err, want)
		}
	}
	for file, want := range map[string]string{"etc/hosts": "theirs", "etc/passwd": "ours"} {
		if got, err := os.ReadFile(filepath.Join(tree, file)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %s", file, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(tree, "home/user")); err != nil || !info.IsDir() {
		t.Errorf("the user's home is %v, %v", info, err)
	}
	if err := place(tree, "full", "-> elsewhere"); err == nil {
		t.Error("a directory that is not empty gives way to a link")
	}
}
