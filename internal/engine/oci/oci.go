// Package oci is the engine without a daemon: it writes a bundle and calls the binary of an OCI runtime itself.
//
// Any binary with the command line of runc works. Package runtimes has the properties of the families of runtimes beyond
// that. Options of a target are global flags of the runtime: oci/runsc@platform=ptrace calls runsc
// --platform=ptrace. A [process.Launcher] makes the calls. It adopts the container's process, which every create leaves
// behind, and waits for it.
//
// On a hybrid cgroup host the unified hierarchy is hidden from the runtimes: crun refuses to work while that hierarchy has
// controllers, and all runtimes must see the same.
//
// The timed step of each method is the call of the runtime alone. The engine's own work comes before and after: the
// bundle, the pipes, the adoption of the process, the removal of files. So do the two parts that a bare runtime lacks:
// a writable root, which is an overlay over the shared root file system with its layer on the run's disk, and a bridged
// network, which is a bridge and a veth pair (package network).
package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Driver finds and opens OCI runtimes.
type Driver struct{}

var _ engine.Driver = Driver{}

// name is the engine's name in targets.
const name = "oci"

// Describe declares the runtimes that Touchstone calls itself.
func (Driver) Describe() engine.Description {
	return engine.Description{Name: name, Kind: engine.BareRuntime, Launches: true}
}

// Candidates lists the known runtimes and the runtimes of the session, each with its variants by options.
func (d Driver) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	return runtimes.Candidates(ctx, s, name, func(f runtimes.Found, _ target.Target) error { return cmp.Or(bare(f.Runtime), f.Err) })
}

// bare refuses a runtime that has no binary to call.
func bare(r runtimes.Runtime) error {
	if r.Binary != "" || r.Type == "" {
		return nil
	}
	return &engine.UnsupportedError{
		What: "oci/" + r.Name, Reason: "it is the containerd shim " + r.Type + ", not an executable runtime",
		Advice: "measure it as containerd/" + r.Name,
	}
}

