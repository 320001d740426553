package oci

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestAnswerIsBounded(t *testing.T) {
	var a answer
	part := bytes.Repeat([]byte("x"), longestAnswer-1)
	for range 3 {
		if n, err := a.Write(part); n != len(part) || err != nil {
			t.Errorf("wrote %d bytes of %d: %v", n, len(part), err)
		}
	}
	if a.Len() != longestAnswer {
		t.Errorf("%d bytes are kept, want %d", a.Len(), longestAnswer)
	}
}

// What the runtimes of the field call themselves, and what looks like one of them.
func TestFlavourOf(t *testing.T) {
	for version, want := range map[string]string{
		"runc version 1.1.5+ds1":                           "runc",
		"runc version 1.5.2":                               "runc",
		"crun version 1.8.1":                               "crun",
		"youki version: 0.7.0":                             "youki",
		"runsc version v0.0.0-20260905035102-160fafc42237": "runsc",
		"runsc version release-20221219.0":                 "runsc",
		"kata-runtime  : 3.2.0":                            "kata-runtime",
		"runcx version 1":                                  "",
		"my-runc version 1":                                "",
		"RUNC version 1":                                   "",
		"version 1.0 of runc":                              "",
		"":                                                 "",
	} {
		if got := flavourOf(version); got.name != want {
			t.Errorf("flavourOf(%q) = %q, want %q", version, got.name, want)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		target string
		want   []string
		reason string
	}{
		{"oci/runc", nil, ""},
		{"oci/runsc@platform=ptrace,overlay2=root:memory", []string{"--overlay2=root:memory", "--platform=ptrace"}, ""},
		{"oci/crun@cgroup-manager=systemd", []string{"--cgroup-manager=systemd"}, ""},
		{"oci/runc@root=/run/runc", nil, "the option root is set by Touchstone itself; leave it out"},
		{"oci/runc@log=x", nil, "the option log is set by Touchstone itself; leave it out"},
		{"oci/runc@log-format=text", nil, "the option log-format is set by Touchstone itself; leave it out"},
		{"oci/runsc@debug=true", nil, "the option debug is set by Touchstone itself; leave it out"},
		{"oci/runsc@debug-log=x", nil, "the option debug-log is set by Touchstone itself; leave it out"},
		{"oci/runc@rootless=true", nil, "the option rootless is set by Touchstone itself; leave it out"},
		{"oci/runsc@platform=kvm,root=x", nil, "the option root is set by Touchstone itself; leave it out"},
	} {
		parsed, err := target.Parse(tt.target)
		if err != nil {
			t.Fatal(err)
		}
		got, err := flagsOf(parsed)
		if tt.reason == "" {
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("flags of %s = %q, %v; want %q", tt.target, got, err, tt.want)
			}
			continue
		}
		if !engine.Unsupported(err) || err.Error() != tt.target+": "+tt.reason {
			t.Errorf("flags of %s: %v; want %s", tt.target, err, tt.reason)
		}
	}
}

func TestAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"create container: no answer within 10s":                     "choose another platform",
		"cgroups in hybrid mode not supported, drop all controllers": "so that the unified hierarchy can be hidden",
		"open /run/x: permission denied":                             "run as root",
		"unshare: operation not permitted":                           "run as root",
		"opening KVM device file: no such file or directory":         "a working /dev/kvm",
		"something that nobody has seen before":                      "try the runtime by hand",
	} {
		if got := advise(errors.New(text)); !strings.Contains(got, want) {
			t.Errorf("advice against %q is %q, want %q", text, got, want)
		}
	}
}

// A network that the target's options choose is the one of all its containers.
func TestChosenNetwork(t *testing.T) {
	for name, host := range map[string]bool{
		"oci/runsc":              true,
		"oci/runsc@network=host": true,
		"oci/runsc@network=none": false,
	} {
		parsed, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		e := &Engine{info: engine.Info{Target: parsed}, flavour: flavourOf("runsc version 1"), cannot: map[engine.Capability]string{}}
		e.flavour.cannot = nil // it would ask the binary
		e.adapt(t.Context())
		if err := e.Supports(engine.NetworkHost); (err == nil) != host {
			t.Errorf("%s supports the host's network: %v", name, err)
		}
	}
}
