package bench

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/moby/sys/mountinfo"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// NotMeasured begins the condition of a volume that a trial has left out; the reason follows.
const NotMeasured = "not measured: "

// Volume is what the files of a benchmark lie on, as a parameter spells it.
type Volume string

// The volumes there are.
const (
	Rootfs    Volume = "rootfs"     // the container's own root file system: the engine's snapshotter
	Bind      Volume = "bind"       // a directory on the host's disk
	Tmpfs     Volume = "tmpfs"      // a file system in memory, which the runtime makes for the container
	BindTmpfs Volume = "bind-tmpfs" // a directory of the host in memory
)

// Volumes lists all volumes.
func Volumes() []Volume { return []Volume{Rootfs, Bind, Tmpfs, BindTmpfs} }

// DataDir is the directory of containers at which every volume is.
const DataDir = "/data"

// OnParam is the parameter for the volume.
func OnParam(quick, paper Volume) Param {
	var names []string
	for _, v := range Volumes() {
		names = append(names, string(v))
	}
	return Param{
		Name: "on", Quick: string(quick), Paper: string(paper), Check: OneOf(names...),
		Help: "what the files lie on: the container's root file system, a bind mount of the host's disk, a tmpfs that the runtime makes, a bind mount of a tmpfs of the host",
	}
}

// OnDisk tells whether files on the volume are files on the host's disk.
func (v Volume) OnDisk() bool { return v == Rootfs || v == Bind }

// Space is what files of so many bytes take on the volume.
func (v Volume) Space(bytes int64) Space {
	switch v {
	case Tmpfs:
		return Space{Tmpfs: bytes}
	case BindTmpfs:
		return Space{Memory: bytes}
	default:
		return Space{Disk: bytes}
	}
}

// Mounted is a volume as the containers of a trial get it.
type Mounted struct {
	Volume
	// Dir is its directory on the host, which all containers share that are given it; empty if each has its own.
	Dir string
	// On says in words what it is.
	On string
}

// Mount makes a volume for a trial. It is an *engine.UnsupportedError if the target has none of the kind.
func (v Volume) Mount(t Trial) (Mounted, error) {
	m := Mounted{Volume: v}
	var err error
	switch v {
	case Rootfs:
		m.On = rootOf(t)
		err = t.Supports(engine.CanWrite)
	case Tmpfs:
		m.On = "a tmpfs of the container"
		err = t.Supports(engine.CanTmpfs)
	case Bind:
		m.Dir, err = t.Scratch(Disk)
	case BindTmpfs:
		m.Dir, err = t.Scratch(Memory)
	}
	if err == nil && m.Dir != "" {
		var fs string
		fs, err = fileSystemOf(m.Dir)
		m.On = "a bind mount of " + fs
	}
	return m, err
}

// Into gives a container the volume at DataDir.
func (m Mounted) Into(spec *engine.Spec) {
	switch {
	case m.Dir != "":
		spec.Mounts = append(spec.Mounts, engine.Mount{Source: m.Dir, Target: DataDir})
	case m.Volume == Tmpfs:
		spec.Mounts = append(spec.Mounts, engine.Mount{Target: DataDir})
	default:
		spec.Writable = true
	}
}

// rootOf says in words where a container's root file system keeps what is written: see engine.Spec.Writable.
func rootOf(t Trial) string {
	const root = "the container's root file system: "
	switch isolation := t.Info().Isolation; {
	case isolation == engine.NoIsolation:
		return "a directory of the run's disk, bound to " + DataDir
	case isolation == engine.UserKernel:
		return root + "what is written may stay in an overlay of the sandbox's own"
	case t.Supports(engine.CanPull) == nil:
		return root + "a layer of the engine's snapshotter"
	default:
		return root + "an overlay on the run's disk"
	}
}

// fileSystemOf says in words what a directory of the host lies on.
func fileSystemOf(dir string) (string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(dir))
	if err != nil {
		return "", fmt.Errorf("look what %s lies on: %w", dir, err)
	}
	if len(mounts) == 0 {
		return "", fmt.Errorf("look what %s lies on: %w", dir, os.ErrNotExist)
	}
	// Of several at the same place the last one is seen.
	slices.SortStableFunc(mounts, func(a, b *mountinfo.Info) int { return len(a.Mountpoint) - len(b.Mountpoint) })
	m := mounts[len(mounts)-1]
	if m.Source == "" || m.Source == "none" || m.Source == m.FSType {
		return m.FSType, nil
	}
	return m.FSType + " (" + m.Source + ")", nil
}

// Cache is the state of the host's page cache before files are read, as a parameter spells it.
type Cache string

// The states there are.
const (
	Warm Cache = "warm" // what was just written is still in it
	Cold Cache = "cold" // it was dropped
)

// CacheParam is the parameter for the page cache.
func CacheParam(quick, paper Cache) Param {
	return Param{
		Name: "cache", Quick: string(quick), Paper: string(paper), Check: OneOf(string(Warm), string(Cold)),
		Help: "whether what is read lies in the host's page cache, or that was dropped right before",
	}
}

// Check refuses files that cannot be in the state.
func (c Cache) Check(v Volume) error {
	if c == Warm || v.OnDisk() {
		return nil
	}
	return &engine.UnsupportedError{
		What: "a cold page cache", Reason: "files on " + string(v) + " lie in memory, cached or not",
		Advice: "measure with cache=warm, or on=bind",
	}
}

// Prepare brings the host's page cache into the state. It has no place in a timed region.
func (c Cache) Prepare(ctx context.Context, t Trial) error {
	if c == Warm {
		return nil
	}
	return t.DropCaches(ctx)
}
