package podman

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// Engine drives one runtime through Podman.
type Engine struct {
	engine.Local
	paths   paths
	info    engine.Info
	version string // Podman's own
	runtime runtimes.Runtime
	flags   []string // global flags of the runtime
	engine.Missing

	state, data string // directories: in memory if the host has /run, and on disk
	exits       *exits
	logs        *crilog.Watcher
	mounts      *managed.Mounts
	link        engine.Link

	mu         sync.Mutex
	containers map[string]*container // existing ones, by Podman's ID
}

var (
	_ engine.Engine       = (*Engine)(nil)
	_ engine.CgroupPlacer = (*Engine)(nil)
	_ engine.Accountant   = (*Engine)(nil)
	_ engine.Installed    = (*Engine)(nil)
	_ engine.Puller       = (*Engine)(nil)
	_ engine.Networker    = (*Engine)(nil)
	_ engine.Outgoing     = (*Engine)(nil)
	_ engine.Execer       = (*container)(nil)
	_ engine.Pauser       = (*container)(nil)
	_ engine.Updater      = (*container)(nil)
	_ engine.Addressed    = (*container)(nil)
	_ engine.Limited      = (*container)(nil)
	_ engine.Traced       = (*container)(nil)
)

// Info implements engine.Engine.
func (e *Engine) Info() engine.Info { return e.info }

// Programs implements engine.Installed. The programs of the network are dependencies of Podman's package.
func (e *Engine) Programs() ([]string, error) {
	if e.paths.conmon == "" {
		return nil, &engine.UnsupportedError{
			What: e.info.Target.String(), Reason: "conmon is in a directory that only Podman knows", Advice: "name it with --engine-bin conmon=PATH",
		}
	}
	return []string{e.paths.podman, e.paths.conmon, e.info.Binary}, nil
}

// Pull implements engine.Puller.
func (e *Engine) Pull(ctx context.Context, ref string) error {
	_, err := e.run(ctx, e.command(ctx, invocation{bridged: true}, // the registry serves this network, and not the host's
		"pull", "--quiet", "--tls-verify=false", "--signature-policy", filepath.Join(e.state, "policy.json"), ref))
	if err != nil {
		return fmt.Errorf("pull image %s: %w", ref, err)
	}
	return nil
}

// RemoveImage implements engine.Puller.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	_, err := e.run(ctx, e.command(ctx, invocation{}, "rmi", "--force", ref))
	if err != nil && !strings.Contains(err.Error(), "image not known") {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	return nil
}

// Close removes the storage and the state of this target.
func (e *Engine) Close() error { return e.close(context.Background()) }

func (e *Engine) close(ctx context.Context) error {
	ctx, cancel := engine.WithUndoLimit(ctx)
	defer cancel()
	e.mu.Lock()
	left := e.containers
	e.containers = nil
	e.mu.Unlock()
	for _, b := range left {
		if b.Delete(ctx) != nil {
			b.deleteOCI(ctx)
		}
	}
	var errs []error
	if e.mounts != nil {
		errs = append(errs, e.mounts.Close(ctx)) // this also removes the mounts of the storage
	}
	if e.exits != nil {
		errs = append(errs, e.exits.close())
		e.exits = nil
	}
	if e.logs != nil {
		errs = append(errs, e.logs.Close())
	}
	errs = append(errs, os.RemoveAll(e.data), os.RemoveAll(e.state)) // an empty name is no error
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the state of %s: %w", e.info.Target, err)
	}
	return nil
}

