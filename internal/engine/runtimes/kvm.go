package runtimes

import (
	"context"
	"errors"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/vmhost"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// UsesKVM reports whether a target's options select gVisor's platform kvm.
func (r Runtime) UsesKVM(t target.Target) bool {
	platform, _ := r.With(t).Option(r.Option)
	return r.Kind.Name == gVisor && platform == "kvm"
}

// NoteKVM describes the proof for the target's notes.
const NoteKVM = "each start is followed by a check that the sandbox holds a virtual machine and a processor of KVM"

// ErrNoProofOfKVM is the error of an engine that does not know the processes of a container.
var ErrNoProofOfKVM = errors.New("no process of the container is known, so nothing proves that it runs on KVM")

// Check returns an *engine.UnsupportedError if the host lacks a requirement of the target.
func (r Runtime) Check(ctx context.Context, s engine.Session, t target.Target) error {
	switch {
	case r.Guest != nil:
		return checkGuest(ctx, s, t, r.Guest.Needs())
	case r.UsesKVM(t):
		return vmhost.Refuse(t.String(), hostOf(s).KVM(ctx))
	}
	return nil
}

// CheckUser is Check for a daemon of the user's: the shim of a virtual machine then needs the syslog of the host.
func (r Runtime) CheckUser(ctx context.Context, s engine.Session, t target.Target) error {
	if r.Guest == nil {
		return r.Check(ctx, s, t)
	}
	needs := r.Guest.Needs()
	needs.Syslog = true
	return checkGuest(ctx, s, t, needs)
}

// checkGuest loads the modules that a guest needs, as far as the host has them, and checks the other requirements.
func checkGuest(ctx context.Context, s engine.Session, t target.Target, g vmhost.Guest) error {
	host := hostOf(s)
	if g.Vsock && host.Root == "/" {
		kata.LoadModules(ctx, s.Launcher)
	}
	return vmhost.Refuse(t.String(), host.Check(ctx, g))
}

// hostOf returns the machine of a session. Tests replace it.
var hostOf = vmhost.Of

// ProveKVM checks that the sandboxes among the processes of a container of gVisor run on KVM. Processes that have exited prove
// nothing, and are no error. An engine calls it after a start, outside of the steps.
func ProveKVM(pids ...int) error { return vmhost.ProveUse("/proc", pids) }
