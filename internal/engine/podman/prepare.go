package podman

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// prepare makes the directories and the configuration of this target. Targets do not share storage, because they would wait for
// each other's locks.
func (e *Engine) prepare(ctx context.Context) error {
	var err error
	if e.state, err = e.Session.MakeStateDir(shortName); err != nil {
		return err
	}
	e.data = filepath.Join(e.Session.Data, name, filepath.Base(e.state))
	for _, dir := range []string{e.exitDir(), e.logDir(), filepath.Join(e.data, "tmp"), filepath.Join(e.state, networksDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the directories of %s: %w", e.info.Target, err)
		}
	}
	files := map[string]string{
		"containers.conf": e.configuration(),
		"storage.conf":    fmt.Sprintf("[storage]\ndriver = %q\ngraphroot = %q\nrunroot = %q\n", storageDriver, e.root(), e.runRoot()),
		"registries.conf": "unqualified-search-registries = []\n",
		"policy.json":     `{"default": [{"type": "insecureAcceptAnything"}]}`,
	}
	if err := managed.WriteFiles(e.state, files); err != nil {
		return fmt.Errorf("configure %s: %w", e.info.Target, err)
	}
	if e.exits, err = watchExits(e.exitDir()); err != nil {
		return err
	}
	if e.logs, err = crilog.New(); err != nil {
		return err
	}
	e.mounts, err = managed.HoldMounts(ctx, e.Session, name+"-"+filepath.Base(e.state), []string{e.paths.podman, e.paths.conmon, e.info.Binary}, []string{e.runRoot()})
	return err
}

// shortName begins the path of a target's state directory below the session's. Podman refuses paths of 50 characters.
const shortName = "p"

func (e *Engine) root() string    { return filepath.Join(e.data, "root") }
func (e *Engine) runRoot() string { return filepath.Join(e.state, "r") }
func (e *Engine) tmpDir() string  { return filepath.Join(e.state, "t") }
func (e *Engine) exitDir() string { return filepath.Join(e.tmpDir(), "exits") }
func (e *Engine) logDir() string  { return filepath.Join(e.data, "logs") }

// configuration is containers.conf. Locks are files: the default is one shared memory for all Podmans of a host, where a killed
// run would leave its locks behind. conmon calls Podman when a container has exited, and must find the same configuration;
// without it that call waits for 20 s.
func (e *Engine) configuration() string {
	var env []string
	for _, v := range e.environment() {
		env = append(env, strconv.Quote(v))
	}
	lines := []string{
		"[containers]",
		`apparmor_profile = "unconfined"`, // a loaded profile would stay in the kernel
		"label = false",                   // SELinux would refuse containers the directories of the run
	}
	if limits := ulimits(); limits != "" {
		lines = append(lines, "default_ulimits = ["+limits+"]")
	}
	lines = append(lines,
		"[engine]",
		`cgroup_manager = "cgroupfs"`,
		`events_logger = "file"`,
		`lock_type = "file"`,
		"tmp_dir = "+strconv.Quote(e.tmpDir()),
		"volume_path = "+strconv.Quote(filepath.Join(e.root(), "volumes")),
		"conmon_env_vars = ["+strings.Join(env, ", ")+"]",
		"hooks_dir = []",
	)
	if e.paths.conmon != "" {
		lines = append(lines, "conmon_path = ["+strconv.Quote(e.paths.conmon)+"]")
	}
	lines = append(lines, "[network]", "network_config_dir = "+strconv.Quote(filepath.Join(e.state, networksDir)))
	return strings.Join(lines, "\n") + "\n"
}

// storageDriver is the driver for the layers of containers.
const storageDriver = "overlay"

// ulimits are limits for containers that this process can set. Without CAP_SYS_RESOURCE it cannot raise a limit, and Podman's
// defaults are higher than most users' limits. Podman lowers its own limit of processes to pid_max.
func ulimits() string {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		return "" // Podman's defaults
	}
	pids := uint64(1) << 22
	if text, err := os.ReadFile("/proc/sys/kernel/pid_max"); err == nil {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			pids = n
		}
	}
	var list []string
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
	}{{"nofile", unix.RLIMIT_NOFILE, 1 << 20}, {"nproc", unix.RLIMIT_NPROC, pids}} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(l.resource, &limit); err == nil {
			list = append(list, fmt.Sprintf("\"%s=%[2]d:%[2]d\"", l.name, min(limit.Max, l.most)))
		}
	}
	return strings.Join(list, ", ")
}

// environment is the whole environment of Podman. The user's own variables could refer to other directories.
func (e *Engine) environment() []string {
	return process.Environment(
		"HOME="+e.data,
		"TMPDIR="+filepath.Join(e.data, "tmp"),
		"CONTAINERS_CONF="+filepath.Join(e.state, "containers.conf"),
		"CONTAINERS_STORAGE_CONF="+filepath.Join(e.state, "storage.conf"),
		"CONTAINERS_REGISTRIES_CONF="+filepath.Join(e.state, "registries.conf"),
		"PODMAN_IGNORE_CGROUPSV1_WARNING=1",
	)
}
