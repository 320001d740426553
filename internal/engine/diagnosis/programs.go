package diagnosis

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// programs are programs on the host that cannot be executed.
var programs = []rule{
	{ // before the others, which have the same words for programs of the host
		patterns: match(`(?:start container process|starting container process|container init|init process|executing container)[^\n]*exec(?:v|ve|vp)?:? ["'`+"`"+`]?(?P<path>/[^"'`+"`"+`\s:]+)`, "executable file [`'](?P<path>/[^`']+)[`'] not found"),
		cause:    "the program ${path} of the container cannot be executed",
		advice:   "mount the file system of the images without noexec: findmnt -T /var/lib shows its options",
		refine:   ofContainer,
		vague:    true,
	},
	{
		patterns: match(
			`(?:fork/exec|exec:) "?(?P<path>[^"\n]*?)"?: (?:stat [^\n]*: )?(?:no such file or directory|executable file not found in \$PATH)`,
			`could not find "(?P<path>[^"]+)" in one of`,
			`failed to find (?P<path>[\w-]+) binary`,
			`could not find a working (?P<path>conmon) binary`,
		),
		cause:  "${engine} does not find the program ${path}",
		advice: "install ${package} where ${engine} finds it",
		refine: missing,
	},
	{
		patterns: match(`(?:fork/exec|exec:) "?(?P<path>[^"\n]*?)"?: exec format error`),
		cause:    "${path} is not a program for this machine",
		advice:   "install the build for the architecture of this machine; file ${path} shows the architecture of the program",
	},
	{
		patterns: match(`(?:fork/exec|exec:) "?(?P<path>[^"\n]*?)"?: permission denied`),
		cause:    "${path} may not be executed",
		advice:   "make it executable: chmod 755 ${path}; if it is, its file system has the option noexec: findmnt -T ${path}",
		general:  true,
	},
	{
		patterns: match(`error while loading shared libraries: (?P<library>[^:\s]+): cannot open shared object file`),
		cause:    "the library ${library} of the program is missing",
		advice:   "install the package with ${library}, or a static build of the program",
	},
}

// packages are the names of packages that differ from the names of their programs.
var packages = map[string]string{
	"ip6tables": "iptables", "nft": "nftables", "modprobe": "kmod", "docker-init": "tini", "containerd-shim-runc-v2": "containerd",
	"containerd-shim-runsc-v1": "runsc", "nvidia-container-runtime": "nvidia-container-toolkit", "newuidmap": "uidmap", "newgidmap": "uidmap",
	"mount": "mount", "ip": "iproute2", "virtiofsd": "virtiofsd", "pinns": "cri-o", "mkfs.ext4": "e2fsprogs", "fusermount3": "fuse3",
}

// ofContainer leaves out the runtime itself, which executes a copy of its own program in /proc to start a container.
func ofContainer(_ Facts, values map[string]string, cause, advice string) (string, string) {
	if strings.HasPrefix(values["path"], "/proc/") {
		return "", ""
	}
	return cause, advice
}

// missing tells the reasons for ENOENT of a program apart. The path of a daemon's configuration may have a blank at an end. A program that
// exists needs an interpreter or a loader that does not. A daemon in another mount namespace does not see the program.
func missing(f Facts, values map[string]string, cause, advice string) (string, string) {
	path := values["path"]
	values["bare"] = strings.TrimSpace(path)
	values["path"] = strconv.Quote(path)
	values["package"] = filepath.Base(values["bare"])
	if name, ok := packages[values["package"]]; ok {
		values["package"] = name
	}
	values["place"] = place(f)
	switch {
	case path != values["bare"]:
		return "the path ${path} begins or ends with a blank", "remove the blank from the path ${bare} in ${place}"
	case path == "runc" && f.Engine == "docker" && f.Target.Runtime != "runc":
		return "Docker needs the program runc, also for other runtimes", advice
	case !filepath.IsAbs(path):
		return cause, advice
	case exists(path):
		return "the file ${path} exists, and ${engine} cannot execute it: the interpreter or the loader that it names is missing, or ${engine} sees another file system",
			"name a static build, or one for this distribution: file ${bare} shows the interpreter"
	}
	return cause, "install it at this path, or correct the path in ${place}"
}

// exists reports whether a file exists on the host. It is a variable for tests.
var exists = func(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// place is the place of a runtime's path.
func place(f Facts) string {
	switch {
	case f.Private || f.Engine == "":
		return "the option --runtime"
	case f.Engine == "docker":
		return "/etc/docker/daemon.json, and restart Docker"
	}
	return "the configuration of " + f.Engine + ", and restart it"
}
