package bench

import (
	"fmt"
	"os"
	"slices"

	"github.com/moby/sys/mountinfo"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// NotMeasured is the prefix of the condition of a volume that a trial has left out; the reason follows.
const NotMeasured = "not measured: "

// Volume is the storage of a benchmark's files, as a parameter spells it.
type Volume string

// The volumes.
const (
	Rootfs    Volume = "rootfs"     // the container's own root file system: the engine's snapshotter
	Bind      Volume = "bind"       // a directory on the host's disk
	Tmpfs     Volume = "tmpfs"      // a file system in memory that the runtime makes for the container
	BindTmpfs Volume = "bind-tmpfs" // a directory of the host in memory
)

// Volumes lists all volumes.
func Volumes() []Volume { return []Volume{Rootfs, Bind, Tmpfs, BindTmpfs} }

// DataDir is the mount point of every volume in containers.
const DataDir = "/data"

// OnParam is the parameter for the volume.
func OnParam(quick, paper Volume) Param {
	var names []string
	for _, v := range Volumes() {
		names = append(names, string(v))
	}
	return Param{
		Name: "on", Quick: string(quick), Paper: string(paper), Check: OneOf(names...),
		Help: "the storage of the files: the container's root file system, a bind mount of the host's disk, a tmpfs that the runtime makes, a bind mount of a tmpfs of the host",
	}
}

// OnDisk reports whether files on the volume are files on the host's disk.
func (v Volume) OnDisk() bool { return v == Rootfs || v == Bind }

// Needs returns the requirements of files of so many bytes on the volume.
func (v Volume) Needs(bytes int64) Needs {
	switch v {
	case Rootfs:
		return Needs{Capabilities: []engine.Capability{engine.CanWrite}, Space: Space{Disk: bytes}}
	case Tmpfs:
		return Needs{Capabilities: []engine.Capability{engine.CanTmpfs}, Space: Space{Tmpfs: bytes}}
	case BindTmpfs:
		return Needs{Capabilities: []engine.Capability{engine.CanBindMemory}, Space: Space{Memory: bytes}}
	default:
		return Needs{Capabilities: []engine.Capability{engine.CanBind}, Space: Space{Disk: bytes}}
	}
}

// Mounted is a volume as the containers of a trial receive it.
type Mounted struct {
	Volume
	// Dir is the volume's directory on the host, which all containers share; empty if each container has its own.
	Dir string
	// On describes the storage in words.
	On string
}

// Mount makes a volume for a trial whose target meets the volume's Needs. The error is an *engine.UnsupportedError if
// the host has no such medium.
func (v Volume) Mount(t Trial) (Mounted, error) {
	m := Mounted{Volume: v}
	var err error
	switch v {
	case Rootfs:
		m.On = describeRoot(t)
	case Tmpfs:
		m.On = "a tmpfs of the container"
	case Bind:
		m.Dir, err = t.Storage.Scratch(Disk)
	case BindTmpfs:
		m.Dir, err = t.Storage.Scratch(Memory)
	}
	if err == nil && m.Dir != "" {
		var fs string
		fs, err = fileSystemOf(m.Dir)
		m.On = "a bind mount of " + fs
	}
	return m, err
}

// Into mounts the volume into a container at DataDir.
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

// describeRoot describes the storage of files in a container's root file system: see engine.Spec.Writable.
func describeRoot(t Trial) string {
	const root = "the container's root file system: "
	switch isolation := t.Info.Isolation; {
	case isolation == engine.NoIsolation:
		return "a directory of the run's disk, bound to " + DataDir
	case isolation == engine.UserKernel:
		return root + "files may stay in an overlay inside the sandbox"
	case t.Require(Needs{Capabilities: []engine.Capability{engine.CanPull}}) == nil:
		return root + "a layer of the engine's snapshotter"
	default:
		return root + "an overlay on the run's disk"
	}
}

// fileSystemOf describes the file system of a directory of the host.
func fileSystemOf(dir string) (string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(dir))
	if err == nil && len(mounts) == 0 {
		err = os.ErrNotExist
	}
	if err != nil {
		return "", fmt.Errorf("find the file system of %s: %w", dir, err)
	}
	// The last of several mounts at the same path is visible.
	slices.SortStableFunc(mounts, func(a, b *mountinfo.Info) int { return len(a.Mountpoint) - len(b.Mountpoint) })
	m := mounts[len(mounts)-1]
	if m.Source == "" || m.Source == "none" || m.Source == m.FSType {
		return m.FSType, nil
	}
	return m.FSType + " (" + m.Source + ")", nil
}

// Cache is the state of the host's page cache before files are read, as a parameter spells it.
type Cache string

// The states of the page cache.
const (
	Warm Cache = "warm" // it holds the files, which were written just before
	Cold Cache = "cold" // it was dropped
)

// CacheParam is the parameter for the page cache.
func CacheParam(quick, paper Cache) Param {
	return Param{
		Name: "cache", Quick: string(quick), Paper: string(paper), Check: OneOf(string(Warm), string(Cold)),
		Help: "warm: the files are read from the host's page cache; cold: the page cache is dropped right before reading",
	}
}
