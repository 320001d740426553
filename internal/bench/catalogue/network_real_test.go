package catalogue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// The network benchmarks work over the networks of real engines. TestRealPrograms of package cli runs them between containers
// and the host, and behind containerd.
func TestRealNetwork(t *testing.T) {
	rootfs, _ := enginetest.Workload(t)
	between, beside := bench.Params{"peer": "containers"}, bench.Params{"peer": "host"}
	few := bench.Params{"requests": "1000", "clients": "10"}
	for _, tt := range []struct {
		target string
		driver engine.Driver
		work   map[string]bench.Params
	}{
		{"native", native.Driver{}, map[string]bench.Params{networkHTTP: between, isolationNetwork: briefly(nil)}},
		{"native@network=loopback", native.Driver{}, map[string]bench.Params{networkBandwidth: beside, databaseRedis: few}},
		{"oci/runc", oci.Driver{}, map[string]bench.Params{networkHTTP: between}},
		{"oci/runsc@platform=systrap", oci.Driver{}, map[string]bench.Params{networkBandwidth: between, isolationNetwork: briefly(between)}},
	} {
		t.Run(strings.ReplaceAll(tt.target, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			parsed, err := target.Parse(tt.target)
			if err != nil {
				t.Fatal(err)
			}
			open := func(driver engine.Driver, opened target.Target) engine.Engine {
				e, err := driver.Open(t.Context(), opened, s)
				enginetest.Require(t, tt.target, err)
				t.Cleanup(func() {
					if err := e.Close(); err != nil {
						t.Error(err)
					}
				})
				return e
			}
			e, host := open(tt.driver, parsed), open(native.Driver{}, target.Target{Engine: target.Native})
			enginetest.Require(t, tt.target, e.Supports(engine.NetworkBridge))
			for name, given := range tt.work {
				b := find(t, name)
				params, err := b.Resolve(given, false)
				if err != nil {
					t.Fatal(err)
				}
				var trials []result.Trial
				outcome, err := runner.Run(t.Context(), runner.Config{
					RunID: s.RunID, Images: map[bench.Image]runner.Image{bench.WorkloadImage: {Rootfs: rootfs}}, Data: t.TempDir(),
					Work: []plan.Work{{Benchmark: b, Params: params}}, Targets: []runner.Target{{Name: tt.target, Engine: e}}, Host: host,
					Stop: stats.StopRule{Min: 1}, TrialLimit: time.Minute, CallLimit: time.Minute,
					Clock: runner.SystemClock{}, Cgroups: s.Cgroups, Noise: quiet{}, Observer: quiet{},
					Record: func(trial result.Trial) error { trials = append(trials, trial); return nil },
				})
				if err != nil || len(trials) != 1 {
					t.Fatalf("Run() = %+v, %v with %d trials", outcome, err, len(trials))
				}
				checkNetwork(t, b, trials[0])
			}
		})
	}
}

// checkNetwork checks that a trial has all metrics and conditions of its benchmark.
func checkNetwork(t *testing.T, b bench.Benchmark, trial result.Trial) {
	t.Helper()
	if trial.Status != result.OK {
		t.Errorf("%s: %s because %s\n%s", b.Name, trial.Status, trial.Reason, trial.Output)
		return
	}
	for _, m := range b.Metrics {
		values := trial.Values(m.Name)
		if !m.Optional && m.DerivedFrom == "" && (len(values) == 0 || slices.Min(values) <= 0) {
			t.Errorf("%s: %s is %v", b.Name, m.Name, values)
		}
	}
	for _, condition := range []string{"interface", "mtu", "server", "client"} {
		if trial.Conditions[condition] == "" {
			t.Errorf("%s: the condition %s is missing: %v", b.Name, condition, trial.Conditions)
		}
	}
}
