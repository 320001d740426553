package density

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
)

// kept is a trial that keeps values and conditions, on a host with a number of spare tasks.
type kept struct {
	bench.Core
	bench.Cost
	values     map[string][]float64
	conditions map[string]string
	tasks      int64
	host       bench.HostMemory
}

func (k *kept) Record(metric string, value float64) {
	k.values[metric] = append(k.values[metric], value)
}
func (k *kept) Condition(name, value string)    { k.conditions[name] = value }
func (k *kept) Host() (bench.HostMemory, error) { return k.host, nil }
func (k *kept) Tasks() (int64, error) {
	if k.tasks == 0 {
		return 0, &engine.UnsupportedError{}
	}
	return k.tasks, nil
}

func newTrial(tasks int64) (*kept, bench.Trial) {
	k := &kept{values: map[string][]float64{}, conditions: map[string]string{}, tasks: tasks}
	return k, bench.Trial{Core: k, Cost: k, Params: bench.Params{"floor": "10"}}
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// host has 1 GiB, and the amounts of some fields. The other programs have 100 MiB.
func host(fields map[string]int64) bench.HostMemory {
	h := bench.HostMemory{
		"MemTotal": 1024 * mib, "MemAvailable": 924 * mib, "AnonPages": 100 * mib,
		"SUnreclaim": 0, "PageTables": 0, "KernelStack": 0, "Percpu": 0, "Shmem": 0,
	}
	for name, n := range fields {
		if name == "MemAvailable" {
			h[name] = n
		} else {
			h[name] += n
		}
	}
	return h
}

// sandboxes are readings of containers with a sentry, a gofer and a shim. Each takes 20 + 10 + 2 MiB of PSS with 4 MiB of
// files' pages, and 3 MiB of kernel memory. The first takes 8 MiB of shared pages more.
func sandboxes(n int64) readings {
	series := readings{{host: host(nil), census: monitor.Census{Memory: map[monitor.Component]monitor.Memory{}}}}
	for i := int64(1); i <= n; i++ {
		r := reading{containers: int(i), census: monitor.Census{Tasks: int(10 * i), Memory: map[monitor.Component]monitor.Memory{
			monitor.Sentry: {PSS: i*20*mib + 8*mib, Anonymous: i * 16 * mib, File: i*4*mib + 8*mib},
			monitor.Gofer:  {PSS: i * 10 * mib, Anonymous: i * 10 * mib},
			monitor.Shim:   {PSS: i * 2 * mib, Anonymous: i * 2 * mib},
		}}}
		r.host = host(map[string]int64{
			"MemAvailable": 924*mib - i*31*mib, "AnonPages": i * 28 * mib, "SUnreclaim": i * 2 * mib, "Percpu": i * mib,
		})
		series = append(series, r)
	}
	return series
}

func (k *kept) check(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		got := k.values[name]
		if len(got) != 1 || math.Abs(got[0]-v) > 1 {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
}

func TestMemoryByComponent(t *testing.T) {
	k, trial := newTrial(0)
	recordMemory(trial, sandboxes(10))
	k.check(t, map[string]float64{
		"PSSPerContainer": 32 * mib, "PSSPerContainerLow": 32 * mib, "PSSPerContainerHigh": 32 * mib,
		"PSSPerContainerSentry": 20 * mib, "PSSPerContainerGofer": 10 * mib, "PSSPerContainerShim": 2 * mib,
		"PSSOfFirst": 40 * mib, "PSSOfTenth": 32 * mib,
		"AvailablePerContainer": 31 * mib, "AvailablePerContainerLow": 31 * mib, "MemoryPerContainer": 31 * mib,
		// 31 − 32 = 2 + 1 − 4
		"RestPerContainerSlab": 2 * mib, "RestPerContainerPerCPUMemory": mib, "RestPerContainerPageCache": -4 * mib, "RestPerContainerOther": 0,
		"RestPerContainerTmpfs": 0,
	})
	if len(k.values["PSSOfFiftieth"]) > 0 || len(k.values["PSSPerContainerDaemon"]) > 0 {
		t.Errorf("values of absent containers and components: %v", k.values)
	}
	if got := k.values["PSS"]; len(got) != 10 || got[0] != 40*mib || got[9] != 328*mib {
		t.Errorf("the curve is %v", got)
	}
}

// Of many containers not each has a reading. The line is the same, and the curve ends with the first gap.
func TestManyContainers(t *testing.T) {
	k, trial := newTrial(0)
	source := sandboxes(350)
	sample := readings{source[0]}
	for i := 1; i <= 350; i++ {
		if due(i, 350) {
			sample = append(sample, source[i])
		}
	}
	if n := len(sample); n != 1+50+76 { // 52, 56, …, 348 and 350
		t.Errorf("there are %d readings", n-1)
	}
	recordMemory(trial, sample)
	k.check(t, map[string]float64{
		"PSSPerContainer": 32 * mib, "PSSPerContainerSentry": 20 * mib, "MemoryPerContainer": 31 * mib, "PSSOfTenth": 32 * mib, "PSSOfFiftieth": 32 * mib,
		"RestPerContainerSlab": 2 * mib,
	})
	if got := k.values["PSS"]; len(got) != 50 || got[49] != (50*32+8)*mib {
		t.Errorf("the curve has %d values", len(got))
	}
	for i := 1; i <= 100; i++ {
		if !due(i, 100) {
			t.Errorf("container %d of 100 has no reading", i)
		}
	}
}

// The parts of the difference add up to it for any readings.
func TestRestAddsUp(t *testing.T) {
	k, trial := newTrial(0)
	series := sandboxes(12)
	for i := range series {
		series[i].host["MemAvailable"] -= int64(i*i%7) * mib
		series[i].host["PageTables"] += int64(i*i%5) * mib
		series[i].host["Shmem"] += int64(i%3) * mib
	}
	recordMemory(trial, series)
	var sum float64
	for name, values := range k.values {
		if strings.HasPrefix(name, "RestPerContainer") {
			sum += values[0]
		}
	}
	if want := k.values["MemoryPerContainer"][0] - k.values["PSSPerContainer"][0]; math.Abs(sum-want) > 1 {
		t.Errorf("the parts add up to %v, want %v", sum, want)
	}
}

// A field that the kernel does not report is unknown, and not 0. Its memory is in the rest.
func TestUnknownKind(t *testing.T) {
	k, trial := newTrial(0)
	series := sandboxes(10)
	for _, r := range series {
		delete(r.host, "Percpu")
	}
	recordMemory(trial, series)
	k.check(t, map[string]float64{"RestPerContainerSlab": 2 * mib, "RestPerContainerPageCache": -4 * mib, "RestPerContainerOther": mib})
	if got := k.values["RestPerContainerPerCPUMemory"]; len(got) > 0 {
		t.Errorf("the unknown memory is %v", got)
	}
}

// A missing source leaves out its metrics, and no other.
func TestUnknownMemory(t *testing.T) {
	k, trial := newTrial(0)
	series := sandboxes(6)
	for i := range series {
		series[i].noAvailable = errors.New("unknown")
	}
	recordMemory(trial, series)
	k.check(t, map[string]float64{"PSSPerContainer": 32 * mib})
	if len(k.values["AvailablePerContainer"])+len(k.values["RestPerContainerSlab"]) > 0 {
		t.Errorf("values of an unknown host: %v", k.values)
	}

	k, trial = newTrial(0)
	series = sandboxes(6)
	series[3].noCensus = errors.New("hidden")
	recordMemory(trial, series)
	k.check(t, map[string]float64{"AvailablePerContainer": 31 * mib})
	if len(k.values["PSSPerContainer"])+len(k.values["PSS"])+len(k.values["PSSPerContainerSentry"]) > 0 {
		t.Errorf("values of unknown processes: %v", k.values)
	}
}

// Without the parts of the PSS, as before Linux 5.4, the difference is not explained.
func TestUndividedMemory(t *testing.T) {
	k, trial := newTrial(0)
	series := sandboxes(6)
	for i := range series {
		for c, m := range series[i].census.Memory {
			series[i].census.Memory[c] = monitor.Memory{PSS: m.PSS}
		}
	}
	recordMemory(trial, series)
	k.check(t, map[string]float64{"PSSPerContainer": 32 * mib, "AvailablePerContainer": 31 * mib})
	if len(k.values["RestPerContainerSlab"]) > 0 {
		t.Errorf("the difference is explained without its parts: %v", k.values)
	}
}

func TestMost(t *testing.T) {
	// 924 MiB less the floor of 102.4 MiB, at 31 MiB each.
	k, trial := newTrial(0)
	if err := recordMost(trial, sandboxes(8)); err != nil {
		t.Fatal(err)
	}
	k.check(t, map[string]float64{"Containers": 26, "ContainersLow": 26, "ContainersHigh": 26})
	if k.conditions["stopped by"] != "memory" || !strings.HasSuffix(k.conditions["extrapolated from"], "without the anonymous memory of other processes") {
		t.Errorf("conditions are %v", k.conditions)
	}

	// With 8 containers 155 tasks are left, for 15 containers more.
	k, trial = newTrial(155)
	if err := recordMost(trial, sandboxes(8)); err != nil {
		t.Fatal(err)
	}
	k.check(t, map[string]float64{"Containers": 23})
	if k.conditions["stopped by"] != "processes and threads" || len(k.values["ContainersLow"]) > 0 {
		t.Errorf("conditions are %v, values %v", k.conditions, k.values)
	}
}

// If other programs hide the cost in MemAvailable, the PSS takes its place, and a condition reports it.
func TestMostOnABusyHost(t *testing.T) {
	k, trial := newTrial(0)
	series := sandboxes(8)
	for i := range series {
		series[i].host["MemAvailable"] += int64([]int{0, 300, -200, 250, -100, 300, 0, -300, 350}[i]) * mib
	}
	if err := recordMost(trial, series); err != nil {
		t.Fatal(err)
	}
	k.check(t, map[string]float64{"Containers": math.Floor((924 - 102.4 - 8) / 32)})
	if !strings.HasPrefix(k.conditions["extrapolated from"], "the PSS") {
		t.Errorf("conditions are %v", k.conditions)
	}
}

// Anonymous memory of other processes does not change the cost.
func TestOtherProcesses(t *testing.T) {
	noise := []int64{0, 300, -90, 250, -100, 300, 0, -80, 350}
	series := sandboxes(8)
	for i := range series {
		series[i].host["MemAvailable"] -= noise[i] * mib
		series[i].host["AnonPages"] += noise[i] * mib
	}
	k, trial := newTrial(0)
	recordMemory(trial, series)
	k.check(t, map[string]float64{"MemoryPerContainer": 31 * mib, "MemoryPerContainerLow": 31 * mib})
	if k.values["AvailablePerContainerLow"][0] > 0 {
		t.Errorf("the fall of MemAvailable is %v", k.values["AvailablePerContainerLow"])
	}
	if err := recordMost(trial, series); err != nil {
		t.Fatal(err)
	}
	k.check(t, map[string]float64{"Containers": 26})
}

func TestMostIsUnknown(t *testing.T) {
	for name, change := range map[string]func(r *reading){
		"less available memory than the floor": func(r *reading) { r.host["MemAvailable"] = 100 * mib },
		"noise of the host": func(r *reading) {
			r.host["MemAvailable"] = 924 * mib
			r.census.Memory = nil
		},
		"MemAvailable is unknown": func(r *reading) { r.noAvailable = errors.New("MemAvailable is unknown") },
	} {
		_, trial := newTrial(0)
		series := sandboxes(8)
		for i := range series {
			change(&series[i])
		}
		if err := recordMost(trial, series); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// On a kernel without MemAvailable the real mode is impossible. Its memory is not 0, which would be below every floor.
func TestFillNeedsMemAvailable(t *testing.T) {
	k, trial := newTrial(0)
	k.host = bench.HostMemory{"MemTotal": 1024 * mib}
	if err := fill(t.Context(), trial); !engine.Unsupported(err) {
		t.Errorf("the error is %v, want a missing capability", err)
	}
}

// Memory that stays is found by component and by kind.
func TestNotReturned(t *testing.T) {
	k, trial := newTrial(0)
	baseline, peak := sandboxes(5)[0], sandboxes(5)[5]
	remainder := reading{
		host:   host(map[string]int64{"MemAvailable": 924*mib - 10*mib, "AnonPages": 6 * mib, "SUnreclaim": 4 * mib}),
		census: monitor.Census{Memory: map[monitor.Component]monitor.Memory{monitor.Daemon: {PSS: 6 * mib, Anonymous: 6 * mib}}},
	}
	for i, r := range []reading{baseline, peak, remainder} {
		r.host["SwapTotal"], r.host["SwapFree"] = 100*mib, 100*mib-int64(i%2)*7*mib
	}
	recordChurn(trial, baseline, peak, remainder)
	k.check(t, map[string]float64{
		"PeakFall": 155 * mib, "PeakMemory": 155 * mib, "PeakPSS": 168 * mib, "PeakSwap": 7 * mib,
		"NotReturned": 10 * mib, "FallNotReturned": 10 * mib, "PSSNotReturned": 6 * mib,
		"NotReturnedDaemon": 6 * mib, "RestNotReturnedSlab": 4 * mib, "RestNotReturnedOther": 0,
	})
	if len(k.values["NotReturnedSentry"]) > 0 {
		t.Errorf("components that are gone have values: %v", k.values)
	}

	k, trial = newTrial(0)
	baseline, peak, remainder = sandboxes(1)[0], sandboxes(1)[1], sandboxes(1)[0]
	recordChurn(trial, baseline, peak, remainder)
	k.check(t, map[string]float64{"NotReturned": 0, "PSSNotReturned": 0})
	if len(k.values["PeakSwap"]) > 0 {
		t.Error("a host without swap has a value of swap")
	}
}

// Metrics are distinct, and every component has one.
func TestMetricsOfComponents(t *testing.T) {
	for _, b := range Benchmarks() {
		names := map[string]bool{}
		for _, m := range b.Metrics {
			if names[m.Name] || strings.ContainsAny(m.Name, " -") {
				t.Errorf("%s: metric %q is not unique or has a blank", b.Name, m.Name)
			}
			names[m.Name] = true
		}
	}
	var names []string
	for _, m := range memory().Metrics {
		if m.Group == byComponent {
			names = append(names, m.Component)
		}
	}
	var want []string
	for _, c := range monitor.Components() {
		want = append(want, string(c))
	}
	if !slices.Equal(names, want) {
		t.Errorf("components are %v, want %v", names, want)
	}
}
