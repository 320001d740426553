package locality

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// findProcess runs a container and looks for its process here.
func (c *check) findProcess(ctx context.Context) (visible bool, err error) {
	limitCtx, cancel := c.WithLimit(ctx)
	defer cancel()
	container, err := c.Engine.Create(limitCtx, c.spec(engine.NoNetwork, waiting(c.token())...))
	if err != nil {
		return false, err
	}
	err = container.Start(limitCtx)
	if err == nil {
		visible, err = c.inspect(limitCtx, container)
	}
	return visible, errors.Join(err, engine.Undo(ctx, container))
}

func (c *check) inspect(ctx context.Context, container engine.Container) (visible bool, err error) {
	process, err := c.Process(ctx, container)
	if err != nil {
		return false, err
	}
	if process.PID <= 0 {
		c.Missing[engine.OnHost] = c.Daemon + " does not report the process of a container"
		return false, nil
	}
	dir := filepath.Join(c.proc, strconv.Itoa(process.PID))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && errors.Is(c.signal(process.PID), unix.EPERM) {
		c.Missing[engine.OnHost] = "the kernel hides the process of its container (mount option hidepid of /proc); mount /proc with hidepid=0, or run as root"
		return false, nil
	}
	if !belongs(dir, append(process.IDs, c.token())) {
		c.Missing[engine.OnHost] = fmt.Sprintf("%s reports %d as the process of its container, and here that is no process or another one: the daemon has another PID namespace; %s",
			c.Daemon, process.PID, c.inContainer("--pid=host", "start Touchstone where the daemon runs, or use --managed for a private daemon"))
		return false, nil
	}
	c.uid, c.known = rootOf(dir)
	return true, c.findCgroups(dir, process.PID)
}

// belongs reports whether a process has one of these words in its arguments or in the names of its cgroups. A sandbox has the ID of its container in
// its arguments. The program of a plain container has the check's own word there.
func belongs(dir string, words []string) bool {
	args, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // a process that does not exist has no words
	groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
	return slices.ContainsFunc(words, func(word string) bool {
		return word != "" && (bytes.Contains(args, []byte(word)) || bytes.Contains(groups, []byte(word)))
	})
}

// rootOf returns the user here that root is in the user namespace of a process.
func rootOf(dir string) (uid int, ok bool) {
	text, _ := os.ReadFile(filepath.Join(dir, "uid_map")) // without it the user is not known
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "0" {
			continue
		}
		if uid, err := strconv.Atoi(fields[1]); err == nil {
			return uid, true
		}
	}
	return 0, false
}

// findCgroups compares the daemon's cgroups with this program's. The parent of a container's process (the shim or the monitor) has the cgroup
// namespace of the daemon, which resolves the names of cgroups. Both namespaces can see one cgroup under different names.
func (c *check) findCgroups(dir string, pid int) error {
	if c.session.Cgroups == nil {
		return nil
	}
	holds, err := c.session.Cgroups.Holds(pid)
	if err != nil {
		return err
	}
	ours, noOwn := os.Readlink(filepath.Join(c.proc, "self/ns/cgroup"))
	their, noTheirs := os.Readlink(filepath.Join(c.proc, parentOf(dir), "ns/cgroup"))
	// Linux before 4.6 has no such namespaces. A program without root cannot read the links of root's processes.
	match := ours == their || noOwn != nil || noTheirs != nil
	if c.Cgroups = holds && match; !c.Cgroups {
		c.Notes = append(c.Notes, fmt.Sprintf("%s has other cgroups than this program, so limits and cost of its containers cannot be read or separated here; %s",
			c.Daemon, c.inContainer("--cgroupns=host and -v /sys/fs/cgroup:/sys/fs/cgroup", "start Touchstone where the daemon runs")))
	}
	return nil
}

// parentOf returns the ID of a process's parent.
func parentOf(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "status")) // without it the link of the parent cannot be read either
	for line := range strings.Lines(string(text)) {
		if parent, ok := strings.CutPrefix(line, "PPid:"); ok {
			return strings.TrimSpace(parent)
		}
	}
	return "0"
}
