package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func TestMonitorOfWork(t *testing.T) {
	p := mustParse(t, "p", `version: 1
monitor: {memory: 200ms}
benchmarks:
  - operations.container.exec
  - {name: performance.memory, monitor: {memory: 50ms}}
  - {name: limits, monitor: memory}
`)
	for range 2 {
		work, err := p.Resolve(testCatalogue())
		must.Do(t, err)
		want := []time.Duration{200 * time.Millisecond, 50 * time.Millisecond, bench.MonitorInterval}
		for i, w := range work {
			if w.Monitor != want[i] {
				t.Errorf("%s is sampled every %v, want %v", w.Benchmark.Name, w.Monitor, want[i])
			}
			if !declares(w, bench.CgroupMemoryPeak) {
				t.Errorf("%s does not declare the metrics of a monitored benchmark", w.Benchmark.Name)
			}
		}
		// The plan that a run keeps has the same meaning.
		p = mustParse(t, "p", string(p.Pin(nil, work, 1).YAML()))
	}
}

func declares(w Work, metric string) bool {
	return slices.ContainsFunc(w.Benchmark.Metrics, func(m result.Metric) bool { return m.Name == metric })
}

func TestWorkWithoutMonitor(t *testing.T) {
	for _, w := range resolved(t, "version: 1\n") {
		if w.Monitor != 0 || declares(w, bench.HostMemoryPeak) {
			t.Errorf("%s is sampled every %v, with the metrics %v", w.Benchmark.Name, w.Monitor, w.Benchmark.Metrics)
		}
	}
}

// A run describes a benchmark once, for all its parameters.
func TestMonitorOfOneOfTwoParameters(t *testing.T) {
	const name = "performance.syscall.unixbench"
	work := resolved(t, "version: 1\nbenchmarks: ["+name+", {name: "+name+", params: {copies: 2}, monitor: memory}]\n")
	if len(work) != 2 || work[0].Monitor != 0 || work[1].Monitor == 0 {
		t.Fatalf("resolved to %+v", work)
	}
	for _, w := range work {
		if !declares(w, bench.HostMemoryArea) {
			t.Errorf("%s %s does not declare the metrics of the monitored parameters", name, w.Params)
		}
	}
}

func resolved(t *testing.T, text string) []Work {
	t.Helper()
	work, err := mustParse(t, "p", text).Resolve(testCatalogue())
	must.Do(t, err)
	return work
}

func TestMonitorFlag(t *testing.T) {
	for _, c := range []struct {
		value string
		want  time.Duration
		errs  []string
	}{
		{value: "memory", want: 100 * time.Millisecond},
		{value: "memory=1s", want: time.Second},
		{value: "memory=", errs: []string{`--monitor: "" is not a duration; write a number above 0 with a unit, such as 30s or 10m`}},
		{value: "memory=1h", errs: []string{`--monitor: 1h is not an interval from 10ms to 1m; write it like 100ms`}},
		{value: "disk", errs: []string{`--monitor: "disk" is unknown; write memory or memory=100ms`}},
		{value: "", errs: []string{`--monitor: "" is unknown; write memory or memory=100ms`}},
	} {
		p, err := mustParse(t, "p", "version: 1\n").Apply(Overrides{Monitor: &c.value})
		if c.errs != nil {
			checkLines(t, err, c.errs)
		} else if err != nil || p.Monitor.Memory != c.want {
			t.Errorf("--monitor %s gives %v, %v; want %v", c.value, p.Monitor.Memory, err, c.want)
		}
	}
}
