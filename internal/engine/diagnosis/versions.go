package diagnosis

import (
	"regexp"
	"strconv"
	"strings"
)

// noSandbox are the messages of gVisor for a sandbox that exited without a message of its own.
var noSandbox = match(`cannot read client sync file`, `waiting for sandbox to start: EOF`, `cannot run with network enabled in root network namespace`)

// noProtocol are the messages of a daemon that cannot read the answer of its shim.
var noProtocol = match(`unsupported shim version \((?P<shim>\d+)\)`, `failed to create TTRPC connection: unsupported protocol`)

// versions are programs that do not fit together, or do not fit to the kernel.
var versions = []rule{
	{
		patterns: match(`unknown version specified`),
		cause:    "the runtime is too old for this engine",
		advice:   "use crun 1.21 or later, named with --runtime crun=PATH",
	},
	{
		patterns: noProtocol,
		when:     isPrivate,
		cause:    "the shim is of a newer version than ${engine}",
		advice:   "name the ${engine} of the same installation: --engine-bin ${engine}=PATH; type -a containerd-shim-runc-v2 shows the installations",
	},
	{
		patterns: noProtocol,
		cause:    "the shim is of a newer version than the running ${engine}",
		advice:   "restart the daemon, which an upgrade may have left running: systemctl restart containerd" + orManaged,
		general:  true,
	},
	{
		patterns: match(`incompatible CNI versions; config is "(?P<config>[^"]+)", plugin supports (?P<plugin>\[[^\]]*\])`),
		cause:    "the CNI plug-ins do not support version ${config} of the network's configuration, only ${plugin}",
		advice:   "install newer plug-ins (package containernetworking-plugins), or lower cniVersion in /etc/cni/net.d",
	},
	{
		patterns: noSandbox,
		when:     func(f Facts) bool { return isGVisor(f) && isOldSandbox(f) },
		cause:    "gVisor's sandbox exited while it started: its release ${release} is too old for this kernel, ${kernel}",
		advice:   newSandbox,
		page:     "runsc",
	},
	{
		patterns: noSandbox,
		when:     isGVisor,
		cause:    "gVisor's sandbox exited while it started",
		advice:   "look for the cause in the log of ${binary} --debug --debug-log=/tmp/runsc/ do true",
		page:     "runsc",
		general:  true,
	},
	{
		patterns: match(`unknown platform: (?P<platform>[\w-]+)`),
		when:     isGVisor,
		cause:    "this release of gVisor has no platform ${platform}",
		advice:   newSandbox + "; or leave the option platform out of the target",
		page:     "runsc",
	},
	{
		patterns: match(
			`flag provided but not defined: (?P<flag>-{1,2}[\w-]+)`, `unknown flag: (?P<flag>--[\w-]+)`,
			`unrecognized option '?(?P<flag>--?[\w-]+)`, `unexpected argument '(?P<flag>--?[\w-]+)`,
		),
		cause:  "the runtime does not know the flag ${flag}",
		advice: "leave the option out of the target, or name another version of the runtime with --runtime ${runtime}=PATH",
	},
}

const newSandbox = "use a release of gVisor since 2025, named with --runtime ${runtime}=PATH"

// releaseDate finds the release of a gVisor: release-20221219.0, or 0.0~20221219.0 in Debian.
var releaseDate = regexp.MustCompile(`(?:release-|\b0\.0~)((\d{8})\.\d+)`)

// release is the release of the target's gVisor; empty if it is not known.
func release(f Facts) string {
	if found := releaseDate.FindStringSubmatch(f.Version); found != nil {
		return found[1]
	}
	return ""
}

const (
	// oldestSandbox is the first date of the releases of gVisor that run on the kernels of 2025 and later. Debian 12 and 13 have older releases, of 2022
	// and 2024.
	oldestSandbox = 20250101
	// oldestKernel is the first major version of a kernel that ends the sandboxes of older releases.
	oldestKernel = 6
)

// isOldSandbox recognises an old release of gVisor on a new kernel. Its sandbox exits without a message.
func isOldSandbox(f Facts) bool {
	day, _, _ := strings.Cut(release(f), ".")
	date, err := strconv.Atoi(day)
	major, _, _ := strings.Cut(f.Kernel, ".")
	kernel, kernelErr := strconv.Atoi(major)
	return err == nil && kernelErr == nil && date < oldestSandbox && kernel >= oldestKernel
}
