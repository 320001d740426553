// Package reporttest makes runs for the tests of reports. Its numbers are invented, but have the size of real ones. The same
// seed gives the same run.
package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// The targets of the sample.
const (
	native = "native"
	runc   = "oci/runc"
	crun   = "oci/crun"
	runsc  = "oci/runsc@platform=systrap"
	youki  = "oci/youki"
)

const (
	blocks     = 10
	notFound   = "youki is not on PATH; install it, or name its binary in the plan under runtimes"
	blogParams = "time=5s"
	lifecycle  = "operations.container.lifecycle"
)

// Sample is a run of four targets and eight benchmarks with all difficulties of a report: failures, a time-out, skips, an
// unavailable target, a bimodal one, disturbed trials, drift, and text that is hostile to HTML and terminals.
func Sample() result.Run {
	s := newSampler("01K9Z0TOUCHSTONE0SAMPLE000", "quick")
	s.run.Targets = append(s.run.Targets, result.Target{Name: youki, Unavailable: notFound})
	s.skip(lifecycle, "", youki, notFound, -1)
	s.skip("performance.disk.blog", blogParams, youki, notFound, -1)
	for block := -1; block < blocks; block++ {
		s.lifecycle(block)
		s.exec(block)
		s.pause(block)
		s.scalability(block)
		s.unixbench(block)
		s.syscalls(block)
		s.stream(block)
		s.blog(block)
	}
	s.describe()
	s.run.Upgrade() // describes the roles of targets and metrics
	return s.run
}

// Small is a run of two targets with one benchmark, for golden files.
func Small() result.Run {
	s := newSampler("01K9Z0TOUCHSTONE0SMALL0000", "small")
	s.run.Targets = s.run.Targets[:2]
	for block := -1; block < blocks; block++ {
		s.lifecycle(block)
	}
	s.run.Trials[5].Host.Marks = []string{"programs waited for I/O 14.2 % of the time"}
	s.describe()
	s.run.Bench = s.run.Bench[:1]
	s.run.Upgrade()
	return s.run
}

type sampler struct {
	run  result.Run
	rand *rand.Rand
	at   time.Time
}

func newSampler(id, name string) *sampler {
	start := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	return &sampler{
		rand: rand.New(rand.NewPCG(20261120, 4)),
		at:   start,
		run: result.Run{
			ID: id, Name: name, State: result.Complete, Started: start, Ended: start.Add(171 * time.Second),
			Tool: result.Tool{Version: "1.0.0", Commit: "38e14e7", Go: "go1.26.0"},
			Seed: 8213640917, Baseline: native,
			Plan: "version: 1\nname: " + name + "\nblocks: 10\nwarmup: 1\nbudget: 3m\nseed: 8213640917\n",
			Host: result.Host{
				Hostname: "bench1", OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.18.0-1-amd64 #1 SMP", Arch: "amd64",
				CPU: "Example CPU 3.0 GHz", CPUs: 8, Governor: "schedutil", Turbo: "on", SMT: "on",
				Memory: 24 << 30, Cgroup: "v2", Virtual: "kvm", LSM: "apparmor", Root: true,
				Mitigation: "spectre_v2: Enhanced IBRS; meltdown: not affected", Cmdline: "quiet splash",
				Warnings: []string{
					"the CPU frequency governor is schedutil: the clock follows the load, and short operations look slower than they are; set performance (cpupower frequency-set -g performance)",
					"SMT is on: two threads share a core, and each slows the other; small differences are clearer with it off (echo off > /sys/devices/system/cpu/smt/control)",
				},
			},
			Targets: []result.Target{
				{Name: native, Isolation: "none", Cgroup: "v2"},
				{Name: runc, Binary: "/usr/bin/runc", Version: "runc version 1.5.2", Isolation: "shared kernel", Cgroup: "v2"},
				{Name: crun, Binary: "/usr/bin/crun", Version: "crun version 1.28", Isolation: "shared kernel", Cgroup: "v2", Notes: []string{"it runs in a mount namespace of its own without the unified hierarchy"}},
				{Name: runsc, Binary: "/usr/local/bin/runsc", Version: "runsc version release-20260905", Isolation: "user-space kernel", Cgroup: "v2", Notes: []string{"systrap needs a spare core", "no network: <none>"}},
			},
			Overhead: result.Overhead{EmptyRegion: 84 * time.Nanosecond, Exec: 640 * time.Microsecond},
			Caveats:  []string{"the CPU frequency was not held constant"},
		},
	}
}

