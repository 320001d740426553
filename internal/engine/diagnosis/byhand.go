package diagnosis

import (
	"cmp"
	"regexp"
	"strings"
)

// Alone is the advice for an unknown error behind a private engine, which ends with the command and cannot be tried by hand.
func Alone(runtime string) string {
	return "measure the runtime alone, to see whether it works: touchstone benchmark -t oci/" + cmp.Or(runtime, "runc") + " --filter operations.container.lifecycle --runs 1"
}

// tree are the commands that make a root file system of links into the host's /usr, in the directory rootfs. Each distribution of today has programs and
// libraries there. A copy of one program would lack its libraries.
const tree = "mkdir -p rootfs/usr && ln -s usr/bin usr/lib usr/lib64 rootfs/"

// byHand begins an advice whose command is a line of its own, which readers can copy.
const byHand = "try the runtime by hand:\n"

// ByHand is the advice for an unknown error of an OCI runtime: a command line that runs a container without Touchstone.
func ByHand(binary string, flags []string) string {
	call := words(append([]string{binary}, flags...))
	return byHand + "(cd $(mktemp -d) && " + tree + " && " + call + " spec && " +
		`sed -i 's|"sh"|"true"|; s|"terminal": true|"terminal": false|; ` +
		`s|"mounts": \[|&{"destination":"/usr","type":"bind","source":"/usr","options":["rbind","ro"]},|' config.json && ` + call + " run try)"
}

// ByPodman is ByHand for a runtime behind Podman.
func ByPodman(podman, binary string, flags []string) string {
	call := []string{podman, "--runtime", binary}
	for _, flag := range flags {
		call = append(call, "--runtime-flag", strings.TrimLeft(flag, "-"))
	}
	return byHand + "(cd $(mktemp -d) && " + tree + " && " + words(call) + " run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 -v /usr:/usr:ro --rootfs $PWD/rootfs true)"
}

// plain matches a word that the shell takes as it is.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// words joins the words of a command line for the shell.
func words(list []string) string {
	var quoted []string
	for _, word := range list {
		if !plain.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted = append(quoted, word)
	}
	return strings.Join(quoted, " ")
}
