package cli

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// missingProgram matches the name of a missing program in the reason of a target.
var missingProgram = regexp.MustCompile(`(\S+?)(?:, which it needs,)? is (?:missing|not on PATH|neither)`)

// debianPackages are the packages of Debian with the programs of engines and runtimes.
var debianPackages = map[string]string{
	"runc": "runc", "crun": "crun", "runsc": "runsc", "containerd": "containerd", "containerd-shim-runc-v2": "containerd",
	"dockerd": "docker.io", "podman": "podman", "conmon": "conmon",
}

// repair returns the command that makes the largest number of targets work, and that number. hasApt is set if apt-get can install packages.
func repair(rows []targetRow, hasApt bool) (command string, count int) {
	sudo := ""
	if os.Geteuid() != 0 {
		sudo = "sudo "
	}
	packages, names := map[string]bool{}, map[string]bool{}
	installs, setups, daemons, rights := 0, 0, 0, 0
	for _, r := range rows {
		if r.Works {
			continue
		}
		program := missingProgram.FindStringSubmatch(r.Reason)
		if program != nil && slices.Contains(partNames(), program[1]) {
			names[program[1]] = true
			setups++
		}
		switch {
		case hasApt && program != nil && debianPackages[program[1]] != "":
			packages[debianPackages[program[1]]] = true
			installs++
		case strings.Contains(r.Advice, "--managed"):
			daemons++
		case strings.HasSuffix(r.Advice, "run as root"):
			rights++
		}
	}
	switch count = max(installs, setups, daemons, rights); count {
	case 0:
	case setups: // it also installs newer versions than the distribution has
		command = sudo + "touchstone setup " + strings.Join(slices.Sorted(maps.Keys(names)), " ")
	case installs:
		command = sudo + "apt-get install " + strings.Join(slices.Sorted(maps.Keys(packages)), " ")
	case daemons:
		command = "touchstone targets --managed"
	case rights:
		command = "sudo touchstone targets"
	}
	return command, count
}
