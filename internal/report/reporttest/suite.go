package reporttest

import (
	"fmt"
	"math"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	containerdRunc  = "containerd/runc"
	containerdRunsc = "containerd/runsc"
	noBridge        = "bridged network: this host's kernel has no veth; load the module veth"
	noMirror        = "image workload: no mirror answers; make it with touchstone image build, or load one"
)

// program is a benchmark of the performance suite with one metric or several.
type program struct {
	name, params string
	metrics      []result.Metric
	base         []float64
	// sandboxed is the factor of user-space kernels.
	sandboxed  float64
	conditions map[string]string
	skipped    string // on every target
}

func rates(unit result.Unit, names ...string) []result.Metric {
	var all []result.Metric
	for _, n := range names {
		better := result.Higher
		if unit == result.Seconds {
			better = result.Lower
		}
		all = append(all, result.Metric{Name: n, Unit: unit, Better: better, Help: "what " + n + " says"})
	}
	return all
}

// programs are some thirty benchmarks with all units.
func programs() []program {
	limit := result.Metric{
		Name: "CPULimitUse", Unit: result.Ratio, Better: result.Lower, Help: "CPU time over quota",
		Bound: result.Bound{Most: 1.1, Broken: "does not hold its CPU limit"},
	}
	kill := result.Metric{Name: "Kill", Unit: result.Seconds, Better: result.Lower, Help: "from exceeding the limit to the kill", Bound: result.Bound{Most: 5, Broken: "does not hold its memory limit"}}
	all := []program{
		{name: "performance.cpu.time", params: "events=1000", metrics: rates(result.Seconds, "TotalTime"), base: []float64{0.94}, sandboxed: 1.03},
		{name: "performance.cpu.sevenzip", metrics: append(rates(result.PerSecond, "Compression", "Decompression"), rates(result.Ratio, "Usage")...), base: []float64{4.1e9, 5.2e9, 1.97}, sandboxed: 0.97},
		{name: "performance.cpu.dav1d", metrics: rates(result.PerSecond, "Frames"), base: []float64{142}, sandboxed: 0.95},
		{name: "performance.cpu.linpack", params: "n=2000", metrics: rates(result.FlopPerSecond, "Rate"), base: []float64{4.4e10}, sandboxed: 0.98},
		{name: "performance.memory.total", metrics: rates(result.Seconds, "TotalTime"), base: []float64{1.6}, sandboxed: 1.2},
		{name: "performance.memory.minavglatency", metrics: rates(result.Seconds, "MinAvgLatency"), base: []float64{8e-5}, sandboxed: 1.2},
		{name: "performance.memory.maxlatency", metrics: rates(result.Seconds, "MaxLatency"), base: []float64{3e-4}, sandboxed: 1.6},
		{name: "performance.disk.read", params: "cache=cold", metrics: rates(result.BytesPerSecond, "SeqRead", "RndRead"), base: []float64{1.8e9, 2.1e8}, sandboxed: 0.3},
		{name: "performance.disk.write", metrics: rates(result.BytesPerSecond, "SeqWrite", "SeqRewrite", "RndWrite"), base: []float64{6e8, 7e8, 9e7}, sandboxed: 0.4},
		{name: "performance.disk.sqlite", metrics: rates(result.Seconds, "Time"), base: []float64{3.1}, sandboxed: 4.8},
	}
	for _, medium := range []string{"bind", "rootfs", "tmpfs"} {
		all = append(all, program{
			name: "performance.disk.throughput", params: "cache=cold volume=" + medium, base: []float64{1.1e9, 2.4e4}, sandboxed: 0.5,
			metrics: append(rates(result.BytesPerSecond, "Read"), rates(result.PerSecond, "ReadOperations")...), conditions: map[string]string{"file system": medium, "cache": "cold"},
		})
	}
	for _, with := range []string{"host", "container"} {
		all = append(all,
			program{name: "performance.network.bandwidth", params: "with=" + with, metrics: rates(result.BitsPerSecond, "Bandwidth"), base: []float64{9.4e9}, sandboxed: 0.6},
			program{name: "performance.network.netperf", params: "with=" + with, metrics: rates(result.PerSecond, "TCPRR", "TCPCRR", "UDPRR"), base: []float64{18e3, 5e3, 21e3}, sandboxed: 0.2},
			program{name: "performance.network.http", params: "with=" + with, metrics: rates(result.PerSecond, "Requests"), base: []float64{12e3}, sandboxed: 0.3},
		)
	}
	for i := range all {
		if strings.HasPrefix(all[i].name, "performance.network.") {
			all[i].skipped = noBridge
			if all[i].name == "performance.network.bandwidth" {
				all[i].skipped = ""
				all[i].conditions = map[string]string{"mtu": "1500", "path": ""}
			}
		}
	}
	for i := range 8 {
		all = append(all, program{
			name: "performance.database.redis", params: fmt.Sprintf("test=%02d", i), base: []float64{1.1e5, 4e-4, 9e-4}, sandboxed: 0.15,
			metrics: append(rates(result.PerSecond, "Requests"), rates(result.Seconds, "LatencyP50", "LatencyP99")...),
		})
	}
	all = append(all,
		program{name: "performance.syscall.unixbench", params: "copies=1", metrics: rates(result.PerSecond, "LoopsPerSecond"), base: []float64{1.6e6}, sandboxed: 0.2},
		program{name: "performance.syscall.stress", metrics: rates(result.PerSecond, "Operations"), base: []float64{1}, skipped: noMirror},
		program{name: "limits.cpu.time", params: "quota=0.1", metrics: append(rates(result.Seconds, "TotalTime"), limit), base: []float64{9.6, 1.01}, sandboxed: 1},
		program{name: "limits.memory.oom", params: "limit=64MiB", metrics: []result.Metric{kill}, base: []float64{0.04}, sandboxed: 2},
	)
	return all
}

