package runner_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/trace"
	"github.com/touchstone-bench/touchstone/test/record"
)

// runtimeWork are the counts of a runtime that are equal in each start of a container.
func runtimeWork(t result.Trace) map[string]int64 {
	work := map[string]int64{}
	for _, c := range t.Counts {
		if c.Component != string(monitor.Runtime) {
			continue
		}
		for _, call := range []string{"mount", "execve", "clone", "fsync"} {
			work[call] += c.Calls[call]
		}
		for _, n := range c.Programs {
			work["programs"] += n
		}
		work["processes"] += c.Processes
	}
	return work
}

// Each trace of a container has the same counts, and a runtime behind a script with one program, one mount and one fsync more has exactly these.
//
// Invariant trace-counts.
func TestRealTraces(t *testing.T) {
	if err := trace.Check(); err != nil {
		record.Skip(t, "no traces: "+err.Error())
	}
	for _, name := range []string{"runc", "crun"} {
		t.Run(name, func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			if s.Cgroups == nil {
				t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
			}
			bare := enginetest.Open(t, oci.Driver{}, "oci/"+name, s)
			dir := t.TempDir()
			file, script := filepath.Join(dir, "file"), filepath.Join(dir, "wrapped")
			must.Do(t, os.WriteFile(file, nil, 0o600))
			binary, err := exec.LookPath(name)
			must.Do(t, err)
			text := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" create \"*) /bin/true; mount -t tmpfs trace %s; umount %s; sync %s ;; esac\nexec %s \"$@\"\n", dir+"/m", dir+"/m", file, binary)
			must.Do(t, os.Mkdir(dir+"/m", 0o700), os.WriteFile(script, []byte(text), 0o700)) //nolint:gosec // a program
			s.Runtimes = map[string]target.Runtime{"wrapped": {Path: script}}
			wrapped := enginetest.Open(t, oci.Driver{}, "oci/wrapped", s)

			l, traces := tracedHarness(t, s, []runner.Target{{Name: "plain", Engine: bare}, {Name: "wrapped", Engine: wrapped}})
			if out := l.ok(); len(out.Caveats) > 0 {
				t.Errorf("caveats %q", out.Caveats)
			}
			if len(*traces) != 6 {
				t.Fatalf("%d traces", len(*traces))
			}
			first := map[string]map[string]int64{}
			for _, trace := range *traces {
				work := runtimeWork(trace)
				if first[trace.Target] == nil {
					first[trace.Target] = work
				}
				expect.Equal(t, fmt.Sprintf("trace %d of %s", trace.Seq, trace.Target), first[trace.Target], work)
			}
			t.Logf("%s: %v", name, first["plain"])
			// The script is one more program for each call of the runtime: create, start and delete.
			calls := first["wrapped"]["programs"] - first["plain"]["programs"] - 4
			difference := map[string]int64{}
			for call, n := range first["wrapped"] {
				difference[call] = n - first["plain"][call]
			}
			expect.Equal(t, "the work of the script", map[string]int64{
				"mount": 1, "fsync": 1, "clone": 0, "processes": 4, "programs": 4 + calls, "execve": 4 + calls,
			}, difference)
			if calls < 2 || calls > 4 {
				t.Errorf("the runtime was called %d times", calls)
			}
			if first["plain"]["mount"] == 0 || first["plain"]["programs"] == 0 {
				t.Errorf("the runtime did nothing: %v", first["plain"])
			}
		})
	}
}

// tracedHarness runs and traces containers of a real session.
func tracedHarness(t *testing.T, s engine.Session, targets []runner.Target) (l *harness, traces *[]result.Trace) {
	t.Helper()
	l = newHarness(t)
	l.config.Targets = targets
	l.config.RunID, l.config.Cgroups, l.config.Clock, l.config.Programs = s.RunID, s.Cgroups, meter.System{}, runtimes.Programs()
	l.config.Images[bench.ProbeImage] = runner.Image{Rootfs: s.Rootfs, Ref: s.Registry.Probe()}
	l.work("test.one.x", func(ctx context.Context, b bench.Trial) error {
		_, err := bench.Start(ctx, b)
		b.Record("Value", 1)
		return err
	})
	traces, _ = l.traced(3, nil)
	l.config.Tracing.Start = func(target monitor.Target) (runner.Tracer, error) { return trace.Start(target) }
	return l, traces
}
