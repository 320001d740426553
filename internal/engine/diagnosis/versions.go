package diagnosis

import (
	"regexp"
	"strconv"
)

// versions are programs that do not fit together, or do not fit to the kernel.
var versions = []rule{
	{
		patterns: match(`unknown version specified`),
		cause:    "the runtime is too old for this engine",
		advice:   "use crun 1.21 or later, named with --runtime crun=PATH",
	},
	{
		patterns: match(`incompatible CNI versions; config is "(?P<config>[^"]+)", plugin supports (?P<plugin>\[[^\]]*\])`),
		cause:    "the CNI plug-ins do not support version ${config} of the network's configuration, only ${plugin}",
		advice:   "install newer plug-ins (package containernetworking-plugins), or lower cniVersion in /etc/cni/net.d",
	},
	{
		patterns: match(`cannot read client sync file`, `waiting for sandbox to start: EOF`, `cannot run with network enabled in root network namespace`),
		when:     isGVisor,
		cause:    "gVisor's sandbox exited while it started",
		advice:   "look for the cause in the log of ${binary} --debug --debug-log=/tmp/runsc/ do true",
		refine:   oldSandbox,
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

// releaseDate finds the date of a release of gVisor, such as release-20221219.0.
var releaseDate = regexp.MustCompile(`release-(\d{8})\.\d+`)

// oldestSandbox is the first date of the releases of gVisor that run on the kernels of 2025 and later. Debian 12 and 13 have older releases, of 2022 and 2024.
const oldestSandbox = 20250101

// oldSandbox is the cause for an old release. Such a sandbox exits without a message on a kernel that it does not know.
func oldSandbox(f Facts, values map[string]string, cause, advice string) (string, string) {
	found := releaseDate.FindStringSubmatch(f.Version)
	if found == nil {
		return cause, advice
	}
	values["release"] = found[0]
	if date, err := strconv.Atoi(found[1]); err != nil || date >= oldestSandbox {
		return cause, advice
	}
	return cause + ": ${release} is too old for this kernel, ${kernel}", "use a release of gVisor since 2025, named with --runtime ${runtime}=PATH"
}
