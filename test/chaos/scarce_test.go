package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// TestScarceHosts: directories are full or read-only, and processes, files and memory are limited. A run may fail with the reason. It must not
// crash, and must leave nothing.
func TestScarceHosts(t *testing.T) {
	cells.Need(t, "chaos/scarce")
	onHost(t, 10, "small file systems, few processes, few files, little memory, a read-only /var", func(h *host) {
		h.need("runc")
		for _, dir := range []string{"/run/touchstone", "/var/lib/touchstone"} { // mount points
			h.must(os.MkdirAll(filepath.Join(dir, "by-hand"), 0o700))
			h.must(os.Chmod(dir, 0o700))
		}
		pids, memory := h.limitedCgroup("pids", "200", "pids.max"), h.limitedCgroup("memory", "536870912", "memory.limit_in_bytes", "memory.max")
		h.watch()
		for _, c := range []struct{ name, prepare string }{
			{"8 MiB for data", "mount -t tmpfs -o size=8m,mode=700 none /var/lib/touchstone"},
			{"8 MiB for state", "mount -t tmpfs -o size=8m,mode=700 none /run/touchstone"},
			{"8 MiB for the output", "mkdir out; mount -t tmpfs -o size=8m,mode=700 none out"},
			{"256 KiB for the output", "mkdir out; mount -t tmpfs -o size=256k,mode=700 none out"},
			{"200 processes", pids},
			{"256 files", "ulimit -n 256"},
			{"512 MiB of memory", memory},
			{"a read-only /var", "mount --bind /var /var; mount -o remount,bind,ro /var"},
		} {
			if c.prepare == "" {
				h.Logf("%s: the host lacks the controller", c.name)
				continue
			}
			// The export is printed in the same namespace, where the output may be.
			script := c.prepare + `; touchstone "$@"; code=$?; if [ -e out/touchstone.db ]; then touchstone export >export.json; fi; exit $code`
			p := h.start(h.newDir(), func(cmd *exec.Cmd) {
				args := benchmarkArgs("--targets", "native,oci/runc", "--filter", "operations.container", "--runs", "2", "--timeout", "20s")
				cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", script, "sh"}, args...)
				cmd.SysProcAttr.Unshareflags = unix.CLONE_NEWNS
			})
			p.ends(0, 1, 3, 5)
			h.tried(1)
			if code := p.cmd.ProcessState.ExitCode(); code != 0 && strings.TrimSpace(p.output()) == "" {
				h.wrong("%s: exit code %d without a message", c.name, code)
			}
			h.checkReasons(c.name, filepath.Join(p.dir, "export.json"))
			left, losses := h.differences()
			h.differs(left, losses, "with %s\n%s", c.name, p.output())
		}
	})
}

// checkReasons checks that each exported trial without a result has a reason.
func (h *host) checkReasons(name, file string) {
	h.Helper()
	f, err := os.Open(file)
	if err != nil {
		return // the run ended before its first record
	}
	defer func() { _ = f.Close() }()
	document, err := result.Decode(f)
	if err != nil {
		h.Logf("%s: the run cannot be exported: %v", name, err)
		return
	}
	for _, run := range document.Runs {
		for i := range run.Trials {
			if t := &run.Trials[i]; t.Status != result.OK && t.Reason == "" {
				h.wrong("%s: a trial on %s is %s without a reason", name, t.Target, t.Status)
			}
		}
	}
}

// limitedCgroup makes a cgroup with a limit, and returns a script that joins it. The script is empty without the controller.
func (h *host) limitedCgroup(controller, value string, files ...string) (script string) {
	h.Helper()
	groups, err := hierarchies()
	h.must(err)
	for _, g := range groups {
		if !slices.Contains(strings.Split(g.VFSOptions, ","), controller) {
			continue
		}
		group := filepath.Join(g.Mountpoint, "limited")
		h.must(os.Mkdir(group, 0o755))
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(group, file)); err != nil {
				continue
			}
			h.must(os.WriteFile(filepath.Join(group, file), []byte(value), 0o600))
			return fmt.Sprintf("echo $$ >%s/cgroup.procs", group)
		}
	}
	return ""
}
