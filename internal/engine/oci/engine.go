package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// Engine drives one OCI runtime by its command line.
type Engine struct {
	engine.Local
	info    engine.Info
	runtime runtimes.Runtime
	engine.Missing
	dir    string // bundles and the runtime's own state
	root   string // the runtime's state
	layers string // writable root file systems, on disk
	// scratch holds the runtime's logs and the output of its calls.
	scratch *process.Scratch
	flags   []string // global flags of every call
	kvm     bool     // the target's sandboxes must run on KVM
	env     []string // of every call
	// The first container shows these properties of the runtime:
	tidy   bool // it leaves no processes behind except the container's
	sweeps bool // its delete removes the container's cgroup from all hierarchies

	mu     sync.Mutex
	bridge *network.Bridge // nil until it is needed

	linking sync.Mutex
	linked  bool  // a container has been tried on the bridge
	noLink  error // the reason why that container failed
}

var (
	_ engine.Engine       = (*Engine)(nil)
	_ engine.CgroupPlacer = (*Engine)(nil)
	_ engine.Accountant   = (*Engine)(nil)
	_ engine.Installed    = (*Engine)(nil)
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

// Programs implements engine.Installed.
func (e *Engine) Programs() ([]string, error) { return []string{e.info.Binary}, nil }

// SetCgroupParent implements engine.CgroupPlacer.
func (e *Engine) SetCgroupParent(group string) error {
	e.Session.Launcher.IgnoreStrays(e.tidy && group != "")
	return e.Local.SetCgroupParent(group)
}

// Create implements engine.Engine.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	group, err := e.Session.ContainerCgroup(e.CgroupParent(), spec.ID)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = e.check(spec)
	}
	if err == nil && group != nil && spec.Resources.CPUSet != "" {
		err = group.PassCPUs() // gVisor does not pass the CPUs down on v1
	}
	if err != nil {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, err)
	}
	bundle := filepath.Join(e.dir, "bundles", spec.ID)
	c := &container{
		e: e, id: spec.ID, group: group, network: e.runtime.NetworkFlags(e.info.Target, spec.Network), bundle: bundle, logName: spec.ID + ".log",
	}
	if err := os.Mkdir(c.bundle, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create container %q: a container of this name exists", c.id)
		}
		return nil, fmt.Errorf("make the bundle of container %q: %w", c.id, err)
	}
	if err := c.create(ctx, spec); err != nil {
		return nil, errors.Join(err, engine.Undo(ctx, c))
	}
	return c, nil
}

// check refuses specs that the runtime would silently ignore.
func (e *Engine) check(spec engine.Spec) error {
	if (e.info.Rootless || e.Session.Cgroups == nil) && spec.Resources != (engine.Resources{}) {
		return &engine.UnsupportedError{
			What: "limits", Reason: "they need cgroups, and this user may not make them for a bare runtime", Advice: refusal.Rights("run as root"),
		}
	}
	if spec.Join != "" {
		return &engine.UnsupportedError{What: "joining a network namespace", Reason: "only native processes at the host's end can do it"}
	}
	var err error
	switch spec.Network {
	case engine.NoNetwork:
	case engine.HostNet:
		err = e.Supports(engine.NetworkHost)
	case engine.Bridged:
		err = e.Supports(engine.NetworkBridge)
	}
	if err == nil && spec.Writable {
		err = e.Supports(engine.CanWrite)
	}
	return err
}

// Link implements engine.Networker. It tries one container with the network, as Open does without it: an older gVisor
// cannot take over an interface on a newer kernel.
func (e *Engine) Link(ctx context.Context) (engine.Link, error) {
	b, err := e.network()
	if err != nil {
		return engine.Link{}, err
	}
	e.linking.Lock()
	defer e.linking.Unlock()
	if !e.linked {
		_, err := e.try(ctx, engine.Bridged)
		if ctx.Err() != nil {
			return engine.Link{}, err
		}
		e.linked = true
		if err != nil {
			e.noLink = &engine.UnsupportedError{
				What: string(engine.NetworkBridge), Reason: fmt.Sprintf("its first container with a network did not work: %v", err),
			}
		}
	}
	return b.Link(), e.noLink
}

// Outward implements engine.Outgoing. No packet leaves the bridge, and a way out of it would be a rule in the host's firewall. So containers
// use the host's network.
func (e *Engine) Outward() (engine.Outward, error) {
	if err := e.Supports(engine.NetworkHost); err != nil {
		return engine.Outward{}, err
	}
	description := "the host's own, without a network of the container's"
	if flags := e.runtime.NetworkFlags(e.info.Target, engine.HostNet); flags != nil {
		description = "the host's own, by " + strings.Join(flags, " ") + " of the runtime"
	}
	return engine.Outward{Network: engine.HostNet, About: description}, nil
}

// network returns the bridge. The first call makes it.
func (e *Engine) network() (*network.Bridge, error) {
	if err := e.Supports(engine.NetworkBridge); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	if e.bridge == nil {
		e.bridge, err = network.NewBridge()
	}
	return e.bridge, err
}

// Close removes the runtime's state directory, with mounts that the runtime has left there.
func (e *Engine) Close() error {
	var err error
	if e.scratch != nil {
		err = e.scratch.Close()
	}
	if err == nil {
		err = unmountBelow(e.dir)
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(e.dir), os.RemoveAll(e.layers))
	}
	e.mu.Lock()
	if e.bridge != nil {
		err = errors.Join(err, e.bridge.Close())
	}
	e.mu.Unlock()
	if err != nil {
		return fmt.Errorf("remove the state of %s: %w", e.info.Target, err)
	}
	return nil
}

// unmountBelow removes all mounts at dir and below, so that dir can be removed. A runsc of 2026 keeps an empty network
// namespace for its gofers at null-netns in its root directory, until that directory is removed.
func unmountBelow(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var errs []error
	for _, m := range slices.Backward(mounts) { // the newest first: it may hide the others
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
		}
	}
	return errors.Join(errs...)
}
