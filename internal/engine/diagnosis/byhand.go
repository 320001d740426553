package diagnosis

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Alone is the advice for an unknown error behind a private engine, which ends with the command and cannot be tried by hand.
func Alone(runtime string) string {
	return "measure the runtime alone, to see whether it works: touchstone benchmark -t oci/" + cmp.Or(runtime, "runc") + " --filter operations.container.lifecycle --runs 1"
}

// hostDirs are the directories with the host's programs and libraries. Most distributions have all of them in /usr, and links to it. Alpine has directories in
// place of the links, and NixOS and Guix have a store.
var hostDirs = []string{"usr", "bin", "sbin", "lib", "lib64", "nix", "gnu"}

// tree returns the commands that make a root file system in the directory rootfs, for the host's programs and libraries. The container needs the directories
// mounts of the host, which is at root. A copy of one program would lack its libraries.
func tree(root string) (commands string, mounts []string) {
	commands = "mkdir -p rootfs"
	var links []string
	for _, dir := range hostDirs {
		info, err := os.Lstat(filepath.Join(root, dir))
		switch {
		case err != nil:
		case info.IsDir():
			mounts = append(mounts, "/"+dir)
			commands += " rootfs/" + dir
		case info.Mode().Type() == fs.ModeSymlink:
			links = append(links, "/"+dir)
		}
	}
	if len(links) > 0 {
		commands += " && cp -P " + strings.Join(links, " ") + " rootfs/"
	}
	return commands, mounts
}

// byHand begins an advice whose command is a line of its own, which readers can copy.
const byHand = "try the runtime by hand:\n"

// ByHand is the advice for an unknown error of an OCI runtime: a command line that runs a container without Touchstone. Each distribution has a shell.
func ByHand(binary string, flags []string) string {
	call := words(append([]string{binary}, flags...))
	commands, mounts := tree("/")
	var binds strings.Builder
	for _, dir := range mounts {
		fmt.Fprintf(&binds, `{"destination":"%s","type":"bind","source":"%[1]s","options":["rbind","ro"]},`, dir)
	}
	return byHand + "(cd $(mktemp -d) && " + commands + " && " + call + " spec && " +
		`sed -i 's|"sh"|"sh", "-c", "exit"|; s|"terminal": true|"terminal": false|; ` +
		`s|"mounts": \[|&` + binds.String() + `|' config.json && ` + call + " run try)"
}

// ByPodman is ByHand for a runtime behind Podman.
func ByPodman(podman, binary string, flags []string) string {
	call := []string{podman, "--runtime", binary}
	for _, flag := range flags {
		call = append(call, "--runtime-flag", strings.TrimLeft(flag, "-"))
	}
	commands, mounts := tree("/")
	volumes := ""
	for _, dir := range mounts {
		volumes += " -v " + dir + ":" + dir + ":ro"
	}
	return byHand + "(cd $(mktemp -d) && " + commands + " && " + words(call) + " run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024" + volumes +
		" --rootfs $PWD/rootfs sh -c exit)"
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
