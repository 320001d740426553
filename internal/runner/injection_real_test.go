package runner_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/trace"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/record"
)

const (
	// injectedTime is the length of a sleep and of a loop. Most of a call is injected, so the rest of the call moves the scale of the parts little.
	injectedTime = 80 * time.Millisecond
	// sizeTolerance is the largest relative error of a time. The scale is the ratio of two medians of the call, of 12 trials and of 3. Other load moves
	// each of them by a tenth.
	sizeTolerance = 0.25
)

// injection is known work in a runtime's create.
type injection struct {
	name   string
	script string // DIR is a directory of its own
	// cause is the cause of the largest part of the difference. Work without one is found by its count alone.
	cause result.TimeCause
	kind  explain.Kind
	count int64
}

var injections = []injection{
	{"sleep", fmt.Sprintf("sleep %g", injectedTime.Seconds()), result.CauseSleep, explain.Program, 1},
	{"loop", fmt.Sprintf("perl -MTime::HiRes=clock -e '1 while clock() < %g'", injectedTime.Seconds()), result.CauseRunning, explain.Program, 1},
	{"fsync", `perl -MIO::Handle -e 'open F, ">", "DIR/file"; for (1..7) { syswrite F, "x" x 4096; F->sync }'`, "", explain.Sync, 7},
	{"mount", "for i in 1 2 3 4 5; do mount -t tmpfs injected DIR/mnt; umount DIR/mnt; done", "", explain.Mount, 5},
	{"exec", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done", "", explain.Program, 9},
}

// Work that is put into a runtime's create is found: the kind, the step, the component and the size.
//
// Invariant injected-cause: Of 20 known differences of each kind (sleep, loop, fsync, mount, exec) explain names 19 or more with their kind, place and size,
// if other load of the machine does not hold the target in the run queue meanwhile.
func TestInjection(t *testing.T) {
	if err := trace.Check(); err != nil {
		record.Skip(t, "no traces: "+err.Error())
	}
	for _, program := range []string{"crun", "perl", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			record.Skip(t, program+" is not installed")
		}
	}
	const tries, threshold = 20, 19
	isWhole := cells.Runs(t, "explain/injection")
	for _, i := range injections {
		t.Run(i.name, func(t *testing.T) {
			measure := i.runtimes(t)
			var found, misses, repeats int
			for found+misses < tries && (isWhole || found == 0 && misses < 2) { // one try, and another one after a miss
				e := measure()
				reason := i.miss(e)
				switch {
				case reason == "":
					found++
				case isDisturbed(e) && repeats < tries:
					repeats++
					record.Repeat(t, reason)
				default:
					misses++
					t.Logf("try %d: %s", found+misses, reason)
				}
			}
			t.Logf("found in %d tries, missed in %d, disturbed in %d", found, misses, repeats)
			if isWhole && found < threshold || found == 0 {
				t.Errorf("it is found in %d tries, want %d of %d", found, threshold, tries)
			}
		})
	}
}

// isDisturbed reports whether other load of the machine held the target in the run queue, in one of the traces, for a time that can hide the injection.
func isDisturbed(e *explain.Explanation) bool {
	return slices.ContainsFunc(e.Benchmarks[0].Phases, func(p explain.Phase) bool {
		return slices.ContainsFunc(p.Times, func(t explain.Time) bool {
			return t.Cause == result.CauseQueue && max(t.A.Most, t.B.Most) > sizeTolerance*injectedTime.Seconds()
		})
	})
}

// miss returns the reason why an explanation does not name the injection; empty if it does.
func (i *injection) miss(e *explain.Explanation) string {
	count := int64(0)
	for n := range e.Benchmarks[0].Phases {
		p := &e.Benchmarks[0].Phases[n]
		for k := range p.Counts {
			c := &p.Counts[k]
			switch {
			case c.Kind != i.kind:
			case c.Step != "create" || c.Component != string(monitor.Runtime) || !c.Exact():
				return fmt.Sprintf("another count differs: %+v", c)
			default:
				count += c.Difference()
			}
		}
		if p.Name != "create" || i.cause == "" {
			continue
		}
		if p.Reason != "" {
			return "no causes: " + p.Reason
		}
		if !slices.ContainsFunc(p.Causes(), func(t explain.Time) bool { return t.Cause != result.CauseQueue }) {
			return fmt.Sprintf("no part is a cause: %+v", p.Times)
		}
		first := slices.DeleteFunc(p.Causes(), func(t explain.Time) bool { return t.Cause == result.CauseQueue })[0] // other load of the machine
		if first.Cause != i.cause || first.Component != string(monitor.Runtime) || math.Abs(first.Difference/injectedTime.Seconds()-1) > sizeTolerance {
			return fmt.Sprintf("the first cause of %g s is %+v; all parts: %+v", p.Difference.Median, first, p.Times)
		}
	}
	if count != i.count {
		return fmt.Sprintf("%d of kind %s more, want %d", count, i.kind, i.count)
	}
	return ""
}

// runtimes makes two runtimes, crun and crun with the injection, both behind a script. The function measures both and explains the difference.
func (i *injection) runtimes(t *testing.T) func() *explain.Explanation {
	t.Helper()
	s := enginetest.Session(t, oci.LauncherOptions)
	if s.Cgroups == nil {
		t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
	}
	crun, err := exec.LookPath("crun")
	must.Do(t, err)
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "mnt"), 0o700))
	s.Runtimes = map[string]target.Runtime{}
	for name, script := range map[string]string{"plain": ":", "injected": strings.ReplaceAll(i.script, "DIR", dir)} {
		file := filepath.Join(dir, name, "wrapped") // one name, because the counts of programs have it
		must.Do(t, os.Mkdir(filepath.Dir(file), 0o700))
		text := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" create \"*) %s ;; esac\nexec %s \"$@\"\n", script, crun)
		must.Do(t, os.WriteFile(file, []byte(text), 0o700)) //nolint:gosec // a program
		s.Runtimes[name] = target.Runtime{Path: file}
	}
	var targets []runner.Target
	for _, name := range []string{"plain", "injected"} {
		targets = append(targets, runner.Target{Name: name, Engine: enginetest.Open(t, oci.Driver{}, "oci/"+name, s)})
	}
	return func() *explain.Explanation { return explained(t, s, targets) }
}

// explained measures two targets, and explains their difference.
func explained(t *testing.T, s engine.Session, targets []runner.Target) *explain.Explanation {
	t.Helper()
	const blocks = 12
	l, traces := tracedHarness(t, s, targets)
	l.config.Stop = stats.StopRule{Min: blocks, Max: blocks}
	if out := l.ok(); len(out.Caveats) > 0 {
		t.Errorf("caveats %q", out.Caveats)
	}
	run := result.Run{
		ID: runID, Seed: l.config.Seed, State: result.Complete, Targets: []result.Target{{Name: "plain"}, {Name: "injected"}},
		Bench: []result.Benchmark{{Name: "test.one.x", Metrics: l.config.Work[0].Benchmark.Metrics}}, Trials: l.trials, Traces: *traces,
	}
	e, err := explain.New(&run, "plain", "injected", explain.Options{Matches: func(string) bool { return true }, EmulatedVerdicts: true})
	must.Do(t, err)
	return e
}
