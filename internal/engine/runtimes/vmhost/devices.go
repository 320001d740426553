package vmhost

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// vsockPath is the hypervisor's device for sockets between a guest and the host.
const vsockPath = "/dev/vhost-vsock"

// vsock checks the device for sockets to a guest. Opening it loads the module, if the device exists.
func (h Host) vsock(isNeeded bool) error {
	if !isNeeded {
		return nil
	}
	device, err := os.OpenFile(h.path(vsockPath), os.O_RDWR, 0)
	if err == nil {
		return device.Close()
	}
	const remark = ", and the runtime reaches its agent in the guest by it"
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &Lack{ErrNoVsock, "this user may not open " + vsockPath + remark, refusal.Rights("run as root")}
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENXIO):
		return &Lack{ErrNoVsock, err.Error() + remark, "look at the kernel's log (dmesg)"}
	case h.hasModule("vhost_vsock"):
		return &Lack{ErrNoVsock, vsockPath + " does not exist" + remark + ": the kernel's module vhost_vsock is not loaded", "load it: modprobe vhost_vsock"}
	}
	return &Lack{
		ErrNoVsock, vsockPath + " does not exist" + remark + ": this kernel has no module vhost_vsock",
		"use a kernel with CONFIG_VHOST_VSOCK; on Ubuntu the module is in the package linux-modules-extra",
	}
}

// hasModule reports whether the running kernel has a module, loaded or not.
func (h Host) hasModule(name string) bool {
	if h.exists("sys/module/" + name) {
		return true
	}
	release := strings.TrimSpace(h.text("proc/sys/kernel/osrelease"))
	for _, dir := range []string{"lib/modules", "usr/lib/modules"} {
		for line := range strings.Lines(h.text(filepath.Join(dir, release, "modules.dep"))) {
			file, _, _ := strings.Cut(filepath.Base(strings.SplitN(line, ":", 2)[0]), ".ko")
			if strings.ReplaceAll(file, "-", "_") == name {
				return true
			}
		}
	}
	return false
}

// syslogPaths are the sockets that Go's package log/syslog tries.
var syslogPaths = []string{"/dev/log", "/var/run/syslog", "/var/run/log"}

// syslog checks that a program listens on one of the sockets of syslog. It sends nothing.
func (h Host) syslog(ctx context.Context, isNeeded bool) error {
	if !isNeeded {
		return nil
	}
	var dialer net.Dialer
	for _, path := range syslogPaths {
		for _, network := range []string{"unixgram", "unix"} {
			conn, err := dialer.DialContext(ctx, network, h.path(path))
			if err == nil {
				return conn.Close()
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Lack{
		ErrNoSyslog, "no program listens on " + strings.Join(syslogPaths, " or ") + ", and the shim does not start without syslog",
		"start a syslog daemon (systemd-journald, rsyslogd, busybox syslogd), or use --managed for a private daemon, which has its own",
	}
}
