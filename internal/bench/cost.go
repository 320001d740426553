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
			Name: "HostCPU", Unit: result.Seconds, Better: result.Lower, Optional: true, Consumed: true, Column: result.ColumnHostCPU,
			Help: "CPU time of all processes involved on the host: daemon, shim, runtime, sandbox, and the container itself",
		},
		{
			Name: "HostMemory", Unit: result.Bytes, Better: result.Lower, Optional: true, Column: result.ColumnMemory,
			Help: "peak memory charged to all processes involved, with page cache and kernel memory; unknown with a daemon, and on cgroup v2 before Linux 5.19",
		},
	}
}

// ComponentMetrics are the metrics that RecordMemory and RecordCPU record.
func ComponentMetrics() []result.Metric {
	var cpu, memory []result.Metric
	for _, c := range monitor.Components() {
		help := "CPU time of " + processesOf[c]
		if c == monitor.Other {
			help += ", and the rest of HostCPU: the cost of starting and ending processes"
		}
		cpu = append(cpu, result.Metric{
			Name: cpuMetric(c), Unit: result.Seconds, Better: result.Lower, Optional: true, Help: help,
			Consumed: true, Group: "CPU time by component", Component: string(c),
		})
		memory = append(memory, result.Metric{
			Name: memoryMetric(c), Unit: result.Bytes, Better: result.Lower, Optional: true,
			Help:  "memory (PSS) while the container runs: " + processesOf[c],
			Group: "Memory by component", Component: string(c),
		})
	}
	return append(cpu, memory...)
}

func cpuMetric(c monitor.Component) string    { return "HostCPU" + Title(string(c)) }
func memoryMetric(c monitor.Component) string { return "PSS" + Title(string(c)) }

// Title spells a component or another group of words as a part of a metric's name: "file server" is "FileServer".
func Title(words string) string {
	var name strings.Builder
	for word := range strings.FieldsFuncSeq(words, func(r rune) bool { return r == ' ' || r == '-' }) {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// processesOf describes the processes of each component for people.
var processesOf = map[monitor.Component]string{
	monitor.Daemon:     "the engine's daemon",
	monitor.Engine:     "calls of an engine without a daemon (Podman)",
	monitor.Shim:       "the engine's shims",
	monitor.Monitor:    "conmon",
	monitor.Runtime:    "calls of the runtime, with the processes that it starts before the container",
	monitor.Sentry:     "gVisor's kernel with its processes for the container's programs",
	monitor.Gofer:      "gVisor's file servers",
	monitor.Hypervisor: "the virtual machine monitor with its guest",
	monitor.FileServer: "the file servers of a virtual machine (virtiofsd)",
	monitor.Proxy:      "the proxy between a shim and the agent in a virtual machine",
	monitor.Pause:      "the pod's pause process",
	monitor.Network:    "network plug-ins and the programs that they call",
	monitor.Container:  "the container's processes, with the work of the first one for the runtime before it became the container's",
	monitor.Other:      "processes of no other component",
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
		if usage, ok := cpu[c]; ok {
			t.Record(cpuMetric(c), usage.Seconds())
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