// Create makes the container's record and layer through Podman. The OCI specification's create is part of Start, like for
// Podman's users.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	b := &container{e: e, name: spec.ID, log: filepath.Join(e.logDir(), spec.ID), how: e.invocation(spec.Network)}
	if ctx.Err() != nil {
		return nil, b.explain("create", context.Cause(ctx))
	}
	if spec.Join != "" {
		return nil, b.explain("create", errors.New("a container of Podman cannot join an existing network namespace"))
	}
	parent := e.CgroupParent()
	env, err := e.variables(spec.ID, spec.Process.Env)
	if err != nil {
		return nil, b.explain("create", err)
	}
	call := b.how
	call.env = env.own
	id, err := e.change(ctx, call, e.createArgs(b, spec, parent, env.args)...)
	err = errors.Join(err, env.remove())
	if id == "" && err == nil {
		err = errors.New("podman create printed neither an error nor an ID")
	}
	if id == "" {
		return nil, b.explain("create", err)
	}
	b.id = id
	b.exit = e.exits.await(id)
	e.mu.Lock()
	e.containers[id] = b
	e.mu.Unlock()
	if err == nil && e.Session.Cgroups != nil {
		b.group, err = e.Session.Cgroups.Open(path.Join(parent, "libpod-"+id))
	}
	if err == nil {
		b.output, err = e.logs.Follow(b.log, spec.Process.Stdout, spec.Process.Stderr)
	}
	if err != nil {
		return nil, errors.Join(b.explain("create", err), engine.Undo(ctx, b))
	}
	return b, nil
}

// invocation returns the runtime's flags for a network, and whether commands run in the bridge's namespace.
func (e *Engine) invocation(n engine.Network) invocation {
	return invocation{flags: slices.Concat(e.flags, e.runtime.NetworkFlags(e.info.Target, n)), bridged: n == engine.Bridged}
}

// createArgs encodes a container for podman create, with the arguments of its environment.
func (e *Engine) createArgs(b *container, spec engine.Spec, parent string, env []string) []string {
	network := cmp.Or(string(spec.Network), "none") // "host" is Podman's name too
	if spec.Network == engine.Bridged {
		network = networkName
	}
	args := []string{
		"create", "--name", spec.ID, "--label", engine.Label + "=" + e.Session.RunID, "--pull", "never",
		"--network", network, "--read-only=" + strconv.FormatBool(!spec.Writable), "--read-only-tmpfs=false", "--tmpfs", tmpfs("/tmp", false),
		"--user", "0:0", "--log-driver", "k8s-file", "--log-opt", "path=" + b.log, "--conmon-pidfile", b.conmonFile(),
		"--workdir", "/", "--oom-score-adj", strconv.Itoa(e.Session.Launcher.OOMScore()),
	}
	if e.Session.Seccomp == engine.Unconfined {
		args = append(args, "--security-opt", "seccomp=unconfined")
	}
	if e.Session.Cgroups != nil {
		args = append(args, "--cgroup-parent", path.Join(e.Session.Cgroups.Base(), parent))
	}
	args = append(args, env...)
	for _, m := range spec.Mounts {
		if m.Source == "" {
			args = append(args, "--tmpfs", tmpfs(m.Target, m.ReadOnly))
			continue
		}
		mount := "type=bind,source=" + m.Source + ",destination=" + m.Target
		if m.ReadOnly {
			mount += ",ro"
		}
		args = append(args, "--mount", mount)
	}
	args = append(args, limits(spec.Resources)...)
	// The entry point is a list with all arguments, so Podman adds none of the image's.
	return append(args, "--entrypoint", entrypoint(spec.Process.Args), spec.Image)
}

// tmpfs encodes an empty file system in memory. youki does not support tmpcopyup.
func tmpfs(target string, readOnly bool) string {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	return target + ":" + mode + ",exec,nosuid,nodev,mode=1777,notmpcopyup"
}

// limits encodes limits for create and update. The parent cgroup limits swap, as with bare runtimes.
func limits(r engine.Resources) []string {
	var args []string
	if r.CPU > 0 {
		args = append(args, "--cpu-period", strconv.Itoa(engine.CPUPeriod), "--cpu-quota", strconv.FormatInt(r.CPUQuota(), 10))
	}
	if r.CPUSet != "" {
		args = append(args, "--cpuset-cpus", r.CPUSet)
	}
	if r.Memory > 0 {
		args = append(args, "--memory", strconv.FormatInt(r.Memory, 10)+"b", "--memory-swap", "-1")
	}
	if r.PIDs > 0 {
		args = append(args, "--pids-limit", strconv.FormatInt(r.PIDs, 10))
	}
	return args
}
