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
			Name: "HostCPU", Unit: result.Seconds, Better: result.Lower, Optional: true, Consumed: true,
			Help: "CPU time of all processes involved on the host: daemon, shim, runtime, sandbox, and the container itself",
		},
		{
			Name: "HostMemory", Unit: result.Bytes, Better: result.Lower, Optional: true,
			Help: "peak memory charged to all processes involved, with page cache and kernel memory; unknown with a daemon, and on cgroup v2 before Linux 5.19",
		},
	}
}

// ComponentMetrics are the metrics that RecordMemory and RecordCPU record.
func ComponentMetrics() []result.Metric {
	var cpu, memory []result.Metric
	for _, c := range monitor.Components() {
		processes := describe(c)
		cpu = append(cpu, result.Metric{
			Name: cpuMetric(c), Unit: result.Seconds, Better: result.Lower, Optional: true, Help: "CPU time of " + processes + cpuOther(c),
			Consumed: true, Group: "CPU time by component", Component: string(c),
		})
		memory = append(memory, result.Metric{
			Name: memoryMetric(c), Unit: result.Bytes, Better: result.Lower, Optional: true,
			Help:  "memory (PSS) while the container runs: " + processes,
			Group: "Memory by component", Component: string(c),
		})
	}
	return append(cpu, memory...)
}

func cpuMetric(c monitor.Component) string    { return "HostCPU" + title(c) }
func memoryMetric(c monitor.Component) string { return "PSS" + title(c) }

func title(c monitor.Component) string { return strings.ToUpper(string(c[:1])) + string(c[1:]) }

// cpuOther completes the help of the CPU time of processes of no component.
func cpuOther(c monitor.Component) string {
	if c == monitor.Other {
		return ", and the rest of HostCPU: the cost of starting and ending processes"
	}
	return ""
}

// describe describes the processes of a component for people.
func describe(c monitor.Component) string {
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
		return "calls of the runtime, with the processes that it starts before the container"
	case monitor.Sandbox:
		return "the sandbox of the container (gVisor's kernel and its helpers, a virtual machine, a pod's pause process)"
	case monitor.Network:
		return "network plug-ins and the programs that they call"
	case monitor.Container:
		return "the container's processes, with the work of the first one for the runtime before it became the container's"
	default:
		return "processes of no other component"
	}
}

// RecordMemory records the current memory of each component that has processes.
func RecordMemory(t Trial) error {
	memory, err := t.Cost.Memory()
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

// RecordCost records the cost of the trial to the host so far. An unknown cost is left out and never recorded as zero.
func RecordCost(t Trial) error {
	usage, err := t.Cost.Usage()
	if err != nil {
		return unlessUnknown(err)
	}
	recordUsage(t, usage)
	return nil
}

// RecordCostByComponent is RecordCost, and splits the CPU time by component. The components sum up to HostCPU: CPU time
// that the kernel reports for no single process counts as Other.
func RecordCostByComponent(t Trial) error {
	cpu, err := t.Cost.CPU()
	if err != nil {
		return errors.Join(unlessUnknown(err), RecordCost(t))
	}
	usage, err := t.Cost.Usage() // after the parts, so that it is no less than their sum
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

// unlessUnknown drops the errors of unknown costs.
func unlessUnknown(err error) error {
	if engine.Unsupported(err) {
		return nil
	}
	return err
}
