package bench

import (
	"errors"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// CostMetrics are the metrics that RecordCost records.
func CostMetrics() []result.Metric {
	return []result.Metric{
		{
			Name: "HostCPU", Unit: result.Seconds, Better: result.Lower, Optional: true,
			Help: "CPU time of all processes involved on the host: daemon, shim, runtime, sandbox, and the container itself",
		},
		{
			Name: "HostMemory", Unit: result.Bytes, Better: result.Lower, Optional: true,
			Help: "highest memory charged at once to all processes involved, page cache and kernel memory included; not known where a daemon is involved, nor on cgroup v2 before Linux 5.19",
		},
	}
}

// ComponentMetrics are the metrics that RecordMemory and RecordCPU record.
func ComponentMetrics() []result.Metric {
	var cpu, memory []result.Metric
	for _, c := range monitor.Components() {
		what := about(c)
		cpu = append(cpu, result.Metric{
			Name: cpuMetric(c), Unit: result.Seconds, Better: result.Lower, Optional: true, Help: "CPU time of " + what + cpuOther(c),
			Group: "CPU time by component", Component: string(c),
		})
		memory = append(memory, result.Metric{
			Name: memoryMetric(c), Unit: result.Bytes, Better: result.Lower, Optional: true,
			Help:  "memory (PSS) while the container runs of " + what,
			Group: "Memory by component", Component: string(c),
		})
	}
	return append(cpu, memory...)
}

func cpuMetric(c monitor.Component) string    { return "HostCPU" + title(c) }
func memoryMetric(c monitor.Component) string { return "PSS" + title(c) }

func title(c monitor.Component) string { return strings.ToUpper(string(c[:1])) + string(c[1:]) }

// cpuOther is what is said of CPU time alone.
func cpuOther(c monitor.Component) string {
	if c == monitor.Other {
		return ", and the rest of HostCPU: what starting and ending processes costs"
	}
	return ""
}

// about says for people what a component is.
func about(c monitor.Component) string {
	switch c {
	case monitor.Daemon:
		return "the engine's daemon"
	case monitor.Engine:
		return "calls of an engine without a daemon (Podman)"
	case monitor.Shim:
		return "the engine's shims"
	case monitor.Monitor:
		return "conmon"
	case monitor.Runtime:
		return "calls of the runtime, with what it starts before the container"
	case monitor.Sandbox:
		return "what the container runs in (gVisor's kernel and its helpers, a virtual machine, a pod's pause process)"
	case monitor.Network:
		return "network plug-ins and what they call"
	case monitor.Container:
		return "the container's processes, with what the first one did for the runtime before it became the container's"
	default:
		return "processes of no other component"
	}
}

// RecordMemory records the memory of each component that is there at the moment.
func RecordMemory(t Trial) error {
	memory, err := t.Memory()
	if err != nil {
		return unlessUnknown(err)
	}
	for _, c := range monitor.Components() {
		if bytes, ok := memory[c]; ok {
			t.Record(memoryMetric(c), float64(bytes))
		}
	}
	return nil
}

// RecordCost records what the trial has cost the host so far. What cannot be known
// here is left out, never a zero.
func RecordCost(t Trial) error {
	usage, err := t.Usage()
	if err != nil {
		return unlessUnknown(err)
	}
	recordUsage(t, usage)
	return nil
}

// RecordCostByComponent is RecordCost, and tells the CPU time apart. All components together are HostCPU: what the
// kernel tells of no single process is Other's.
func RecordCostByComponent(t Trial) error {
	cpu, err := t.CPU()
	if err != nil {
		return errors.Join(unlessUnknown(err), RecordCost(t))
	}
	usage, err := t.Usage() // after the parts, so that it is no less than their sum
	if err != nil {
		return unlessUnknown(err)
	}
	recordUsage(t, usage)
	rest := usage.CPU
	for _, c := range monitor.Components() {
		rest -= cpu[c]
	}
	if rest > 0 {
		cpu[monitor.Other] += rest
	}
	for _, c := range monitor.Components() {
		if used, ok := cpu[c]; ok {
			t.Record(cpuMetric(c), used.Seconds())
		}
	}
	return nil
}

func recordUsage(t Trial, usage engine.Usage) {
	t.Record("HostCPU", usage.CPU.Seconds())
	if usage.PeakMemory > 0 {
		t.Record("HostMemory", float64(usage.PeakMemory))
	}
}

// unlessUnknown passes over errors that say that a cost cannot be known here.
func unlessUnknown(err error) error {
	var unsupported *engine.UnsupportedError
	if errors.As(err, &unsupported) {
		return nil
	}
	return err
}
