package oci

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// An option network of the target applies to all its containers.
func TestChosenNetwork(t *testing.T) {
	for name, host := range map[string]bool{
		"oci/runsc":              true,
		"oci/runsc@network=host": true,
		"oci/runsc@network=none": false,
	} {
		e := &Engine{info: engine.Info{Target: enginetest.Parse(t, name)}, runtime: runtimes.Runtime{Kind: runtimes.KindOf("runsc version 1")}, Missing: engine.Missing{}}
		e.runtime.Cannot = nil // it would ask the binary
		e.adapt(t.Context())
		if err := e.Supports(engine.NetworkHost); (err == nil) != host {
			t.Errorf("%s supports the host's network: %v", name, err)
		}
	}
}
