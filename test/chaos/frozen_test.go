package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/test/cells"
)

// TestHostEndsWithFrozenProcess leaves a frozen process, as a killed benchmark of pauses does. The end of the host must not wait for it.
func TestHostEndsWithFrozenProcess(t *testing.T) {
	cells.Need(t, "chaos/frozen")
	onHost(t, 0, "a host ends although a process is frozen", func(h *host) {
		groups, err := hierarchies()
		h.must(err)
		sleep := exec.Command("sleep", "1000")
		h.must(sleep.Start())
		for _, g := range groups {
			dir := filepath.Join(g.Mountpoint, "frozen")
			file, value := "cgroup.freeze", "1"
			if strings.Contains(g.VFSOptions, "freezer") {
				file, value = "freezer.state", "FROZEN"
			}
			err := os.Mkdir(dir, 0o755)
			if err == nil && g.FSType == "cgroup" && !strings.Contains(g.VFSOptions, "freezer") {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, sleep.Process.Pid), 0o600)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600)
			}
			h.must(err)
		}
		h.tried(1)
	})
}
