package catalogue_test

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/record"
)

// realHarness runs benchmarks on a real target.
type realHarness struct {
	name    string
	engine  engine.Engine
	session engine.Session
	files   map[bench.Image]runner.Image
	host    engine.Engine // for processes outside the target; nil for most
	pauses  *enginetest.Pauses
}

// patience is the time that all tests together spend on trials that pauses of the host spoiled.
const patience = 5 * time.Minute

// spoiled is the time spent on such trials so far, in nanoseconds.
var spoiled atomic.Int64

// newRealHarness returns a harness with both images.
func newRealHarness(t *testing.T, targetName string, driver engine.Driver) *realHarness {
	t.Helper()
	rootfs, _ := enginetest.Workload(t)
	l := newProbeHarness(t, targetName, driver)
	l.files[bench.WorkloadImage] = runner.Image{Rootfs: rootfs}
	return l
}

// newProbeHarness returns a harness with the image of the probe alone.
func newProbeHarness(t *testing.T, targetName string, driver engine.Driver) *realHarness {
	t.Helper()
	l := &realHarness{name: targetName, session: enginetest.Session(t, oci.LauncherOptions), pauses: enginetest.WatchPauses(t)}
	l.files = map[bench.Image]runner.Image{bench.ProbeImage: {Rootfs: l.session.Rootfs}}
	l.engine = l.open(t, targetName, driver)
	return l
}

// open opens a target in the harness's session.
func (l *realHarness) open(t *testing.T, targetName string, driver engine.Driver) engine.Engine {
	t.Helper()
	return enginetest.Open(t, driver, targetName, l.session)
}

// withHost opens bare metal for processes outside the target.
func (l *realHarness) withHost(t *testing.T) *realHarness {
	t.Helper()
	l.host = l.open(t, target.Native, native.Driver{})
	return l
}

// needsCgroups skips the test without the right to make cgroups.
func (l *realHarness) needsCgroups(t *testing.T) {
	t.Helper()
	if l.session.Cgroups == nil {
		t.Skip("needs the right to make cgroups: run as root")
	}
}

// run executes one trial.
func (l *realHarness) run(t *testing.T, name string, overrides bench.Params) result.Trial {
	t.Helper()
	trials, _ := l.trials(t, find(t, name), overrides, 1)
	return trials[0]
}

// hanging is the time after which a trial or a call counts as hanging.
const hanging = 5 * time.Minute

// most is the largest factor of the times of a program.
const most = 8

// retry is run, and executes a failed trial once more with more time. On a busy host a program in gVisor may get too little CPU time to
// complete anything within its duration.
func (l *realHarness) retry(t *testing.T, name string, overrides bench.Params) result.Trial {
	t.Helper()
	trial := l.run(t, name, overrides)
	longParams := longer(t, find(t, name), overrides, most)
	if err := succeeded(trial); err == nil || trial.Status == result.Skipped || maps.Equal(longParams, longer(t, find(t, name), overrides, 1)) {
		return trial
	}
	record.Repeat(t, fmt.Sprintf("%s with %v has no result, and runs with %d times the time: %v", name, overrides, most, succeeded(trial)))
	return l.run(t, name, longParams)
}

// longer returns all parameters of a benchmark, with its phases and durations multiplied.
func longer(t *testing.T, b bench.Benchmark, overrides bench.Params, factor int) bench.Params {
	t.Helper()
	params, err := b.Resolve(overrides, false)
	must.Do(t, err)
	for _, phase := range []string{"before", "during", "after", "duration"} {
		if length, err := time.ParseDuration(params[phase]); err == nil {
			params[phase] = (time.Duration(factor) * length).String()
		}
	}
	return params
}

// calm executes trials until one passes the check, in a subtest. Three trials may fail: a program of the machine that is busy at the wrong
// time spoils a figure, and a fault spoils all. Trials with pauses of the host do not count, as long as the patience lasts. Then nothing can
// be judged, and the subtest is skipped. Phases and durations are twice as long in the second trial, and longest in all later ones. Each
// further trial is recorded with its reason.
func (l *realHarness) calm(t *testing.T, b bench.Benchmark, overrides bench.Params, check func(result.Trial) error, changes ...func(*runner.Config)) {
	t.Helper()
	t.Run(b.Name, func(t *testing.T) {
		params, failed := longer(t, b, overrides, 1), 0
		first := params
		for n := 1; ; n++ {
			start, startPauses := time.Now(), l.pauses.Total()
			trials, outcome := l.trials(t, b, params, 1, changes...)
			err := check(trials[0])
			if err == nil {
				return
			}
			pauses := l.pauses.Total() - startPauses
			err = fmt.Errorf("trial %d, with %v, CPUs that paused %v and the caveats %q: %w", n, params, pauses, outcome.Caveats, err)
			if pauses == 0 {
				failed++
			}
			switch {
			case failed == 3:
				t.Fatal(err)
			case pauses > 0 && spoiled.Add(int64(time.Since(start))) > int64(patience):
				record.Skip(t, fmt.Sprintf("the host pauses the CPUs too often to judge %s: %v", b.Name, err))
			}
			record.Repeat(t, err.Error())
			factor := most
			if n == 1 {
				factor = 2
			}
			params = longer(t, b, first, factor)
		}
	})
}

// succeeded is the error of a trial without a result.
func succeeded(trial result.Trial) error {
	if trial.Status == result.OK {
		return nil
	}
	return fmt.Errorf("%s because %s: %s", trial.Status, trial.Reason, trial.Output)
}

// trials executes n trials, with changes to the configuration of the run. The page cache belongs to the whole host, so only the files of
// the trial are dropped.
func (l *realHarness) trials(t *testing.T, b bench.Benchmark, overrides bench.Params, n int, changes ...func(*runner.Config)) ([]result.Trial, runner.Outcome) {
	t.Helper()
	params, err := b.Resolve(overrides, false)
	must.Do(t, err)
	var trials []result.Trial
	config := runner.Config{
		RunID: l.session.RunID, Images: l.files, Data: l.session.Data, Memory: memoryDir(t), Work: []plan.Work{{Benchmark: b, Params: params}},
		Targets: []runner.Target{{Name: l.name, Engine: l.engine}}, DropCaches: func(context.Context) error { return dropFiles(l.session.Data) },
		Stop: stats.StopRule{Min: n}, TrialLimit: hanging, CallLimit: hanging,
		Clock: meter.System{}, Cgroups: l.session.Cgroups, Noise: quiet{}, Observer: quiet{}, Host: l.host,
		Record: func(trial result.Trial) error { trials = append(trials, trial); return nil },
	}
	for _, change := range changes {
		change(&config)
	}
	outcome, err := runner.Run(t.Context(), config)
	if err != nil || len(trials) != n {
		t.Fatalf("Run() = %+v, %v with %d trials, want %d", outcome, err, len(trials), n)
	}
	return trials, outcome
}