// Suite is a run of the whole performance suite on seven targets, with some thirty benchmarks, all units, different conditions,
// broken limits and benchmarks that every target skips.
func Suite() result.Run {
	s := newSampler("01K9Z0TOUCHSTONE0SUITE0000", "standard")
	s.run.Images = []result.Image{
		{Name: "workload", Digest: "sha256:5e2c1e8a5f2d0c6d8b6f6b2a9f4f1f0e7b8a9c0d1e2f30415263748596a7b8c9", Size: 62 << 20},
		{Name: "mine.tar", Unavailable: "there is no such file <here>"},
	}
	s.run.Caveats = append(s.run.Caveats, "the page cache of the whole machine was dropped 70 times, each right before a cold reading")
	for _, name := range []string{containerdRunc, "containerd/crun", containerdRunsc} {
		s.run.Targets = append(s.run.Targets, result.Target{Name: name, Version: "containerd 2.4.2", Isolation: "shared kernel", Cgroup: "v2"})
	}
	s.run.Bench = nil
	all := programs()
	for _, p := range all {
		s.run.Bench = append(s.run.Bench, result.Benchmark{Name: p.name, Summary: "what " + p.name + " measures", Source: "wang; nishimura", Metrics: p.metrics})
	}
	known := map[string]bool{}
	var described []result.Benchmark
	for _, b := range s.run.Bench {
		if !known[b.Name] {
			described = append(described, b)
		}
		known[b.Name] = true
	}
	s.run.Bench = described
	for block := -1; block < blocks; block++ {
		for _, p := range all {
			for _, target := range s.order() {
				s.program(p, target, block)
			}
		}
	}
	s.run.Upgrade()
	return s.run
}

func (s *sampler) program(p program, target string, block int) {
	if p.skipped != "" {
		s.skip(p.name, p.params, target, p.skipped, block)
		return
	}
	t := s.trial(p.name, p.params, target, block)
	t.Conditions = map[string]string{"cpus": "0-1"}
	for name, value := range p.conditions {
		if name == "path" {
			if value = "bridge, veth, netstack of gVisor"; !strings.Contains(target, "runsc") {
				value = "bridge, veth"
			}
			if target == native {
				value = "veth between two network namespaces"
			}
		}
		t.Conditions[name] = value
	}
	for i, m := range p.metrics {
		v := p.base[i]
		if strings.Contains(target, "runsc") {
			v *= p.sandboxed
		}
		switch {
		case target == containerdRunsc && m.Name == "CPULimitUse":
			v *= 9.7
		case target == containerdRunsc && m.Name == "Kill":
			v *= 400
		}
		record(t, m.Name, math.Abs(s.noisy(v, 0.02)))
	}
}
