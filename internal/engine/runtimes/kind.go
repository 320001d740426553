package runtimes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// Kind is what is known of a family of runtimes beyond the OCI specification. A
// runtime belongs to the family that its --version names, whatever its file is
// called.
type Kind struct {
	Name      string
	Isolation engine.Isolation
	// Variants are the values of Option that make targets of their own.
	Option   string
	Variants []string
	// Rootless gives the global flags for use without root; nil if the runtime
	// cannot, and NoRootless says why.
	Rootless   []string
	NoRootless string
	// RootlessCannot gives the reason for capabilities that these flags take away.
	RootlessCannot map[engine.Capability]string
	// NoNetwork and HostNetwork are global flags that go with the two networks.
	NoNetwork, HostNetwork []string
	// Cannot gives the reason for capabilities that do not work, by version.
	Cannot func(ctx context.Context, l *process.Launcher, binary, version string) map[engine.Capability]string
	Notes  []string
	// Programs are the runtime's own programs, by component of the cost.
	Programs monitor.Programs
	// onlyNamed tells that it is not looked for: the user has to name one.
	onlyNamed bool
}

// kinds in the order in which targets are listed.
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
		// It sees by itself that it runs without root. Version 1.8.1 takes the value of
		// --rootless for that of --root.
		Rootless: []string{"--cgroup-manager=disabled"},
		RootlessCannot: map[engine.Capability]string{
			engine.CanPause:  "without root crun is used without a cgroup manager, and then cannot freeze",
			engine.CanUpdate: "without root crun is used without a cgroup manager, and then has no limits",
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
		Name:       "runsc",
		Isolation:  engine.UserKernel,
		Option:     "platform",
		Variants:   []string{"systrap", "ptrace", "kvm"},
		NoRootless: "the rootless mode of runsc has only run and do, no create",
		// A sandbox network needs an interface to take over; a namespace without one
		// gets none, as with the other runtimes.
		NoNetwork:   []string{"--network=none"},
		HostNetwork: []string{"--network=host"},
		Cannot:      runscCannot,
		Notes:       []string{"the sandbox's own processes (sentry, gofer) are part of the container's cost"},
		// It executes itself for the sandbox's processes, which the kernel then calls exe.
		Programs: monitor.Programs{
			monitor.Runtime: {"runsc"},
			monitor.Sandbox: {"runsc-sandbox", "runsc-gofer", "gvisor-sentry", "gvisor-gofer", "runsc/exe"},
		},
	},
	// An OCI runtime before version 2 of Kata Containers, and a utility since: it is not looked for.
	{
		Name: "kata-runtime", Isolation: engine.VM, NoRootless: "a virtual machine needs root", onlyNamed: true,
		Programs: monitor.Programs{
			monitor.Runtime: {"kata-runtime"},
			monitor.Sandbox: {
				"qemu-system-x86_64", "qemu-system-aarch64", "qemu-system-riscv64", "qemu-kvm", "cloud-hypervisor", "firecracker", "jailer",
				"stratovirt", "virtiofsd", "nydusd",
			},
		},
	},
}

// Programs returns the programs of all kinds of runtimes.
func Programs() monitor.Programs {
	all := monitor.Programs{}
	for _, k := range kinds {
		all.Add(k.Programs)
	}
	return all
}

// other is the kind of a runtime that is not known.
var other = Kind{Isolation: engine.Unknown, NoRootless: "it is not known how this runtime works without root"}

// runscCannot finds out what an older runsc lacks.
func runscCannot(ctx context.Context, l *process.Launcher, binary, version string) map[engine.Capability]string {
	var out answer
	cmd := exec.CommandContext(ctx, binary, "help", "update")
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = l.Run(ctx, cmd) // an unknown command is an answer too
	if !strings.Contains(out.String(), "resources") {
		return map[engine.Capability]string{engine.CanUpdate: fmt.Sprintf("%s has no update of limits; a release of 2025 or later has", version)}
	}
	return nil
}

// longestVersion is how much of what a binary says of itself is kept, in bytes.
const longestVersion = 200

// longestAnswer bounds what is kept of a runtime's answers about itself, in bytes.
const longestAnswer = 64 << 10

// answer keeps the beginning of what a runtime says about itself. One that writes without
// end must not fill the memory.
type answer struct{ strings.Builder }

func (a *answer) Write(p []byte) (int, error) {
	_, _ = a.Builder.Write(p[:min(len(p), longestAnswer-a.Len())])
	return len(p), nil
}

// identify asks a binary what it is. It gets a state directory, below state, even for that: crun
// makes one before it says anything, by default where an ordinary user may not.
func identify(ctx context.Context, l *process.Launcher, state, binary string) (Kind, string, error) {
	dir, err := os.MkdirTemp(state, "version")
	if err != nil {
		return other, "", fmt.Errorf("ask %s for its version: %w", binary, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var out, complaint answer
	cmd := exec.CommandContext(ctx, binary, "--root", dir, "--version")
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := l.Run(ctx, cmd); err != nil {
		err = fmt.Errorf("ask %s for its version: %w", binary, err)
		if why := strings.TrimSpace(complaint.String()); why != "" {
			err = fmt.Errorf("%w: %s", err, strings.ToValidUTF8(why[:min(len(why), longestVersion)], ""))
		}
		return other, "", err
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	if first = strings.TrimSpace(first); first == "" {
		return other, "", fmt.Errorf("ask %s for its version: it printed nothing", binary)
	}
	version := strings.ToValidUTF8(first[:min(len(first), longestVersion)], "")
	return KindOf(version), version, nil
}

// KindOf gives the family that a version names first, as in "runc version 1.3.0".
func KindOf(version string) Kind {
	name, _, _ := strings.Cut(version, " ")
	for _, f := range kinds {
		if f.Name == name {
			return f
		}
	}
	return other
}
