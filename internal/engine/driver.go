package engine

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/target"
)

// Driver makes the targets of one engine live.
type Driver interface {
	// Name is the engine's name in targets.
	Name() string
	// Find looks for targets on this machine, each with the reason if it cannot
	// work. It is bounded: what hangs is reported as hanging.
	Find(ctx context.Context, s Session) []Found
	// Open makes t live. If it cannot work here the error is an
	// *UnsupportedError.
	Open(ctx context.Context, t target.Target, s Session) (Engine, error)
}

// Found is a target that a driver found on this machine.
type Found struct {
	Info
	// Capabilities are the capabilities of a target that works, with the reason for
	// each that does not (nil if it does).
	Capabilities map[Capability]error
	// Err is why the target cannot work here, usually an *UnsupportedError.
	Err error
	// Default tells whether a plan without targets includes it.
	Default bool
}

// Session is what engines of one run share.
type Session struct {
	// RunID marks all that is made.
	RunID string
	// Dir is the run's own state directory, mode 0700, on a local file system.
	// What a later start needs to remove the remains of a killed run lies there.
	Dir string
	// Probe is the path of the probe on the host.
	Probe string
	// Rootfs is a root file system that holds the probe, to try runtimes with.
	Rootfs string
	// Runtimes gives binaries to names of runtimes; a name that is not in it is
	// looked up on PATH.
	Runtimes map[string]string
}
