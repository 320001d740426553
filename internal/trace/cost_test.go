package trace

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// BenchmarkCost gives the CPU time that a tracer adds to the life of a container of runc. A pair is a batch without a tracer and one with it, the first of
// which alternates. The metrics are the ratio over the pairs, and with 6 pairs or more the ends of its 95 % interval.
func BenchmarkCost(b *testing.B) {
	if _, err := exec.LookPath("runc"); err != nil || Check() != nil {
		b.Skip("needs runc and a machine that can trace")
	}
	const lives = 20
	dir := bundle(b)
	batch := func(isTraced bool) (cpu time.Duration) {
		if isTraced {
			tracer, err := Start(monitor.Target{})
			must.Do(b, err)
			defer func() {
				_, err := tracer.Stop()
				must.Do(b, err)
			}()
		}
		for range lives {
			cmd := exec.CommandContext(b.Context(), "runc", "run", "--bundle", dir, "touchstone-trace-cost")
			if output, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("runc: %v: %s", err, output)
			}
			cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
		return cpu
	}
	var untracedSamples, tracedSamples []stats.Sample
	for b.Loop() {
		isFirst := len(untracedSamples)%2 == 0
		first := batch(isFirst)
		second := batch(!isFirst)
		if isFirst {
			first, second = second, first
		}
		pair := len(untracedSamples)
		untracedSamples = append(untracedSamples, stats.Sample{Block: pair, Value: first.Seconds()})
		tracedSamples = append(tracedSamples, stats.Sample{Block: pair, Value: second.Seconds()})
	}
	cost := stats.Compare(untracedSamples, tracedSamples, stats.Lower, 1)
	percent := func(ratio float64) float64 { return 100 * (ratio - 1) }
	b.ReportMetric(percent(cost.Ratio), "%CPU")
	if cost.CI != nil {
		b.ReportMetric(percent(cost.CI.Lo), "%CPU-low")
		b.ReportMetric(percent(cost.CI.Hi), "%CPU-high")
	}
}

// bundle makes a bundle of the probe, which exits at once.
func bundle(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	must.Do(b, exec.CommandContext(b.Context(), "runc", "spec", "--bundle", dir).Run())
	file := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(file)
	must.Do(b, err)
	var config map[string]any
	must.Do(b, json.Unmarshal(data, &config))
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{"/probe", "exit"}
	data, err = json.Marshal(config)
	must.Do(b, err)
	root := filepath.Join(dir, "rootfs")
	must.Do(b, os.WriteFile(file, data, 0o600), os.Mkdir(root, 0o755), image.WriteProbe(filepath.Join(root, "probe")))
	return dir
}
