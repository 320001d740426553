package runtimes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Kind describes a family of runtimes beyond the OCI specification. A runtime belongs to the family that its --version
// names, regardless of the name of its file.
type Kind struct {
	Name      string
	Isolation engine.Isolation
	// Variants are the values of Option that are targets of their own.
	Option   string
	Variants []string
	// Rootless are the global flags for use without root. It is nil if the runtime needs root, for the reason in
	// NoRootless.
	Rootless   []string
	NoRootless string
	// RootlessCannot are the capabilities that these flags take away, with the reasons.
	RootlessCannot map[engine.Capability]string
	// Missing are the capabilities that the kind lacks with every engine, with the reasons.
	Missing map[engine.Capability]string
	// NoProcessLimit is the reason why a container has no limit of processes; empty if it has one.
	NoProcessLimit string
	// SmallGuest is the remedy for a virtual machine with too little memory: see engine.Info.
	SmallGuest string
	// NoSeccomp is the reason why the filter of an engine has no effect, unless the target has the option SeccompOption; empty if it
	// has an effect.
	NoSeccomp, SeccompOption string
	// NoNetwork and HostNetwork are the global flags for the two networks.
	NoNetwork, HostNetwork []string
	// Cannot returns the capabilities that this version lacks, with the reasons.
	Cannot func(ctx context.Context, l *process.Launcher, binary, version string) map[engine.Capability]string
	Notes  []string
	// Programs are the runtime's own programs, by component of the cost.
	Programs monitor.Programs
	// onlyNamed excludes the kind from the search: the user must name such a runtime.
	onlyNamed bool
}

// gVisor is the name of gVisor's kind.
const gVisor = "runsc"

// krun is crun with libkrun, which makes a virtual machine for a container. It is crun's file under another name.
const krun = "krun"

// kinds are the known kinds, in the display order of targets.
var kinds = []Kind{
	{
		Name:      "runc",
		Isolation: engine.SharedKernel,
		Rootless:  []string{"--rootless=true"},
		// Its children on the way to the container are called runc:[0:PARENT] and the like. rune is a fork.
		Programs: monitor.Programs{monitor.Runtime: {"runc", "runc:[*", "rune"}},
	},
	{
		Name:      "crun",
		Isolation: engine.SharedKernel,
		// crun detects by itself that it runs without root. Version 1.8.1 uses the value of --rootless as the value of
		// --root.
		Rootless: []string{"--cgroup-manager=disabled"},
		RootlessCannot: map[engine.Capability]string{
			engine.CanPause:  "without root crun runs without a cgroup manager, and then cannot freeze",
			engine.CanUpdate: "without root crun runs without a cgroup manager, and then has no limits",
		},
		Programs: monitor.Programs{monitor.Runtime: {"crun"}},
	},
	{
		Name:      "youki",
		Isolation: engine.SharedKernel,
		Rootless:  []string{},
		Programs:  monitor.Programs{monitor.Runtime: {"youki", "youki:[*"}},
	},
	{
		Name:       gVisor,
		Isolation:  engine.UserKernel,
		Option:     "platform",
		Variants:   []string{"systrap", "ptrace", "kvm"},
		NoRootless: "the rootless mode of runsc has only run and do, no create",
		// gVisor's own network needs an interface to take over. A namespace without an interface gets no network, like with
		// the other runtimes.
		NoNetwork:   []string{"--network=none"},
		HostNetwork: []string{"--network=host"},
		NoSeccomp:   "gVisor loads no filter of an engine, and its sandbox always has its own", SeccompOption: "oci-seccomp",
		Cannot: runscCannot,
		Notes:  []string{"the sandbox's own processes (sentry, gofer) are part of the container's cost"},
		// It executes itself for the sandbox's processes, which the kernel then calls exe.
		Programs: monitor.Programs{
			monitor.Runtime: {"runsc"},
			monitor.Sentry:  {"runsc-sandbox", "gvisor-sentry", "runsc/exe"},
			monitor.Gofer:   {"runsc-gofer", "gvisor-gofer"},
		},
	},
	// Runtimes that only act with services or devices of their own are measured if the user names them.
	{
		Name: "sysbox-runc", Isolation: engine.SharedKernel, NoRootless: "sysbox-runc needs root, and the services of Sysbox", onlyNamed: true,
		Programs: monitor.Programs{monitor.Runtime: {"sysbox-runc"}},
	},
	{
		Name: krun, Isolation: engine.VM, NoRootless: noRootlessGuest, onlyNamed: true,
		Programs: monitor.Programs{monitor.Runtime: {krun}},
	},
	// It was an OCI runtime before version 2 of Kata Containers, and is a utility since then, so it is not searched for.
	{
		Name: "kata-runtime", Isolation: engine.VM, NoRootless: noRootlessGuest, onlyNamed: true,
		Programs: monitor.Programs{monitor.Runtime: {"kata-runtime"}, monitor.Proxy: {"kata-proxy"}},
	},
	// Kata Containers since version 2 is a shim, which package kata finds.
	{
		Name: kata.Name, Isolation: engine.VM, NoRootless: noRootlessGuest, onlyNamed: true,
		Missing: map[engine.Capability]string{
			engine.NetworkHost: "Kata refuses the host's network: the network of a container is an interface of its virtual machine",
		},
		NoProcessLimit: "Kata removes the limit of processes before it starts the container in the guest",
		SmallGuest:     "enlarge it by the option memory=MIB",
		NoSeccomp:      "Kata passes it to its guest only with disable_guest_seccomp=false in its configuration",
		// The engines declare containerd-shim*. Its name is in full only beyond the 15 bytes that the kernel keeps.
		Programs: monitor.Programs{
			monitor.Hypervisor: {
				"qemu-system-x86_64", "qemu-system-aarch64", "qemu-system-riscv64", "qemu-kvm", "cloud-hypervisor", "firecracker", "jailer",
				"stratovirt",
			},
			monitor.FileServer: {"virtiofsd", "virtiofsd-rs", "nydusd"},
		},
	},
}

