package runtimes

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/engine"
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

// Check returns an *engine.UnsupportedError if the host lacks a requirement of the target.
func (r Runtime) Check(ctx context.Context, s engine.Session, t target.Target) error {
	switch {
	case r.Guest != nil:
		return r.checkGuest(ctx, s, t)
	case r.UsesKVM(t):
		return vmhost.Refuse(t.String(), hostOf(s).KVM(ctx))
	}
	return nil
}

// hostOf returns the machine of a session. Tests replace it.
var hostOf = vmhost.Of

// ProveKVM checks that the sandboxes among the processes of a container of gVisor run on KVM. Processes that have exited prove
// nothing, and are no error. An engine calls it after a start, outside of the steps.
func ProveKVM(pids ...int) error { return vmhost.ProveUse("/proc", pids) }
