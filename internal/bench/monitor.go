package bench

import (
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// The metrics of a monitored trial. The runner records them.
const (
	HostMemoryPeak   = "HostMemoryPeak"
	HostMemoryMean   = "HostMemoryMean"
	HostMemoryArea   = "HostMemoryArea"
	CgroupMemoryPeak = "CgroupMemoryPeak"
	CgroupMemoryMean = "CgroupMemoryMean"
	CgroupMemoryArea = "CgroupMemoryArea"
)

// MonitorInterval is the default interval between the samples of a monitored trial.
const MonitorInterval = 100 * time.Millisecond

// MonitorMetrics are the metrics that the runner records for a monitored benchmark: the peak, the mean and the area of the memory above
// the level before the trial. Memory below that level counts as zero. The area is the integral over the trial, set-up and clean-up
// included, so it is the mean times the length of the trial.
func MonitorMetrics() []result.Metric {
	const (
		host   = "used memory of the host, all programs included"
		cgroup = "memory charged to the cgroups of the trial and of its private daemon, with page cache and kernel memory"
	)
	metric := func(name string, unit result.Unit, help string) result.Metric {
		return result.Metric{Name: name, Unit: unit, Better: result.Lower, Optional: true, Consumed: true, Help: help + ", above the level before the trial"}
	}
	return []result.Metric{
		metric(HostMemoryPeak, result.Bytes, "peak of the "+host),
		metric(HostMemoryMean, result.Bytes, "mean over the trial of the "+host),
		metric(HostMemoryArea, result.ByteSeconds, "mean times the length of the trial, of the "+host),
		metric(CgroupMemoryPeak, result.Bytes, "peak of the "+cgroup),
		metric(CgroupMemoryMean, result.Bytes, "mean over the trial of the "+cgroup),
		metric(CgroupMemoryArea, result.ByteSeconds, "mean times the length of the trial, of the "+cgroup),
	}
}

// Monitored returns b with the metrics of a monitored benchmark.
func (b Benchmark) Monitored() Benchmark {
	b.Metrics = slices.Clip(b.Metrics)
	for _, m := range MonitorMetrics() {
		if !slices.ContainsFunc(b.Metrics, func(metric result.Metric) bool { return metric.Name == m.Name }) {
			b.Metrics = append(b.Metrics, m)
		}
	}
	return b
}
