package oci

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// flavour is what is known of a family of runtimes beyond the OCI specification. A
// runtime belongs to the family that its --version names, whatever its file is
// called.
type flavour struct {
	name      string
	isolation engine.Isolation
	// variants are the values of an option that make targets of their own, tried by
	// Find one by one.
	option   string
	variants []string
	// rootless gives the global flags for use without root; nil if the runtime
	// cannot, and noRootless says why.
	rootless   []string
	noRootless string
	// rootlessCannot gives the reason for capabilities that these flags take away.
	rootlessCannot map[engine.Capability]string
	// noNetwork and hostNetwork are global flags that go with the two networks.
	noNetwork, hostNetwork []string
	// cannot gives the reason for capabilities that do not work, by version.
	cannot func(ctx context.Context, l *process.Launcher, binary, version string) map[engine.Capability]string
	notes  []string
}

// flavours in the order in which targets are listed.
var flavours = []flavour{
	{
		name:      "runc",
		isolation: engine.SharedKernel,
		rootless:  []string{"--rootless=true"},
	},
	{
		name:      "crun",
		isolation: engine.SharedKernel,
		// It sees by itself that it runs without root. Version 1.8.1 takes the value of
		// --rootless for that of --root.
		rootless: []string{"--cgroup-manager=disabled"},
		rootlessCannot: map[engine.Capability]string{
			engine.CanPause:  "without root crun is used without a cgroup manager, and then cannot freeze",
			engine.CanUpdate: "without root crun is used without a cgroup manager, and then has no limits",
		},
	},
	{
		name:      "youki",
		isolation: engine.SharedKernel,
		rootless:  []string{},
		cannot: func(context.Context, *process.Launcher, string, string) map[engine.Capability]string {
			return map[engine.Capability]string{
				engine.CanUpdate: "youki's update returns success and changes nothing (seen with 0.7.0)",
			}
		},
	},
	{
		name:       "runsc",
		isolation:  engine.UserKernel,
		option:     "platform",
		variants:   []string{"systrap", "ptrace", "kvm"},
		noRootless: "the rootless mode of runsc has only run and do, no create",
		// A sandbox network needs an interface to take over; a namespace without one
		// gets none, as with the other runtimes.
		noNetwork:   []string{"--network=none"},
		hostNetwork: []string{"--network=host"},
		cannot:      runscCannot,
		notes:       []string{"the sandbox's own processes (sentry, gofer) are part of the container's cost"},
	},
	{name: "kata-runtime", isolation: engine.VM, noRootless: "a virtual machine needs root"},
}

// other is the flavour of a runtime that is not known.
var other = flavour{isolation: engine.Unknown, noRootless: "it is not known how this runtime works without root"}

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
func identify(ctx context.Context, l *process.Launcher, state, binary string) (flavour, string, error) {
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
	return flavourOf(version), version, nil
}

// flavourOf gives the family that a version names first, as in "runc version 1.3.0".
func flavourOf(version string) flavour {
	name, _, _ := strings.Cut(version, " ")
	for _, f := range flavours {
		if f.name == name {
			return f
		}
	}
	return other
}
