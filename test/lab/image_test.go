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

// recipe is the version of the build steps in this file. It is part of the image's cache key.
const recipe = "3"

const (
	// diskSize is the size of the machine's disk. The file is sparse.
	diskSize = "2G"
	// inodes is enough for the images that a machine unpacks. With mke2fs's default number the kernel would write inode tables for a while.
	inodes = "65536"
	// buildSpace is the free disk space in bytes that a build needs on the host.
	buildSpace = 3 << 30
	// toolLimit bounds one call of tar or mke2fs.
	toolLimit = 5 * time.Minute
)

// Image is the system image of a machine. Its files belong to the cache and are read-only.
type Image struct {
	// Kernel is the path of the kernel.
	Kernel string
	// Disk is the path of the root file system, ext4.
	Disk string
	// Modules is the directory of the kernel modules. The guest loads them in the order of their names.
	Modules string
}

func imageIn(dir string) Image {
	return Image{
		Kernel: filepath.Join(dir, "kernel"), Disk: filepath.Join(dir, "disk"),
		Modules: filepath.Join(dir, "modules"),
	}
}

// key returns a digest of everything that determines the image, except the package versions on the mirror. A cached image stays
// in use until its key changes or the cache directory is deleted.
func (m Machine) key() (string, error) {
	return keyOf(debian.Suite, m.Arch, m.packages(), m.Modules, skeleton, diskSize, inodes)
}

// keyOf returns a digest of the inputs of a build, and of the recipe.
func keyOf(inputs ...any) (string, error) {
	text, err := json.Marshal(append([]any{recipe}, inputs...))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:12], nil
}

// packages returns the machine's packages and Debian's kernel for virtual machines.
func (m Machine) packages() []string {
	return append([]string{"linux-image-cloud-" + m.Arch}, m.Packages...)
}

// Build returns the system image of a machine. It builds the image if the cache has none with this key, and then removes older images of
// the same machine. Concurrent processes wait for the first one to build. Build needs root, because the files of the image
// belong to different users.
func (l *Lab) Build(ctx context.Context, m Machine) (Image, error) {
	i, err := l.build(ctx, m)
	if err != nil {
		return Image{}, fmt.Errorf("build machine %s: %w", m.Name, err)
	}
	return i, nil
}

func (l *Lab) build(ctx context.Context, m Machine) (Image, error) {
	if _, err := l.emulator(ctx, m); err != nil {
		return Image{}, err // without QEMU the image would be useless
	}
	key, err := m.key()
	if err != nil {
		return Image{}, err
	}
	dir, err := l.cached(ctx, m.Name, key, func(temporary, destination string) error {
		if os.Geteuid() != 0 {
			return errors.New("needs root to create the files of several users")
		}
		return l.buildIn(ctx, m, temporary, imageIn(destination))
	})
	return imageIn(dir), err
}

