package bench

import (
	"errors"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// CostMetrics are the metrics that RecordCost records.
func CostMetrics() []result.Metric {
	return []result.Metric{
		{
			Name: "HostCPU", Unit: result.Seconds, Better: result.Lower, Optional: true,
			Help: "CPU time of all processes involved on the host: runtime, sandbox, and the container itself",
		},
		{
			Name: "HostMemory", Unit: result.Bytes, Better: result.Lower, Optional: true,
			Help: "highest memory charged at once to all processes involved, page cache and kernel memory included",
		},
	}
}

// RecordCost records what the trial has cost the host so far. What cannot be known
// here is left out, never a zero.
func RecordCost(t Trial) error {
	usage, err := t.Usage()
	var unsupported *engine.UnsupportedError
	if errors.As(err, &unsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	t.Record("HostCPU", usage.CPU.Seconds())
	if usage.PeakMemory > 0 {
		t.Record("HostMemory", float64(usage.PeakMemory))
	}
	return nil
}
