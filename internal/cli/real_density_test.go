package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

const densityPlan = `version: 1
targets: [native, oci/runc, oci/crun, oci/runsc, containerd/runc]
blocks: 1
warmup: 0
benchmarks:
  - {name: density.memory, params: {containers: 3}}
  - {name: density.max, params: {containers: 6}}
  - {name: density.churn, params: {containers: 3}}
  - {name: density.workload, params: {containers: 2}}
  - {name: density.workload, params: {containers: 2, workload: redis, keys: 20000}}
`

// densityComponents are the components with memory for each container of a target.
var densityComponents = map[string][]string{
	"native": {"Container"}, "oci/runc": {"Container"}, "oci/crun": {"Container"}, "oci/runsc": {"Sentry", "Gofer"},
	"containerd/runc": {"Shim", "Pause", "Container"},
}

// The suite of density works on bare metal, on runtimes alone and behind a daemon, and finds the components of each. It is not parallel,
// because daemons and containers of other tests would share pages with its own, and PSS would fall.
func TestRealDensity(t *testing.T) {
	cells.Need(t, "cli/density")
	needRoot(t, "runc", "crun", "runsc", "containerd")
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(densityPlan), 0o600))
	p := start(t, dir, "benchmark", "--managed", "-f", "plan.yaml")
	p.ends(0)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	trials := 0
	for _, trial := range run.Trials {
		if !strings.HasPrefix(trial.Benchmark, "density.") {
			continue
		}
		trials++
		if trial.Status != result.OK {
			t.Errorf("%s %s on %s: %s because %s\n%s", trial.Benchmark, trial.Params, trial.Target, trial.Status, trial.Reason, trial.Output)
			continue
		}
		// PSS of several containers is a series, and each other metric has one value.
		value := func(metric string) float64 {
			values := trial.Values(metric)
			if len(values) == 0 {
				t.Errorf("%s %s on %s has no %s", trial.Benchmark, trial.Params, trial.Target, metric)
				return 0
			}
			return values[len(values)-1]
		}
		switch trial.Benchmark {
		case "density.memory", "density.workload":
			// Containers of other tests share pages with these containers, so a single reading can be smaller than the one before.
			if pss := trial.Values("PSS"); len(pss) < 2 || slices.Min(pss) <= 0 || pss[len(pss)-1] <= pss[0] {
				t.Errorf("the memory of containers on %s is %v", trial.Target, pss)
			}
			for _, c := range densityComponents[trial.Target] {
				value("PSSPerContainer" + c)
			}
			value("MemoryPerContainer")
			value("RestPerContainerSlab")
			if first := value("PSSOfFirst"); first < 16<<10 || first > 200<<20 {
				t.Errorf("the first container on %s has %v bytes", trial.Target, first)
			}
			// 20000 keys with values of 100 bytes take 3 MB on a 64-bit machine.
			if share := value("PSSPerContainer"); strings.Contains(trial.Params, "redis") && share < 2<<20 {
				t.Errorf("a loaded Redis on %s takes %v bytes", trial.Target, share)
			}
		case "density.max":
			if n := value("Containers"); n < 1 || trial.Conditions["stopped by"] == "" {
				t.Errorf("%v containers fit on %s because of %v", n, trial.Target, trial.Conditions)
			}
		case "density.churn":
			if peak, remainder := value("PeakPSS"), value("PSSNotReturned"); peak <= 0 || remainder > 32<<20 || len(trial.Timelines) == 0 {
				t.Errorf("%s has a peak of %v bytes, keeps %v, and has %d timelines", trial.Target, peak, remainder, len(trial.Timelines))
			}
		}
	}
	if trials != 5*len(densityComponents) {
		t.Errorf("there are %d trials", trials)
	}
}
