package kata

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// moduleLimit is the deadline of modprobe.
const moduleLimit = 10 * time.Second

// devices are the kernel's files that Kata's shim opens, and the modules that make them.
var devices = []struct{ file, module string }{{"/dev/vhost-vsock", "vhost_vsock"}, {"/dev/vhost-net", "vhost_net"}}

// LoadModules loads the kernel modules that Kata needs. The kernel loads a module when its file is opened. Without the file
// modprobe loads it. An error is not returned: the requirements of a target are checked apart, and Kata reports a missing device.
func LoadModules(ctx context.Context, l *process.Launcher) {
	for _, d := range devices {
		f, err := os.OpenFile(d.file, os.O_RDWR, 0)
		if err == nil {
			_ = f.Close() // nothing was written
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		modprobe, err := engine.LookPath("modprobe")
		if err != nil {
			return
		}
		limitCtx, cancel := context.WithTimeout(ctx, moduleLimit)
		_ = l.Run(limitCtx, exec.CommandContext(limitCtx, modprobe, d.module))
		cancel()
	}
}
