package oci

import (
	"errors"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"create container: no answer within 10s":                     "with runsc choose another platform",
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

// An option network of the target applies to all its containers.
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
		e := &Engine{info: engine.Info{Target: parsed}, runtime: runtimes.Runtime{Kind: runtimes.KindOf("runsc version 1")}, Missing: engine.Missing{}}
		e.runtime.Cannot = nil // it would ask the binary
		e.adapt(t.Context())
		if err := e.Supports(engine.NetworkHost); (err == nil) != host {
			t.Errorf("%s supports the host's network: %v", name, err)
		}
	}
}