// noisy gives v with a few per cent of skewed noise.
func (s *sampler) noisy(v, share float64) float64 {
	return v * math.Exp(share*s.rand.NormFloat64()+0.3*share*s.rand.ExpFloat64())
}

// trial adds a trial that is ok; block −1 is the warm-up.
func (s *sampler) trial(benchmark, params, target string, block int) *result.Trial {
	s.at = s.at.Add(400 * time.Millisecond)
	s.run.Trials = append(s.run.Trials, result.Trial{
		Seq: len(s.run.Trials) + 1, Cell: result.Cell{Benchmark: benchmark, Params: params, Target: target},
		Block: max(block, 0), Warmup: block < 0, Status: result.OK, Started: s.at,
		Elapsed: 380 * time.Millisecond, Self: 2 * time.Millisecond,
	})
	return &s.run.Trials[len(s.run.Trials)-1]
}

// order gives the available targets in the order of a block.
func (s *sampler) order() []string {
	var names []string
	for _, t := range s.run.Targets {
		if t.Unavailable == "" {
			names = append(names, t.Name)
		}
	}
	s.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func (s *sampler) skip(benchmark, params, target, reason string, block int) {
	if block < 0 {
		t := s.trial(benchmark, params, target, 0)
		t.Status, t.Reason, t.Elapsed = result.Skipped, reason, 0
	}
}

func record(t *result.Trial, metric string, value float64) {
	t.Samples = append(t.Samples, result.Sample{Metric: metric, Value: value})
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

func (s *sampler) lifecycle(block int) {
	// create, start, kill, exit, delete in ms; CPU in ms; memory in MiB
	cost := map[string][7]float64{
		native: {0.21, 0.74, 0.02, 0.30, 0.09, 1.1, 0.9},
		runc:   {17.4, 8.1, 5.6, 2.1, 7.9, 38, 14.2},
		crun:   {5.2, 2.9, 1.9, 1.1, 4.1, 9.4, 3.1},
		runsc:  {74, 32, 18, 9.1, 26, 163, 61},
	}
	for _, target := range s.order() {
		t := s.trial(lifecycle, "", target, block)
		if target == runsc && block == 3 {
			t.Status = result.Failed
			t.Reason = `runsc delete: exit code 128: cannot delete container that is not stopped: <b>"running"</b>`
			t.Output = "starting\n<script>alert(1)</script>\x1b[31m\n"
			continue
		}
		c := cost[target]
		if target == crun && block%2 == 1 {
			c[0], c[1] = 12.8, 6.0 // it is bimodal
		}
		var d [5]float64
		at := time.Millisecond
		for i, phase := range []string{"create", "start", "kill", "exit", "delete"} {
			d[i] = s.noisy(c[i]/1e3, 0.03)
			t.Phases = append(t.Phases, result.Phase{Name: phase, Start: at, Duration: seconds(d[i])})
			at += seconds(d[i])
		}
		if target == runc && block == 6 {
			d[0] *= 1.9
			t.Host.Marks = []string{"programs waited for I/O 14.2 % of the time", "the hypervisor withheld 3.1 % of the CPU time"}
		}
		record(t, "Create", d[0])
		record(t, "Run", d[1])
		record(t, "CreateAndRun", d[0]+d[1])
		record(t, "Destroy", d[2]+d[3]+d[4])
		record(t, "FirstInstruction", (d[0]+d[1])*1.04)
		record(t, "HostCPU", s.noisy(c[5]/1e3, 0.04))
		if target != native {
			record(t, "HostMemory", math.Round(s.noisy(c[6]*(1<<20), 0.01)))
		}
	}
}

func (s *sampler) exec(block int) {
	const name, params = "operations.container.exec", "repeats=5"
	base := map[string]float64{native: 0.9, runc: 13.2, crun: 4.4, runsc: 21}
	for _, target := range s.order() {
		t := s.trial(name, params, target, block)
		t.Phases = append(t.Phases, result.Phase{Name: "create", Duration: seconds(base[target] / 1e3)}, result.Phase{Name: "start", Duration: seconds(base[target] / 2e3)})
		for i := range 5 {
			v := s.noisy(base[target]/1e3, 0.05)
			if i == 0 {
				v *= 1.15
			}
			t.Phases = append(t.Phases, result.Phase{Name: "exec", Duration: seconds(v)})
			record(t, "Exec", v)
		}
	}
}

func (s *sampler) pause(block int) {
	const name, params = "operations.container.pause", "repeats=5"
	s.skip(name, params, native, "pause: a bare process has no container to freeze", block)
	base := map[string]float64{runc: 9.1, crun: 3.2, runsc: 11.4}
	for _, target := range s.order() {
		if target == native {
			continue
		}
		t := s.trial(name, params, target, block)
		if target == runsc && block >= 2 {
			switch {
			case block <= 3:
				t.Status, t.Reason = result.Timeout, "resume took longer than its limit of 30s"
			case block == 4:
				t.Status, t.Reason = result.Skipped, "given up after 2 consecutive trials without success"
			default:
				s.run.Trials = s.run.Trials[:len(s.run.Trials)-1]
			}
			continue
		}
		for range 5 {
			record(t, "Pause", s.noisy(base[target]/1e3, 0.04))
			record(t, "Resume", s.noisy(base[target]/1e3*0.94, 0.04))
		}
	}
}

func (s *sampler) scalability(block int) {
	const name, params, n = "scalability.runtime.5", "mode=sequential", 5
	base := map[string][2]float64{native: {0.95, 0.4}, runc: {25.4, 15}, crun: {8.2, 7.1}, runsc: {107, 54}}
	for _, target := range s.order() {
		t := s.trial(name, params, target, block)
		var total, destroy float64
		for i := range n {
			growth := 1 + 0.02*float64(i)
			if target == runsc {
				growth = 1 + 0.09*float64(i)
			}
			start := s.noisy(base[target][0]/1e3*growth, 0.04)
			gone := s.noisy(base[target][1]/1e3, 0.05)
			record(t, "StartLatency", start)
			record(t, "FirstInstruction", start*1.03)
			record(t, "DestroyLatency", gone)
			total, destroy = total+start, destroy+gone
		}
		record(t, "TotalTime", total)
		record(t, "DestroyTime", destroy)
		record(t, "HostCPU", s.noisy(total*1.4, 0.04))
		record(t, "HostMemory", math.Round(s.noisy(base[target][0]*2*(1<<20), 0.01)))
	}
}

func (s *sampler) unixbench(block int) {
	const name, params = "performance.syscall.unixbench", "copies=1"
	base := map[string]float64{native: 1.62e6, runc: 1.61e6, crun: 1.62e6, runsc: 3.4e5}
	for _, target := range s.order() {
		t := s.trial(name, params, target, block)
		v := s.noisy(base[target], 0.012)
		if target == runc && block > 0 {
			v *= 1 - 0.012*float64(block) // it drifts
		}
		record(t, "LoopsPerSecond", v)
		record(t, "Index", v/1500)
	}
}

// calls are the system calls of performance.syscall.latency with their time in ns on native.
var calls = []struct {
	name string
	ns   float64
}{
	{"getpid", 61},
	{"getuid", 60},
	{"umask", 64},
	{"clock_gettime", 71},
	{"read", 98},
	{"write", 104},
	{"pread", 112},
	{"lseek", 66},
	{"dup_close", 171},
	{"fstat", 151},
	{"stat", 412},
	{"open_close", 724},
	{"mmap_munmap", 812},
	{"pipe_roundtrip", 3_400},
	{"futex_wake", 83},
	{"sched_yield", 231},
	{"nanosleep", 52_800},
	{"socketpair", 1_890},
	{"fork_wait", 61_000},
	{"getdents", 1_120},
}

func (s *sampler) syscalls(block int) {
	const name, params = "performance.syscall.latency", "calls=100000"
	for _, target := range s.order() {
		t := s.trial(name, params, target, block)
		for i, c := range calls {
			v := c.ns * 1e-9
			switch target {
			case runsc:
				v *= max(1.1, 50/(1+c.ns/300)) * (1 + 0.05*float64(i%3))
			case runc:
				v *= 1.012
			}
			record(t, c.name, s.noisy(v, 0.02))
		}
	}
}

func (s *sampler) stream(block int) {
	const name, params = "performance.memory.stream", "size=64MiB"
	for _, target := range s.order() {
		t := s.trial(name, params, target, block)
		for i, metric := range []string{"Copy", "Scale", "Add", "Triad"} {
			v := (12.1 - 0.4*float64(i)) * 1e9
			if target == runsc {
				v *= 0.93
			}
			record(t, metric, s.noisy(v, 0.015))
		}
	}
}

func (s *sampler) blog(block int) {
	const name, params = "performance.disk.blog", blogParams
	base := map[string]float64{native: 1840, runc: 1790, crun: 1815, runsc: 402}
	for _, target := range s.order() {
		t := s.trial(name, params, target, block)
		record(t, "Read", math.Round(s.noisy(base[target]*31, 0.3)))
		record(t, "Write", math.Round(s.noisy(base[target], 0.13)))
	}
}

// describe adds the descriptions of the benchmarks.
func (s *sampler) describe() {
	metric := func(unit result.Unit, better result.Direction, series bool, names ...string) []result.Metric {
		var all []result.Metric
		for _, n := range names {
			all = append(all, result.Metric{Name: n, Unit: unit, Better: better, Series: series, Help: fmt.Sprintf("what %s says", n)})
		}
		return all
	}
	with := func(lists ...[]result.Metric) []result.Metric {
		var all []result.Metric
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	host := with(metric(result.Seconds, result.Lower, false, "HostCPU"), metric(result.Bytes, result.Lower, false, "HostMemory"))
	for i := range host {
		host[i].Optional = true
	}
	var names []string
	for _, c := range calls {
		names = append(names, c.name)
	}
	s.run.Bench = []result.Benchmark{
		{
			Name: lifecycle, Summary: "create, start, kill and delete one container",
			Source:  "espe table 1 and figure 5; nishimura tables 3 and 4; wang section 5.6",
			Metrics: with(metric(result.Seconds, result.Lower, false, "Create", "Run", "CreateAndRun", "Destroy", "FirstInstruction"), host),
		},
		{
			Name: "operations.container.exec", Summary: "run a further process in a running container, to its end",
			Source: "peers (bucketbench, critest)", Metrics: metric(result.Seconds, result.Lower, true, "Exec"),
		},
		{
			Name: "operations.container.pause", Summary: "freeze and thaw a running container",
			Source: "peers (bucketbench)", Metrics: metric(result.Seconds, result.Lower, true, "Pause", "Resume"),
		},
		{
			Name: "scalability.runtime.5", Summary: "start 5 long-running containers, then destroy them", Source: "espe figure 6; wang figure 17",
			Metrics: with(metric(result.Seconds, result.Lower, false, "TotalTime", "DestroyTime"),
				metric(result.Seconds, result.Lower, true, "StartLatency", "FirstInstruction", "DestroyLatency"), host),
		},
		{
			Name: "performance.syscall.unixbench", Summary: "the UnixBench mix: close(dup), getpid, getuid, umask", Source: "nishimura; wang figure 15",
			Metrics: with(metric(result.PerSecond, result.Higher, false, "LoopsPerSecond"), metric(result.Score, result.Higher, false, "Index")),
		},
		{
			Name: "performance.syscall.latency", Summary: "the time of single system calls", Source: "peers",
			Metrics: metric(result.Seconds, result.Lower, false, names...),
		},
		{
			Name: "performance.memory.stream", Summary: "memory bandwidth by four kernels", Source: "wang figure 8 (RAMspeed)",
			Metrics: metric(result.BytesPerSecond, result.Higher, false, "Copy", "Scale", "Add", "Triad"),
		},
		{
			Name: "performance.disk.blog", Summary: "concurrent readers and writers of small files", Source: "wang table 2 (Blogbench)",
			Metrics: metric(result.Score, result.Higher, false, "Read", "Write"),
		},
	}
}
