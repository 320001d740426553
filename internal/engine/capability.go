package engine

import (
	"errors"
	"fmt"
	"slices"
)

// Capability is a feature that some targets lack.
type Capability string

// The capabilities. CanExec, CanPause, CanUpdate and CanStats promise the optional interface of the target's containers
// (Execer, Pauser, Updater, Meter). CanPull promises that the engine is a Puller. NetworkBridge promises that the engine
// is a Networker and that Bridged containers are Addressed. CanWrite allows a Spec to be Writable, and CanTmpfs allows
// mounts without a source. CanBind allows mounts of directories on disk, and CanBindMemory allows mounts of directories in memory. OnMachine
// promises that containers run on this machine, and OnHost that their processes are also visible here by the IDs that the engine reports.
// DirectCalls promises that Create, Start, Kill and Delete each act on the container before they return, so that their times are the
// engine's.
const (
	CanExec       Capability = "exec"
	CanPause      Capability = "pause"
	CanUpdate     Capability = "update"
	NetworkHost   Capability = "host network"
	NetworkBridge Capability = "bridged network"
	CanPull       Capability = "pull"
	CanStats      Capability = "stats"
	CanWrite      Capability = "writable root"
	CanTmpfs      Capability = "tmpfs"
	CanBind       Capability = "bind mount"
	CanBindMemory Capability = "bind mount of memory"
	OnMachine     Capability = "this machine"
	OnHost        Capability = "processes on this host"
	DirectCalls   Capability = "direct calls"
)

// Capabilities lists all capabilities in display order.
func Capabilities() []Capability {
	return []Capability{
		CanExec, CanPause, CanUpdate, NetworkHost, NetworkBridge, CanPull, CanStats, CanWrite, CanTmpfs,
		CanBind, CanBindMemory, OnMachine, OnHost, DirectCalls,
	}
}

// Missing holds the capabilities that a target lacks, each with the reason. An engine embeds it for its Supports.
type Missing map[Capability]string

// Supports implements Engine.
func (m Missing) Supports(c Capability) error {
	if reason, ok := m[c]; ok {
		return &UnsupportedError{What: string(c), Reason: reason}
	}
	if !slices.Contains(Capabilities(), c) {
		return &UnsupportedError{What: string(c), Reason: "this version knows no such capability"}
	}
	return nil
}

// UnsupportedError reports that a target cannot do something on this host. It is the only error of that meaning: callers
// skip the work with the reason, and treat every other error as a failure.
type UnsupportedError struct {
	What   string // the capability, or the target
	Reason string
	Advice string // the remedy, if there is one
	// Output is the whole message of the failing call, and Log the end of the log of a private engine, both for a report about the failure. They
	// are empty if the reason has everything.
	Output, Log string
}

func (e *UnsupportedError) Error() string {
	s := fmt.Sprintf("%s: %s", e.What, e.Reason)
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// Unsupported reports whether err contains an *UnsupportedError.
func Unsupported(err error) bool {
	var u *UnsupportedError
	return errors.As(err, &u)
}
