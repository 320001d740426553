package catalogue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// The network benchmarks work over the networks of real engines. TestRealPrograms of package cli runs them between containers
// and the host, and behind containerd.
func TestRealNetwork(t *testing.T) {
	cells.Need(t, "catalogue/network")
	between, beside := bench.Params{"peer": "containers"}, bench.Params{"peer": "host"}
	few := bench.Params{"requests": "1000", "clients": "10"}
	within := bench.Params{"requests": "1000", "clients": "10", "peer": "same", "persistence": "snapshots"}
	for _, tt := range []struct {
		target string
		driver engine.Driver
		work   map[string]bench.Params
	}{
		{"native", native.Driver{}, map[string]bench.Params{networkHTTP: between, isolationNetwork: briefly(nil), databaseRedis: within}},
		{"native@network=loopback", native.Driver{}, map[string]bench.Params{networkBandwidth: beside, databaseRedis: few}},
		{"oci/runc", oci.Driver{}, map[string]bench.Params{networkHTTP: between, databaseRedis: within}},
		{"oci/runsc@platform=systrap", oci.Driver{}, map[string]bench.Params{networkBandwidth: between, isolationNetwork: briefly(between)}},
	} {
		t.Run(strings.ReplaceAll(tt.target, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.target, tt.driver).withHost(t)
			enginetest.Require(t, tt.target, l.engine.Supports(engine.NetworkBridge))
			for name, given := range tt.work {
				b := find(t, name)
				l.calm(t, b, given, checkNetwork(b))
			}
		})
	}
}

// checkNetwork returns the check that a trial has all metrics and conditions of its benchmark.
func checkNetwork(b bench.Benchmark) func(result.Trial) error {
	return func(trial result.Trial) error {
		if err := succeeded(trial); err != nil {
			return err
		}
		for _, m := range b.Metrics {
			values := trial.Values(m.Name)
			if !m.Optional && m.DerivedFrom == "" && (len(values) == 0 || slices.Min(values) <= 0) {
				return fmt.Errorf("%s is %v", m.Name, values)
			}
		}
		for _, condition := range []string{"interface", "server", "client"} {
			if trial.Conditions[condition] == "" {
				return fmt.Errorf("the condition %s is missing: %v", condition, trial.Conditions)
			}
		}
		return nil
	}
}