// Open finds the runtime and runs one container with it.
func (d Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	r, err := runtimes.Get(ctx, s, t)
	if err = cmp.Or(bare(r), err, s.Admits(t)); err != nil {
		return nil, err
	}
	flags, err := runtimes.Flags(r.With(t))
	if err != nil {
		return nil, err
	}
	e := &Engine{
		Local: engine.Local{Session: s}, runtime: r, flags: flags, Missing: engine.Missing{
			engine.CanPull:  "it takes the root file system as a directory, and pulls nothing",
			engine.CanStats: "the OCI runtime specification has no call for it",
		},
		info: r.Info(t), kvm: r.UsesKVM(t),
	}
	e.info.Cgroup, e.info.Rootless, e.info.Notes = s.CgroupMode(), os.Geteuid() != 0, slices.Clone(r.Notes)
	e.info = e.info.WithCondition(engine.SeccompCondition, r.Seccomp(s.Seccomp, t))
	refuse := func(reason, advice string) *engine.OpenError {
		return &engine.OpenError{Info: e.info, Err: &engine.UnsupportedError{What: t.String(), Reason: reason, Advice: advice}}
	}
	if e.info.Rootless && e.runtime.Rootless == nil {
		return nil, refuse(e.runtime.NoRootless, "run as root")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	e.adapt(ctx)
	if err := e.prepare(); err != nil {
		return nil, err
	}
	if !e.info.Rootless {
		if err := e.tryLayer(); err != nil {
			e.Missing[engine.CanWrite] = err.Error()
		}
	}
	if err := e.tryOut(ctx); err != nil {
		err = errors.Join(err, e.Close())
		const operation = "its first container did not work"
		if advice, ok := remedy(err, s.Launcher.Refusals()); ok {
			return nil, refuse(fmt.Sprintf("%s: %v", operation, err), advice)
		}
		return nil, diagnosis.Refuse(err, diagnosis.Facts{Info: e.info}.Here(), operation, diagnosis.ByHand(e.info.Binary, e.flags))
	}
	return e, nil
}

// adapt applies the limits of this host and this user to the runtime.
func (e *Engine) adapt(ctx context.Context) {
	info := &e.info
	if e.runtime.Cannot != nil {
		maps.Copy(e.Missing, e.runtime.Cannot(ctx, e.Session.Launcher, info.Binary, info.Version))
	}
	if info.Rootless {
		maps.Copy(e.Missing, e.runtime.RootlessCannot)
	}
	if network, isSet := info.Target.Option("network"); isSet && e.runtime.HostNetwork != nil {
		ruledOut := fmt.Sprintf("the target's option network=%s rules it out", network)
		if network != "host" {
			e.Missing[engine.NetworkHost] = ruledOut
		}
		if network != "sandbox" {
			e.Missing[engine.NetworkBridge] = ruledOut
		}
	}
	if info.Rootless {
		e.Missing[engine.NetworkBridge] = "network namespaces with an interface outside need root"
		e.Missing[engine.CanWrite] = "the overlay for it needs root"
	}
	if info.Isolation == engine.UserKernel {
		info.Notes = append(info.Notes, "writes of a container to its root stay in gVisor's own overlay (overlay2=root:self, "+
			"unless an option changes it): an fsync there does not reach the disk")
	}
	if e.kvm {
		info.Notes = append(info.Notes, runtimes.NoteKVM)
	}
	for _, h := range e.Session.Hidden {
		info.Notes = append(info.Notes, h+" is hidden from the runtime, which then sees cgroup v1 only")
	}
	if e.Session.Cgroups == nil {
		info.Notes = append(info.Notes, "no cgroups: limits are not set, and the cost is known from exited processes only")
		e.Missing[engine.CanPause] = "freezing needs cgroups, which this user may not make"
		e.Missing[engine.CanUpdate] = "limits need cgroups, which this user may not make"
	}
	if info.Rootless {
		e.flags = slices.Concat(e.runtime.Rootless, e.flags)
		info.Notes = append(info.Notes, "rootless: in a user namespace that maps this user to root")
	}
}

// prepare makes the engine's directories.
func (e *Engine) prepare() (err error) {
	if e.dir, err = e.Session.MakeStateDir(name); err != nil {
		return err
	}
	for _, sub := range []string{"root", "bundles"} {
		if err := os.Mkdir(filepath.Join(e.dir, sub), 0o700); err != nil {
			return fmt.Errorf("make the state directory of %s: %w", e.info.Target, err)
		}
	}
	if e.scratch, err = e.Session.Launcher.NewScratch(filepath.Join(e.dir, "logs")); err != nil {
		return err
	}
	e.root = filepath.Join(e.dir, "root")
	e.layers = filepath.Join(e.Session.Data, "oci", filepath.Base(e.dir))
	e.env = process.Environment()
	return nil
}

// tryOut runs one container in a cgroup. If the runtime hangs, all processes in the cgroup are killed. The caller's
// context bounds it.
func (e *Engine) tryOut(ctx context.Context) error {
	return e.Session.InCgroup(ctx, e, "try"+filepath.Base(e.dir), func() error { return e.tryContainer(ctx) })
}

// tryContainer runs a container, and notes the processes and cgroups that the runtime leaves behind.
func (e *Engine) tryContainer(ctx context.Context) error {
	baseline := e.Session.Launcher.Strays()
	c, err := e.try(ctx, engine.NoNetwork)
	if err != nil {
		return err
	}
	e.sweeps = !c.(*container).leftGroup
	e.tidy = e.Session.Launcher.Strays() == baseline
	if e.kvm {
		return e.Session.TryRunning(ctx, e, "-kvm-"+filepath.Base(e.dir))
	}
	return nil
}

// try creates, runs and deletes a container with a network.
func (e *Engine) try(ctx context.Context, n engine.Network) (engine.Container, error) {
	return e.Session.Try(ctx, e, "-"+filepath.Base(e.dir), n)
}

// LauncherOptions are the options under which OCI runtimes work on a host with these cgroups. On hybrid hosts the unified
// hierarchy is hidden. As root, mounts for the runtimes are private.
func LauncherOptions(groups *cgroup.Hierarchy) process.Options {
	if os.Geteuid() != 0 {
		return process.Options{}
	}
	options := process.Options{Private: true}
	if groups == nil || groups.Mode != cgroup.Hybrid {
		return options
	}
	for _, m := range groups.Mounts {
		if m.V2 {
			options.Hide = append(options.Hide, m.Dir)
		}
	}
	return options
}
