package catalogue_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var (
	nameOfBenchmark = regexp.MustCompile(`^[a-z]+\.[a-z]+(\.[a-z0-9]+)?$`)
	nameOfParam     = regexp.MustCompile(`^[a-z]+$`)
)

// Reports, plans and documents need a complete description of each benchmark.
func TestEveryBenchmarkIsDescribed(t *testing.T) {
	names := map[string]bool{}
	for _, b := range (catalogue.Catalogue{}).All() {
		t.Run(b.Name, func(t *testing.T) {
			if !nameOfBenchmark.MatchString(b.Name) {
				t.Errorf("the name is neither context.component.facet nor context.component")
			}
			if names[b.Name] {
				t.Errorf("the name is not unique")
			}
			names[b.Name] = true
			for what, text := range map[string]string{"summary": b.Summary, "source": b.Source} {
				if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "\n") || strings.HasSuffix(text, ".") {
					t.Errorf("the %s %q must be one line without a full stop", what, text)
				}
			}
			if b.Run == nil || len(b.Metrics) == 0 {
				t.Error("it has no metrics")
			}
			metricNames := map[string]bool{}
			for _, m := range b.Metrics {
				if m.Name == "" || metricNames[m.Name] {
					t.Errorf("metric %q is not unique or has no name", m.Name)
				}
				metricNames[m.Name] = true
				if !slices.Contains(result.Units(), m.Unit) {
					t.Errorf("metric %s has the unit %q", m.Name, m.Unit)
				}
				if m.Better != result.Lower && m.Better != result.Higher {
					t.Errorf("metric %s has the direction %q", m.Name, m.Better)
				}
				if m.Help == "" || strings.HasSuffix(m.Help, ".") {
					t.Errorf("metric %s has the help %q", m.Name, m.Help)
				}
			}
			for _, p := range b.Params {
				if !nameOfParam.MatchString(p.Name) || p.Help == "" {
					t.Errorf("parameter %q has an invalid name or no help", p.Name)
				}
				if p.Check == nil || p.Check("no such value") == nil || p.Check("") == nil {
					t.Errorf("parameter %s accepts every value", p.Name)
				}
			}
			for _, paper := range []bool{false, true} {
				if _, err := b.Resolve(nil, paper); err != nil {
					t.Errorf("its default values are invalid: %v", err)
				}
			}
			for _, need := range b.Capabilities() {
				if !slices.Contains(engine.Capabilities(), need) {
					t.Errorf("it needs the unknown capability %q", need)
				}
			}
		})
	}
}

const scaling = "limits.cpu.scaling"

// onFake lists the benchmarks that the fake engine can run. Its containers have no network: network_test.go tests the benchmarks
// that need one. Its programs write all their output at once: limits_test.go tests the benchmark that raises a limit between
// two lines of output. footprint.install needs programs on the host: see costs_test.go. Two goroutines cannot share the
// clock: isolation_test.go tests the benchmark that starts containers while it waits. surface.filters, surface.calls and surface.functions observe processes of the host.
func onFake() []bench.Benchmark {
	exceptions := []string{scaling, "footprint.install", isolationPIDs, "surface.filters", "surface.calls", "surface.functions"}
	return slices.DeleteFunc(catalogue.Catalogue{}.All(), func(b bench.Benchmark) bool {
		return slices.Contains(b.Capabilities(), engine.NetworkBridge) || slices.Contains(exceptions, b.Name)
	})
}

// An emulated CPU distorts the metrics of the dimensions of speed, and no others: memory, density and footprint.
func TestMetricsOfSpeedMatchTheirDimensions(t *testing.T) {
	dimensions := map[result.Dimension]bool{}
	for _, b := range (catalogue.Catalogue{}).All() {
		for _, m := range b.Metrics {
			if m.Dimension == "" {
				continue
			}
			dimensions[m.Dimension] = true
			want := !slices.Contains([]result.Dimension{result.DimensionMemoryOverhead, result.DimensionDensity, result.DimensionFootprint}, m.Dimension)
			if m.OfSpeed() != want {
				t.Errorf("%s of %s in %s is of speed: %v, but its dimension is %s", m.Name, b.Name, m.Unit, m.OfSpeed(), m.Dimension)
			}
		}
		for _, m := range b.Metrics {
			if m.Bound.Broken != "" && m.OfSpeed() {
				t.Errorf("%s of %s: the use of a limit is of speed", m.Name, b.Name)
			}
		}
	}
	if len(dimensions) != len(result.Dimensions()) {
		t.Errorf("the dimensions with a metric are %v", dimensions)
	}
}

