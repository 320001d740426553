package export

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// conbenchUnits are the units of Conbench (conbench/units.py) with the only direction that it takes each of them in.
var conbenchUnits = map[result.Unit]struct {
	symbol string
	better result.Direction
}{
	result.Seconds: {"s", result.Lower}, result.BytesPerSecond: {"B/s", result.Higher}, result.PerSecond: {"i/s", result.Higher},
}

type (
	// conbenchResult is a result as Conbench's API takes it (benchadapt/python/benchadapt/result.py). It has either Stats or Error.
	conbenchResult struct {
		RunID     string            `json:"run_id"`
		RunName   string            `json:"run_name"`
		RunReason string            `json:"run_reason"`
		BatchID   string            `json:"batch_id"`
		Timestamp time.Time         `json:"timestamp"`
		Stats     *conbenchStats    `json:"stats,omitempty"`
		Error     map[string]string `json:"error,omitempty"`
		Tags      map[string]string `json:"tags"`
		Info      map[string]string `json:"info"`
		Context   map[string]string `json:"context"`
		Machine   map[string]any    `json:"machine_info"`
	}
	conbenchStats struct {
		Data       []float64 `json:"data"`
		Unit       string    `json:"unit"`
		Times      []float64 `json:"times"`
		TimeUnit   string    `json:"time_unit"`
		Iterations int       `json:"iterations"`
	}
)

// writeConbench writes a result of Conbench for each metric on each target, a line each: the values of all trials, or the reason without one. Conbench computes the
// statistics.
func writeConbench(w io.Writer, s *Source) error {
	for _, c := range s.cells() {
		unit, ok := conbenchUnits[c.metric.Unit]
		if !ok || unit.better != c.metric.Better {
			s.note("Conbench has no unit for %s in %s where %s is better, so the metric is left out", c.metric.Name, c.metric.Unit, c.metric.Better)
			continue
		}
		out := conbenchResult{
			RunID: c.run.ID, RunName: c.run.Name, RunReason: "touchstone", BatchID: c.run.ID + "-" + c.Benchmark, Timestamp: c.run.Started,
			Tags: map[string]string{"name": c.Benchmark, "params": c.Params, "target": c.Target, "metric": c.metric.Name},
			Info: map[string]string{"touchstone_version": c.run.Tool.Version}, Context: map[string]string{"benchmark_language": "touchstone"}, Machine: machine(&c.run.Host),
		}
		if c.values.Summary == nil {
			out.Error = map[string]string{"reason": c.values.Reason}
		} else {
			out.Stats = &conbenchStats{Unit: unit.symbol, Times: []float64{}, TimeUnit: "s", Iterations: 1}
			for _, p := range c.values.Points {
				out.Stats.Data = append(out.Stats.Data, p.Value)
			}
		}
		if err := encode(w, "", out); err != nil {
			return err
		}
	}
	s.noteLosses()
	return nil
}

// machine has all fields that Conbench requires. A fact that a run does not record is 0 or empty.
func machine(h *result.Host) map[string]any {
	facts := map[string]any{
		"name": h.Hostname, "architecture_name": h.Arch, "kernel_name": h.Kernel, "os_name": h.OS, "os_version": "", "cpu_model_name": h.CPU,
		"cpu_thread_count": strconv.Itoa(h.CPUs), "memory_bytes": fmt.Sprint(h.Memory), "gpu_product_names": []string{},
	}
	for _, name := range []string{"cpu_core_count", "cpu_frequency_max_hz", "cpu_l1d_cache_bytes", "cpu_l1i_cache_bytes", "cpu_l2_cache_bytes", "cpu_l3_cache_bytes", "gpu_count"} {
		facts[name] = "0"
	}
	return facts
}