const noRootlessGuest = "a virtual machine needs root"

// Seccomp is the value of the condition for a filter that the plan selects. It is empty if the plan selects none.
func (k Kind) Seccomp(s engine.Seccomp, t target.Target) string {
	if s != engine.DefaultSeccomp || k.NoSeccomp == "" {
		return string(s)
	}
	if loads, _ := t.Option(k.SeccompOption); loads == "true" {
		return string(s)
	}
	return string(s) + ", without effect: " + k.NoSeccomp
}

// Programs returns the programs of all kinds of runtimes.
func Programs() monitor.Programs {
	programs := monitor.Programs{monitor.Runtime: {adapterPrefix + "*"}}
	for _, k := range kinds {
		programs.Add(k.Programs)
	}
	return programs
}

// other is the kind of an unknown runtime.
var other = Kind{Isolation: engine.Unknown, NoRootless: "the flags of this runtime for use without root are not known"}

// runscCannot returns the capabilities that an older runsc lacks.
func runscCannot(ctx context.Context, l *process.Launcher, binary, version string) map[engine.Capability]string {
	var out Answer
	cmd := exec.CommandContext(ctx, binary, "help", "update")
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = l.Run(ctx, cmd) // an unknown command fails, which is a result too
	if !strings.Contains(out.String(), "resources") {
		return map[engine.Capability]string{engine.CanUpdate: fmt.Sprintf("%s has no update of limits; releases since 2025 have it", version)}
	}
	return nil
}

// longestVersion bounds a version and an error message of a binary, in bytes.
const longestVersion = 200

// longestAnswer bounds the kept output of a program, in bytes.
const longestAnswer = 64 << 10

// Answer keeps the beginning of a program's output. A program that writes without end must not fill the memory.
type Answer struct{ strings.Builder }

func (a *Answer) Write(p []byte) (int, error) {
	_, _ = a.Builder.Write(p[:min(len(p), longestAnswer-a.Len())])
	return len(p), nil
}

// identify queries the version of a binary. The call has a state directory below state, because crun makes its state directory
// before it prints the version, by default where an ordinary user may not.
func identify(ctx context.Context, l *process.Launcher, state, binary string) (Kind, string, error) {
	dir, err := os.MkdirTemp(state, "version")
	if err != nil {
		return other, "", fmt.Errorf("query the version of %s: %w", binary, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var out, complaint Answer
	cmd := exec.CommandContext(ctx, binary, "--root", dir, "--version")
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := l.Run(ctx, cmd); err != nil {
		err = fmt.Errorf("query the version of %s: %w", binary, err)
		if cause := strings.TrimSpace(complaint.String()); cause != "" {
			err = fmt.Errorf("%w: %s", err, strings.ToValidUTF8(cause[:min(len(cause), longestVersion)], ""))
		}
		return other, "", err
	}
	kind, version := readVersion(out.String())
	if version == "" {
		return other, "", fmt.Errorf("query the version of %s: it printed nothing", binary)
	}
	if kind.Name == "crun" && filepath.Base(binary) == krun {
		kind = KindOf(krun) // crun acts by the name that it is called by
	}
	return kind, version, nil
}

// versionNumber is a version in a line of text; laterVersion is a line that only has one, as wrappers print below their name.
var (
	versionNumber = regexp.MustCompile(`(?i)\d+\.\d|\bversion[\s:=]+\S`)
	laterVersion  = regexp.MustCompile(`(?i)^version[\s:=]+(\S.*)$`)
)

// readVersion reads the output of --version: the kind, and the version on one line. A runtime begins with "NAME version NUMBER". A wrapper may
// have its number on a later line, and the version of the runtime that it calls below its own. Its containers are that runtime's.
func readVersion(text string) (kind Kind, version string) {
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	if lines == nil {
		return other, ""
	}
	version, kind = lines[0], KindOf(lines[0])
	if !versionNumber.MatchString(version) {
		for _, line := range lines[1:] {
			if found := laterVersion.FindStringSubmatch(line); found != nil {
				version += " version " + found[1]
				break
			}
		}
	}
	for _, line := range lines[1:] {
		if kind.Name != "" {
			break
		}
		if name, rest, _ := strings.Cut(line, " "); strings.HasPrefix(rest, "version") && KindOf(name).Name != "" {
			kind = KindOf(name)
			version += ", " + line
		}
	}
	return kind, strings.ToValidUTF8(version[:min(len(version), longestVersion)], "")
}

// KindOf returns the kind that a version names first, as in "runc version 1.3.0".
func KindOf(version string) Kind {
	name, _, _ := strings.Cut(version, " ")
	for _, f := range kinds {
		if f.Name == name {
			return f
		}
	}
	return other
}