// A benchmark that runs under a tracer has no metric that depends on the speed.
//
// Invariant trace-after.
func TestTracedBenchmarksCount(t *testing.T) {
	traced := 0
	for _, b := range (catalogue.Catalogue{}).All() {
		if !b.Traced {
			continue
		}
		traced++
		for _, m := range b.Metrics {
			if m.OfSpeed() {
				t.Errorf("%s of %s in %s depends on the speed", m.Name, b.Name, m.Unit)
			}
		}
	}
	if traced == 0 {
		t.Error("no benchmark runs under a tracer")
	}
}

// Every benchmark works on the fake engine. It records each of its metrics once, or at least once if it is a series.
func TestEveryBenchmarkRunsOnFakeEngine(t *testing.T) {
	for _, b := range onFake() {
		t.Run(b.Name, func(t *testing.T) {
			trial := ok(t, b.Name, "fake/a", nil)
			for _, m := range b.Metrics {
				n := len(trial.Values(m.Name))
				if n == 0 && !m.Optional || n > 1 && !m.Series {
					t.Errorf("metric %s has %d values", m.Name, n)
				}
				for _, v := range trial.Values(m.Name) {
					if v < 0 || v == 0 && !mayBeZero(m) {
						t.Errorf("metric %s is %v", m.Name, v)
					}
				}
			}
			if len(trial.Phases) == 0 {
				t.Error("it has no timed phase")
			}
		})
	}
}

// mayBeZero reports whether a metric is a difference or a part that some targets do not have.
func mayBeZero(m result.Metric) bool {
	return m.Group != "" || strings.HasSuffix(m.Name, "NotReturned") || m.DerivedFrom != "" && m.Unit == result.Ratio
}

// A fault in any call fails the trial, without samples and without leftover containers.
func TestFaultsFailTheTrial(t *testing.T) {
	for _, b := range append(onFake(), find(t, scaling)) {
		faults := []string{"fail=create", "fail=start", "hang=create", "hang=start", "die=start", "garbage=1", "leak=delete#1"}
		if slices.Contains(b.Capabilities(), engine.CanPull) { // creates no container
			faults = []string{"fail=pull", "hang=pull", "fail=remove#1", "hang=remove#1"}
		}
		for _, fault := range faults {
			t.Run(b.Name+" "+fault, func(t *testing.T) {
				want := result.Failed
				if strings.HasPrefix(fault, "hang") {
					want = result.Timeout
				}
				checkEnd(t, b.Name, run(t, b.Name, "fake/a@"+fault, nil), want, "")
			})
		}
	}
}

// A benchmark is skipped without a capability that it needs, and works without the others.
func TestMissingCapabilities(t *testing.T) {
	for _, b := range append(onFake(), find(t, scaling)) {
		for _, c := range engine.Capabilities() {
			if c == engine.NetworkBridge || b.Name == scaling && c != engine.CanUpdate {
				continue // the fake engine never has it, or cannot run the benchmark
			}
			trial := run(t, b.Name, "fake/a@no="+strings.ReplaceAll(string(c), " ", "-"), nil)
			want := result.OK
			if slices.Contains(b.Capabilities(), c) {
				want = result.Skipped
			}
			if trial.Status != want {
				t.Errorf("%s without %s: %s because %q, want %s", b.Name, c, trial.Status, trial.Reason, want)
			}
		}
	}
}