// cached returns the cached directory with this name and key. If there is none, build makes it in the directory destination, with another
// directory for intermediate files. Then directories with the same name and other keys are removed.
func (l *Lab) cached(ctx context.Context, name, key string, build func(temporary, destination string) error) (dir string, err error) {
	cache, err := image.OpenCache("")
	if err != nil {
		return "", err
	}
	base := filepath.Join(cache.Dir(), "lab")
	dir = filepath.Join(base, name+"-"+key)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	temporary, release, err := cache.Exclusive(ctx, "lab-"+name, func() { l.progress(name, "waiting for another process, which builds it") })
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	if _, err := os.Stat(dir); err == nil { // another process built it while this one waited
		return dir, nil
	}
	draft := filepath.Join(temporary, "made")
	if err := errors.Join(os.Mkdir(draft, 0o755), os.MkdirAll(base, 0o700)); err != nil {
		return "", err
	}
	if err := build(temporary, draft); err != nil {
		return "", err
	}
	older, err := filepath.Glob(filepath.Join(base, name+"-*"))
	if err != nil {
		return "", err
	}
	for _, dir := range older {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	return dir, os.Rename(draft, dir)
}

// buildIn builds the image. temporary is a directory for intermediate files.
func (l *Lab) buildIn(ctx context.Context, m Machine, temporary string, destination Image) error {
	tree := filepath.Join(temporary, "tree")
	for _, dir := range []string{tree, destination.Modules} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := l.unpackTo(ctx, m.Name, m.Arch, temporary, tree, m.packages(), buildSpace, "--numeric-owner", "--exclude=./var/cache/apt", "--exclude=./dev/*"); err != nil {
		return err
	}
	l.progress(m.Name, "building the disk")
	if err := moveKernel(tree, destination.Kernel); err != nil {
		return err
	}
	modules := filepath.Join(tree, "usr/lib/modules")
	if err := extractModules(modules, destination.Modules, m.Modules); err != nil {
		return err
	}
	if err := os.RemoveAll(modules); err != nil {
		return err
	}
	for path, content := range skeleton {
		if err := addSkeleton(tree, path, content); err != nil {
			return err
		}
	}
	// mke2fs writes all tables now. Otherwise the kernel would write them during a step, and the step's write count would include them.
	return l.tool(ctx, "mke2fs", "-q", "-t", "ext4", "-N", inodes, "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", tree, destination.Disk, diskSize)
}

// unpackTo fetches packages with their dependencies, and unpacks them to a directory. options are those of tar. It needs space bytes
// of disk space.
func (l *Lab) unpackTo(ctx context.Context, name, arch, temporary, destination string, packages []string, space int64, options ...string) error {
	fetch := debian.Options{Arch: arch, Launcher: l.Launcher, Progress: func(step string) { l.progress(name, "%s", step) }}
	archive, err := debian.Fetch(ctx, fetch, temporary, packages, space)
	if err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	l.progress(name, "unpacking %d packages and their dependencies", len(packages))
	if err := l.tool(ctx, append([]string{"tar", "--extract", "--file=" + archive.Name(), "--directory=" + destination}, options...)...); err != nil {
		return err
	}
	return os.Remove(archive.Name())
}

// tool runs a program on the host.
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

// skeleton holds the files that the packages lack, by path: links of the merged /usr, directories, an ordinary user, and configuration
// that the packages' installation scripts would have written. A path with a final slash is a directory. Content that begins with "-> "
// is the target of a link.
var skeleton = map[string]string{
	"bin": "-> usr/bin", "lib": "-> usr/lib", "lib64": "-> usr/lib64", "sbin": "-> usr/sbin",
	"dev/": "", "proc/": "", "sys/": "", "run/": "", "tmp/": "", "root/": "", "home/user/": "", "opt/": "", "usr/lib64/": "", "usr/sbin/": "",
	"var/run": "-> /run", "var/lock": "-> /run/lock",
	"usr/sbin/iptables": "-> xtables-nft-multi", "usr/sbin/iptables-save": "-> xtables-nft-multi", "usr/sbin/iptables-restore": "-> xtables-nft-multi",
	"usr/sbin/ip6tables": "-> xtables-nft-multi", "usr/sbin/ip6tables-save": "-> xtables-nft-multi", "usr/sbin/ip6tables-restore": "-> xtables-nft-multi",
	// dockerd writes a script for a runtime with arguments.
	"usr/bin/sh":        "-> dash",
	"etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
	"etc/group":         "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n",
	"etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"etc/machine-id":    "", // empty means: never booted
}

// addSkeleton adds one entry of the skeleton to a tree, unless a package has the path already. A link replaces an empty directory of
// a package, like at installation.
func addSkeleton(tree, path, content string) error {
	full := filepath.Join(tree, path)
	destination, isLink := strings.CutPrefix(content, "-> ")
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
		return os.Symlink(destination, full)
	case strings.HasSuffix(path, "/"):
		return os.MkdirAll(full, 0o755)
	default:
		return os.WriteFile(full, []byte(content), 0o644)
	}
}

// moveKernel moves the kernel out of a tree, because QEMU loads it from the host.
func moveKernel(tree, destination string) error {
	kernels, err := filepath.Glob(filepath.Join(tree, "boot/vmlinuz-*"))
	if err != nil {
		return err
	}
	if len(kernels) != 1 {
		return fmt.Errorf("found %d kernels in the packages, want 1", len(kernels))
	}
	return os.Rename(kernels[0], destination)
}

// TestKey checks that exactly the inputs of the image change its key.
func TestKey(t *testing.T) {
	key := func(m Machine) string {
		k, err := m.key()
		if err != nil || len(k) != 12 {
			t.Fatalf("the key is %q, %v", k, err)
		}
		return k
	}
	m := V2()
	original := key(m)
	m.Memory, m.CPUs = 1, 1 // the disk does not depend on them
	if result := key(m); result != original {
		t.Errorf("memory changed the key from %s to %s", original, result)
	}
	for name, change := range map[string]func(*Machine){
		"another package":      func(m *Machine) { m.Packages = append([]string{"sysbench"}, m.Packages...) },
		"another module":       func(m *Machine) { m.Modules = m.Modules[1:] },
		"another architecture": func(m *Machine) { m.Arch = "arm64" },
	} {
		m := V2()
		if change(&m); key(m) == original {
			t.Errorf("%s does not change the key", name)
		}
	}
}
