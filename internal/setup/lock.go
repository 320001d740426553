package setup

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
)

// Recipe is an entry of the lock: one version of a part.
type Recipe struct {
	Name, Version, Licence string
	// Least is the least version of another copy that is recent enough: of the system, or of a package. It is Version if empty.
	Least string
	// Programs are the part's programs. The first one prints the version.
	Programs []string
	// Dirs are directories of the system's copy besides the directories of PATH.
	Dirs []string
	// NeedsRoot is the reason why the part is of no use without root; empty if it is.
	NeedsRoot string
	// OnlyNamed excludes the part from the gaps of a machine.
	OnlyNamed bool
	// IsEngine means that the part is a daemon, which calls runtimes.
	IsEngine bool
	// Package is the name of a package in Debian and its derivatives; empty without one.
	Package string
	// Releases are the project's releases by architecture.
	Releases map[string]Release
	// Build builds the part; nil without a known build.
	Build *Builder
	// Manual is the advice for a part without a source.
	Manual string
	// Bytes is the rough size of the programs.
	Bytes int64

	versionPattern *regexp.Regexp // finds the number of a version in the text of a version; nil for the first one with a dot
}

// Builder builds a part from pinned sources.
type Builder struct {
	Source, Digest string
	// File is the name of the source in the directory of --from; empty if the source is not one file.
	File string
	// Crosses reports that it builds for other architectures.
	Crosses bool
	// Arches are the possible architectures; nil for all.
	Arches []string
	// Needs are the requirements on this machine.
	Needs []Need
	// Minutes is the rough time on two CPUs with empty caches. Space is the rough space for the work, in bytes.
	Minutes int
	Space   int64
	// Run writes the programs to the directory of the work.
	Run func(ctx context.Context, w *work) error
}

// Architectures lists the architectures that parts may be for, in Go's words.
func Architectures() []string { return slices.Sorted(maps.Keys(machines)) }

var (
	usualVersion = regexp.MustCompile(`\d+(\.\d+)+`)
	dateVersion  = regexp.MustCompile(`20\d{6}`) // gVisor's releases have dates
)

// number returns the number of a version in a text, such as 1.5.2 in "runc version 1.5.2"; empty without one.
func (r Recipe) number(text string) string {
	return cmp.Or(r.versionPattern, usualVersion).FindString(text)
}

func (r Recipe) least() string { return cmp.Or(r.Least, r.Version) }

const mb = 1 << 20

// The reasons why parts need root.
const (
	rootOfGVisor = "its rootless mode has no create"
	rootOfEngine = "a private daemon makes namespaces"
)

// Lock returns the parts that setup can install, the runtimes before the engines that call them. The first version of a name is its default.
//
// The lock has no release yet: the bytes of none were compared with a checksum from another place.
func Lock() []Recipe {
	return []Recipe{
		{
			Name: "runc", Version: "1.5.2", Licence: "Apache-2.0", Least: "1.1.0", Programs: []string{"runc"}, Package: "runc", Bytes: 9 * mb,
			Build: buildRunc("v1.5.2", "h1:eUUowc2WJCnFYzI87C1WqRcu356Dk/wsoi90y+2wEfE="),
		},
		{
			// containerd 2.4 passes crun before 1.21 a version of the specification that crun refuses.
			Name: "crun", Version: "1.21", Licence: "GPL-2.0-or-later", Programs: []string{"crun"}, Package: "crun", Bytes: mb,
			Build: buildCrun("1.21", "4bfb700e764a4804a4de3ecf07753f4c391005356d60356df65d80ae0914c486", 1788933),
		},
		{
			Name: "youki", Version: "0.7.0", Licence: "Apache-2.0", Least: "0.5.0", Programs: []string{"youki"}, Bytes: 11 * mb,
			Build: buildYouki("0.7.0"),
		},
		{
			// Releases before 2025 lack the update of limits, and fail with a network on a new kernel.
			Name: "runsc", Version: "20260905", Licence: "Apache-2.0", Least: "20250101", Programs: []string{"runsc", runscShim}, Package: "runsc",
			NeedsRoot: rootOfGVisor, Bytes: 108 * mb, versionPattern: dateVersion,
			Build: buildRunsc("v0.0.0-20260905035102-160fafc42237", "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44="),
		},
		{
			Name: "containerd", Version: "2.4.2", Licence: "Apache-2.0", Least: "1.6.0", Programs: containerdPrograms, IsEngine: true, Package: "containerd",
			NeedsRoot: rootOfEngine, Bytes: 93 * mb,
			Build: buildContainerd("github.com/containerd/containerd/v2", "v2.4.2", "h1:p6Qg+xbEz8lvwdhHDx0U469xENvp4LgGBx+E7djXkGw=", "1.26.6"),
		},
		{
			Name: "containerd", Version: "1.7.35", Licence: "Apache-2.0", Programs: containerdPrograms, IsEngine: true,
			NeedsRoot: rootOfEngine, Bytes: 90 * mb,
			Build: buildContainerd("github.com/containerd/containerd", "v1.7.35", "h1:7AU2T1qI2OdNBmKkreWZ7kASHUNFItN5Hgejd9sY938=", "1.24.0"),
		},
		{
			Name: "crio", Version: "1.34.0", Licence: "Apache-2.0", Least: "1.31.0", Programs: []string{"crio", "pinns"}, IsEngine: true, Package: "cri-o",
			NeedsRoot: rootOfEngine, Bytes: 68 * mb,
			Build: buildCRIO("v1.34.0", "h1:ux2URwAyENy5e5hD9Z95tshdfy98eqatZk0fxx3rhuk="),
		},
		{
			Name: "kata", Version: "3.32.0", Licence: "Apache-2.0", Least: "3.0.0", Programs: []string{"containerd-shim-kata-v2"}, OnlyNamed: true,
			Dirs:      []string{"/opt/kata/bin"},
			NeedsRoot: "a virtual machine needs root", Bytes: 900 * mb,
			Manual: "its release is the only source, and the lock has none; unpack kata-static of https://github.com/kata-containers/kata-containers/releases in /, on a machine with KVM",
		},
	}
}
