// Package footprint is the suite of the space that targets take on a host before the first container runs.
package footprint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark { return []bench.Benchmark{install()} }

// shown is the number of packages in a condition.
const shown = 5

func install() bench.Benchmark {
	return bench.Benchmark{
		Name:    "footprint.install",
		Summary: "the disk space of engine and runtime with all dependencies, and the cost of the idle daemon",
		Source:  "sateri section 3.3.2 and table 4.9",
		Metrics: []result.Metric{
			bench.Headed(result.ColumnFootprint, dimensioned(result.DimensionFootprint, used("AddedBytes", result.Bytes, "the part of InstallBytes that the host would not need without the target"))),
			used("InstallBytes", result.Bytes, "files of the target's programs, of their packages and of all dependencies, without recommended packages"),
			optional(used("InstallBytesRecommended", result.Bytes, "InstallBytes with all recommended packages and their dependencies")),
			used("BinaryBytes", result.Bytes, "files of the target's programs alone"),
			used("Packages", result.Count, "packages of InstallBytes, including the packages of the programs themselves"),
			used("Files", result.Count, "files and symbolic links of InstallBytes"),
			optional(used("DaemonMemory", result.Bytes, "memory (PSS) of the engine's daemon while no container exists")),
			optional(used("DaemonCPUPerHour", result.Seconds, "CPU time of the idle daemon, extrapolated to an hour")),
		},
		Params: []bench.Param{{
			Name: "idle", Help: "length of the observation of the idle daemon", Quick: "2s", Paper: "30s", Check: bench.TimeRange(100*time.Millisecond, 2*time.Hour),
		}},
		Components: true,
		Run:        run,
	}
}

func used(name string, unit result.Unit, help string) result.Metric {
	return result.Metric{Name: name, Unit: unit, Better: result.Lower, Consumed: true, Help: help}
}

func optional(m result.Metric) result.Metric {
	m.Optional = true
	return m
}

func dimensioned(d result.Dimension, m result.Metric) result.Metric {
	m.Dimension = d
	return m
}

func run(ctx context.Context, t bench.Trial) error {
	f, err := t.Install.Footprint()
	if err != nil {
		return err
	}
	t.Record("AddedBytes", float64(f.Added.Bytes))
	t.Record("InstallBytes", float64(f.Minimal.Bytes))
	if f.Recommended != nil {
		t.Record("InstallBytesRecommended", float64(f.Recommended.Bytes))
	}
	t.Record("BinaryBytes", float64(f.Programs.Bytes))
	t.Record("Packages", float64(f.Minimal.Packages))
	t.Record("Files", float64(f.Minimal.Files))
	describe(t, f)
	if !t.Install.HasDaemon() {
		t.Condition("daemon", "none")
		return nil
	}
	err = daemon(ctx, t)
	var cause *engine.UnsupportedError
	if errors.As(err, &cause) {
		t.Condition("daemon", "its cost is unknown: "+cause.Reason)
		return nil
	}
	return err
}

// describe records the parts of a footprint as conditions.
func describe(t bench.Trial, f footprint.Footprint) {
	if f.Manager != "" {
		t.Condition("package manager", f.Manager)
	}
	if len(f.Packages) > 0 {
		var items []string
		for _, p := range f.Packages[:min(shown, len(f.Packages))] {
			items = append(items, fmt.Sprintf("%s %s", p.Name, megabytes(p.Bytes)))
		}
		text := strings.Join(items, ", ")
		if rest := len(f.Packages) - shown; rest > 0 {
			text += fmt.Sprintf(" and %d smaller ones", rest)
		}
		t.Condition("largest packages", text)
	}
	if len(f.Unpackaged) > 0 {
		var names []string
		for _, file := range f.Unpackaged {
			names = append(names, filepath.Base(file))
		}
		t.Condition("outside packages", strings.Join(names, ", "))
	}
	if len(f.Notes) > 0 {
		t.Condition("accuracy", strings.Join(f.Notes, "; "))
	}
}

func megabytes(bytes int64) string {
	return strconv.FormatFloat(float64(bytes)/1e6, 'f', 1, 64) + " MB"
}

// daemon observes the idle daemon.
func daemon(ctx context.Context, t bench.Trial) error {
	memory, err := t.Install.DaemonMemory()
	if err != nil {
		return err
	}
	startCPU, err := t.Install.DaemonCPU()
	if err != nil {
		return err
	}
	start, err := t.Sleep(ctx, 0)
	if err != nil {
		return err
	}
	end, err := t.Sleep(ctx, t.Duration("idle"))
	if err != nil {
		return err
	}
	endCPU, err := t.Install.DaemonCPU()
	if err != nil {
		return err
	}
	t.Record("DaemonMemory", float64(memory))
	observation := fmt.Sprintf("observed for %v without a container", t.Duration("idle"))
	if endCPU == startCPU {
		// The daemon works at longer intervals. An hour without any CPU time was not measured.
		t.Condition("daemon", observation+", and used no CPU time")
		return nil
	}
	t.Record("DaemonCPUPerHour", (endCPU-startCPU).Seconds()*time.Hour.Seconds()/(end-start).Seconds())
	t.Condition("daemon", observation)
	return nil
}
