package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/bench"
)

// Monitor holds the intervals of the samples that are taken during trials; 0 takes none.
type Monitor struct {
	// Memory is the interval for the memory and CPU time of the host, of the trial's cgroup and of the components of the target.
	Memory time.Duration `yaml:"memory,omitempty"`
}

// Limits of an interval. A shorter one would measure the sampler; with a longer one most trials would have no sample.
const (
	minInterval = 10 * time.Millisecond
	maxInterval = time.Minute
)

const monitorAdvice = "write memory, or memory: with an interval such as 100ms"

// checkInterval refuses intervals that are too short or too long.
func checkInterval(d time.Duration) *problem {
	if d < minInterval || d > maxInterval {
		return &problem{fmt.Sprintf("%s is not an interval from %s to %s", formatDuration(d), formatDuration(minInterval), formatDuration(maxInterval)), "write it like 100ms"}
	}
	return nil
}

// monitor reads memory, or a mapping with the interval.
func (r *reader) monitor(n ast.Node, dest *Monitor) {
	if s, ok := text(n); ok {
		if s != "memory" {
			r.fail(n, "monitor: "+quote(s)+" is unknown", didYouMean(s, []string{"memory"}, monitorAdvice))
			return
		}
		dest.Memory = bench.MonitorInterval
		return
	}
	r.object(n, "monitor", "memory", "{memory: 100ms}", r.monitorFields(dest))
}

// monitorFields are the keys of monitor.
func (r *reader) monitorFields(dest *Monitor) []field {
	return []field{{"memory", func(n ast.Node) {
		var d time.Duration
		r.duration(n, "monitor.memory", &d)
		if d == 0 {
			return // the problem is recorded
		}
		if f := checkInterval(d); f != nil {
			r.failKey(n, "monitor.memory", f)
			return
		}
		dest.Memory = d
	}}}
}

// parseMonitor reads the value of --monitor: memory or memory=INTERVAL.
func parseMonitor(s string) (Monitor, *problem) {
	name, interval, hasValue := strings.Cut(s, "=")
	if name != "memory" {
		return Monitor{}, &problem{quote(s) + " is unknown", "write memory or memory=100ms"}
	}
	if !hasValue {
		return Monitor{Memory: bench.MonitorInterval}, nil
	}
	d, err := time.ParseDuration(interval)
	if err != nil {
		return Monitor{}, notDuration(quote(interval))
	}
	return Monitor{Memory: d}, checkInterval(d)
}

// monitored adds the metrics of monitored benchmarks. All parameters of a benchmark share its metrics.
func monitored(work []Work) {
	names := map[string]bool{}
	for _, w := range work {
		if w.Monitor > 0 {
			names[w.Benchmark.Name] = true
		}
	}
	for i, w := range work {
		if names[w.Benchmark.Name] {
			work[i].Benchmark = w.Benchmark.Monitored()
		}
	}
}