// No benchmark meets a daemon that does not see this host's directories in a trial: each that mounts one declares it.
//
// Invariant shared-parts.
func TestBindMountsAreDeclared(t *testing.T) {
	const gap = "bind-mount+bind-mount-of-memory"
	cases := map[string][]bench.Params{
		"density.workload":            {{"workload": "nginx"}},
		"performance.database.redis":  {{"persistence": "snapshots"}, {"persistence": "snapshots", "peer": "same"}},
		"performance.network.http":    {{}, {"peer": "192.0.2.7"}},
		"performance.disk.mount":      {{}},
		"isolation.disk":              {{}},
		"isolation.memory.reclaim":    {{}},
		"performance.disk.throughput": {{"on": "bind"}, {"on": "bind-tmpfs"}},
		"performance.disk.sqlite":     {{"on": "bind"}, {"on": "bind-tmpfs"}},
	}
	for name, sets := range cases {
		for _, params := range sets {
			needs := find(t, name).Needs(resolved(t, name, params))
			if !slices.ContainsFunc(needs.Capabilities, func(c engine.Capability) bool { return c == engine.CanBind || c == engine.CanBindMemory }) {
				t.Errorf("%s with %v mounts a directory and does not declare it", name, params)
			}
		}
	}
	for _, b := range onFake() {
		for _, volume := range []bench.Params{nil, {"on": "bind"}, {"on": "bind-tmpfs"}} {
			if _, err := b.Resolve(volume, false); err != nil {
				continue
			}
			if trial := run(t, b.Name, "fake/a@no="+gap, volume); trial.Status != result.OK && trial.Status != result.Skipped {
				t.Errorf("%s with %v without bind mounts: %s because %q", b.Name, volume, trial.Status, trial.Reason)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]bool{
		"operations.container.lifecycle":             true,
		"scalability.runtime.5":                      true,
		"scalability.runtime.10000":                  true,
		"scalability.runtime.0":                      false,
		"scalability.runtime.+7":                     false,
		"scalability.runtime.007":                    false,
		"scalability.runtime.10001":                  false,
		"scalability.runtime.9999999999999999999999": false,
		"scalability.runtime.x":                      false,
		"scalability.runtime":                        false,
		"7":                                          false,
	} {
		b, found := catalogue.Catalogue{}.Lookup(name)
		if found != want || found && b.Name != name {
			t.Errorf("Lookup(%q) = %q, %v; want %v", name, b.Name, found, want)
		}
	}
}

func TestParamsAreChecked(t *testing.T) {
	for _, tt := range []struct{ name, param, good, bad string }{
		{"operations.container.exec", "repeats", "1", "0"},
		{"operations.image.pull", "size", "1024", "1025"},
		{"scalability.runtime.5", "mode", "parallel", "both"},
		{"performance.syscall.unixbench", "fd", "stdin", "0"},
		{"performance.syscall.unixbench", "duration", "10ms", "9ms"},
		{"performance.syscall.latency", "duration", "1h", "61m"},
		{"performance.disk.blog", "space", "128", "127"},
		{"performance.disk.blog", "mixture", "blogbench", "small"},
		{"performance.cpu.sevenzip", "threads", "all", "every"},
		{"performance.cpu.sevenzip", "dictionary", "18", "17"},
		{"performance.cpu.sevenzip", "step", "100ms", "99ms"},
		{"performance.cpu.dav1d", "frames", "600", "500"},
		{"performance.memory.total", "kib", "2048", "1536"},
		{"limits.cpu.time", "percent", "50", "51"},
		{"limits.memory.oom", "mib", "16", "15"},
		{networkBandwidth, "duration", "5m0s", "500ms"},
		{networkNetperf, "duration", "3s", "1500ms"},
		{networkHTTP, "peer", "192.0.2.7", "127.0.0.1"},
		{networkNetperf, "peer", "bench2.example:9000", "bench2:9000"},
		{networkBandwidth, "peer", "bench2.", "0.0.0.0"},
		{databaseRedis, "peer", "same", "192.0.2.7"},
		{isolationNetwork, "peer", "containers", "192.0.2.7"},
		{databaseRedis, "requests", "1000", "999"},
		{"performance.disk.throughput", "sweep", "4,16384", ""},
		{"performance.disk.throughput", "sweep", "4", "3"},
		{"performance.disk.throughput", "sweep", "4,8", "4,,8"},
		{"performance.disk.throughput", "sweep", "4,8", "4,all"},
		{"performance.disk.throughput", "sweep", "65536", "65537"},
		{"performance.disk.throughput", "sweep", "4", strings.Repeat("4,", 64) + "4"},
		{"latency.syscall", "call", "stat", "futex wake"},
		{"latency.syscall", "samples", "1000000", "1000001"},
		{imageRun, "architecture", "arm64", "m68k"},
	} {
		b := find(t, tt.name)
		if _, err := b.Resolve(bench.Params{tt.param: tt.good}, false); err != nil {
			t.Errorf("%s refuses %s=%s: %v", tt.name, tt.param, tt.good, err)
		}
		if _, err := b.Resolve(bench.Params{tt.param: tt.bad}, false); err == nil {
			t.Errorf("%s accepts %s=%s", tt.name, tt.param, tt.bad)
		}
	}
}
