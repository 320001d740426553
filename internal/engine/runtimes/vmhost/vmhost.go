// Package vmhost checks whether this host can run the virtual machines of runtimes: Kata Containers, and gVisor with the
// platform kvm.
//
// Each check returns nil or a [Lack] with the reason and the remedy. The checks precede the first container, because without them
// the cause is lost: a guest that does not start looks like a hang, and a shim reports the last failed call. They change nothing
// on the host. Each attempt has a limit.
//
// The checks know no runtime. The caller has the plain inputs: paths, sizes, and the kinds of devices that it needs.
package vmhost

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The kinds of a Lack.
var (
	ErrNoKVM         = errors.New("no /dev/kvm")
	ErrNoPermission  = errors.New("no permission to use /dev/kvm")
	ErrUnusableKVM   = errors.New("/dev/kvm does not run guests")
	ErrNoVsock       = errors.New("no /dev/vhost-vsock")
	ErrNoHypervisor  = errors.New("no hypervisor")
	ErrNoFileServer  = errors.New("no file server")
	ErrNoGuestKernel = errors.New("no kernel for the guest")
	ErrNoGuestImage  = errors.New("no image for the guest")
	ErrLittleMemory  = errors.New("too little memory for the guest")
	ErrNoSyslog      = errors.New("no syslog")
)

// Lack is a missing property of the host.
type Lack struct {
	Kind           error // one of the errors above
	Reason, Advice string
}

func (l *Lack) Error() string { return l.Reason + "; " + l.Advice }

// Unwrap returns the kind.
func (l *Lack) Unwrap() error { return l.Kind }

// Refuse turns the error of a check into the error of a target, or of anything else that needs the property. Other errors, such as
// a cancelled context, and nil remain.
func Refuse(what string, err error) error {
	var lack *Lack
	if !errors.As(err, &lack) {
		return err
	}
	return &engine.UnsupportedError{What: what, Reason: lack.Reason, Advice: lack.Advice}
}

// Host is the machine to check.
type Host struct {
	// Root is the root of its file system: "/", or a copy in tests.
	Root string
	// Arch is its architecture in Go's naming.
	Arch string
	// Guest runs a small guest by a KVM device. The error is a *GuestError if the guest does not work.
	Guest func(ctx context.Context, device string) error
}

// Of returns the host of a session. The proof of KVM runs once in this process.
func Of(s engine.Session) Host {
	return Host{Root: "/", Arch: runtime.GOARCH, Guest: func(ctx context.Context, device string) error {
		return proof.once(ctx, func(ctx context.Context) error { return runGuest(ctx, s.Launcher, s.Probe, device) })
	}}
}

// path returns a path below the root.
func (h Host) path(name string) string { return filepath.Join(h.Root, name) }

// text returns the content of a file, or an empty string if it cannot be read.
func (h Host) text(name string) string {
	b, err := os.ReadFile(h.path(name))
	if err != nil {
		return ""
	}
	return string(b)
}

func (h Host) exists(name string) bool {
	_, err := os.Stat(h.path(name))
	return err == nil
}

// Guest is a virtual machine that a runtime is about to start. An empty field is no requirement.
type Guest struct {
	Hypervisor string // path of the program
	FileServer string // path of the program that serves the host's files, such as virtiofsd
	Kernel     string
	// Image and Initrd are the file systems of the guest. One of them is required if Kernel is.
	Image, Initrd string
	// Memory is in bytes.
	Memory int64
	// Shared is set if the guest's memory is a file in /dev/shm, for a file server.
	Shared bool
	// Vsock is set if the hypervisor needs /dev/vhost-vsock.
	Vsock bool
	// Syslog is set if the runtime needs the host's syslog. A private daemon has its own.
	Syslog bool
}

// Check returns the first requirement of a guest that the host does not meet: files before devices, because they are certain.
func (h Host) Check(ctx context.Context, g Guest) error {
	for _, check := range []func() error{
		func() error { return h.program(g.Hypervisor, ErrNoHypervisor, "the hypervisor") },
		func() error { return h.program(g.FileServer, ErrNoFileServer, "the file server") },
		func() error { return h.files(g) },
		func() error { return h.memory(g) },
		func() error { return h.KVM(ctx) },
		func() error { return h.vsock(g.Vsock) },
		func() error { return h.syslog(ctx, g.Syslog) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// program checks an executable file.
func (h Host) program(path string, kind error, title string) error {
	if path == "" {
		return nil
	}
	advice := "install " + filepath.Base(path) + ", or correct the path in the runtime's configuration"
	info, err := os.Stat(h.path(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Lack{kind, title + " " + path + " does not exist", advice}
	case err != nil:
		return &Lack{kind, title + ": " + err.Error(), advice}
	case info.IsDir() || info.Mode()&0o111 == 0:
		return &Lack{kind, title + " " + path + " is not executable", advice}
	}
	return nil
}

// files checks the files of a guest.
func (h Host) files(g Guest) error {
	if g.Kernel == "" {
		return nil
	}
	const remedy = "install the runtime's guest, which is part of its release, or correct the path in the runtime's configuration"
	if err := h.content(g.Kernel); err != nil {
		return &Lack{ErrNoGuestKernel, "the guest's kernel: " + err.Error(), remedy}
	}
	if g.Image == "" && g.Initrd == "" {
		return &Lack{ErrNoGuestImage, "the runtime's configuration names neither an image nor an initrd for the guest", "set one of them"}
	}
	for _, file := range []string{g.Image, g.Initrd} {
		if file == "" {
			continue
		}
		if err := h.content(file); err != nil {
			return &Lack{ErrNoGuestImage, "the guest's file system: " + err.Error(), remedy}
		}
	}
	return nil
}

// content returns an error for a path that is not a regular file with content.
func (h Host) content(file string) error {
	info, err := os.Stat(h.path(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New(file + " does not exist")
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New(file + " is no regular file")
	case info.Size() == 0:
		return errors.New(file + " is empty")
	}
	return nil
}

// memory compares the guest's memory with the host's. The hypervisor takes it page by page, so a guest without it starts, and the
// kernel kills programs of the host or the guest later.
func (h Host) memory(g Guest) error {
	if g.Memory == 0 {
		return nil
	}
	advice := "give the guest less memory (option memory=MIB), or free memory of the host"
	if available, ok := h.available(); ok && available < g.Memory {
		return &Lack{ErrLittleMemory, "the guest's memory is " + mib(g.Memory) + ", and " + mib(available) + " of the host's are available", advice}
	}
	if !g.Shared {
		return nil
	}
	var shm unix.Statfs_t
	if err := unix.Statfs(h.path("dev/shm"), &shm); err != nil {
		return nil //nolint:nilerr // the runtime reports a missing directory itself
	}
	if free := int64(shm.Bavail) * shm.Bsize; shm.Blocks > 0 && free < g.Memory { //nolint:unconvert // the types depend on the architecture
		return &Lack{
			ErrLittleMemory, "the guest's memory is a file of " + mib(g.Memory) + " in /dev/shm, which has " + mib(free) + " free",
			"give the guest less memory (option memory=MIB), or enlarge /dev/shm: mount -o remount,size=90% /dev/shm",
		}
	}
	return nil
}

func mib(bytes int64) string { return strconv.FormatInt(bytes>>20, 10) + " MiB" }

// available is MemAvailable of the host in bytes.
func (h Host) available() (int64, bool) {
	for line := range strings.Lines(h.text("proc/meminfo")) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 52)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
