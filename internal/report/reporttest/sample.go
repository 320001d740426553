// Package reporttest makes runs for the tests of reports. Its numbers are invented, but have the size of real ones. The same
// seed gives the same run. The directory data has the parts of the runs that are constant.
package reporttest

import (
	"cmp"
	"embed"
	"encoding/json"
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
	s := newSampler("01K9Z0TOUCHSTONE0SAMPLE000", "quick", "sample.json")
	s.run.Targets = append(s.run.Targets, result.Target{Name: youki, Unavailable: notFound})
	s.skip(lifecycle, "", youki, notFound, -1)
	s.skip("performance.disk.blog", blogParams, youki, notFound, -1)
	for block := -1; block < blocks; block++ {
		s.lifecycle(block)
		s.exec(block)
		s.pause(block)
		s.scalability(block)
		s.unixbench(block)
		s.measure("", block)
	}
	s.fail()
	describe(&s.run) // describes the roles of targets and metrics
	return s.run
}

// fail records the failed calls behind the failed trials of runsc, and a first container that failed.
func (s *sampler) fail() {
	for i := range s.run.Targets {
		if s.run.Targets[i].Name == runsc {
			s.run.Targets[i].FailedTries = 1
		}
	}
	for i := range s.run.Trials {
		switch t := &s.run.Trials[i]; {
		case t.Status == result.Failed && t.Benchmark == lifecycle:
			t.FailedCalls = map[string]int{"delete": 1}
		case t.Status == result.Timeout:
			t.FailedCalls = map[string]int{"resume": 1}
		}
	}
}

// Small is a run of two targets with one benchmark, for golden files.
func Small() result.Run {
	s := newSampler("01K9Z0TOUCHSTONE0SMALL0000", "small", "sample.json")
	s.run.Targets = s.run.Targets[:2]
	for block := -1; block < blocks; block++ {
		s.lifecycle(block)
	}
	s.run.Trials[5].Host.Marks = []string{"programs waited for I/O 14.2 % of the time"}
	s.run.Bench = s.run.Bench[:1]
	describe(&s.run)
	return s.run
}

// Stated is Small with results in words, which differ between the trials of oci/runc.
func Stated() result.Run {
	run := Small()
	run.Bench[0].Statements = []string{"outcome", "words", "never recorded"}
	for i := range run.Trials {
		t := &run.Trials[i]
		t.Conditions = map[string]string{"cpus": "2-3", "outcome": "runs"}
		if t.Target == "oci/runc" && t.Block != 3 {
			t.Conditions["outcome"], t.Conditions["words"] = "exec format error", "exec /init: exec format error"
		}
	}
	return run
}

// Worded is Stated without a value on any target: all metrics are optional.
func Worded() result.Run {
	run := Stated()
	for i := range run.Bench[0].Metrics {
		run.Bench[0].Metrics[i].Optional = true
	}
	for i := range run.Trials {
		run.Trials[i].Samples = nil
	}
	return run
}

// Suite is a run of the whole performance suite on seven targets, with some thirty benchmarks, all units, different conditions,
// broken limits and benchmarks that every target skips.
func Suite() result.Run {
	s := newSampler("01K9Z0TOUCHSTONE0SUITE0000", "standard", "suite.json")
	for block := -1; block < blocks; block++ {
		s.measure("", block)
	}
	describe(&s.run)
	return s.run
}

// sampler makes the trials of a run.
type sampler struct {
	run      result.Run
	programs []program
	rand     *rand.Rand
	at       time.Time
}

//go:embed data
var files embed.FS

// load decodes a file of data into a value, over what the value has.
func load(file string, target any) {
	data, err := files.ReadFile("data/" + file)
	if err != nil {
		panic(err)
	}
	decode(data, target)
}

func decode(data []byte, target any) {
	if err := json.Unmarshal(data, target); err != nil {
		panic(err)
	}
}

// newSampler begins a run with the targets, benchmarks and programs of a file.
func newSampler(id, name, file string) *sampler {
	s := &sampler{rand: rand.New(rand.NewPCG(20261120, 4))}
	load("run.json", &s.run)
	load(file, &s.run)
	load(file, &struct{ Programs *[]program }{&s.programs})
	s.run.ID, s.run.Name, s.at = id, name, s.run.Started
	s.run.Ended = s.run.Started.Add(171 * time.Second)
	s.run.Plan = "version: 1\nname: " + name + "\nblocks: 10\nwarmup: 1\nbudget: 3m\nseed: 8213640917\n"
	for _, b := range s.run.Bench {
		for i, m := range b.Metrics {
			b.Metrics[i].Help = cmp.Or(m.Help, "what "+m.Name+" says")
		}
	}
	return s
}

// program is a benchmark with parameters. Its metrics have one value in each trial.
type program struct {
	Name, Params string
	// Skipped is the reason why every target skips it.
	Skipped    string
	Conditions map[string]byTarget[string]
	Metrics    []struct {
		Name  string
		Value byTarget[float64]
		Noise float64
		// Whole is set if the values are whole numbers.
		Whole bool
	}
}

// byTarget has a value for some targets, and under "" the value of the others.
type byTarget[T any] map[string]T

func (b byTarget[T]) on(target string) T {
	if v, has := b[target]; has {
		return v
	}
	return b[""]
}

// measure adds the trials of all programs, or of those with a name.
func (s *sampler) measure(name string, block int) {
	for _, p := range s.programs {
		if name != "" && p.Name != name {
			continue
		}
		for _, target := range s.order() {
			if p.Skipped != "" {
				s.skip(p.Name, p.Params, target, p.Skipped, block)
				continue
			}
			t := s.trial(p.Name, p.Params, target, block)
			t.Conditions = map[string]string{}
			for condition, value := range p.Conditions {
				t.Conditions[condition] = value.on(target)
			}
			for _, m := range p.Metrics {
				v := s.noisy(m.Value.on(target), m.Noise)
				if m.Whole {
					v = math.Round(v)
				}
				record(t, m.Name, v)
			}
		}
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
		offset := time.Millisecond
		for i, phase := range []string{"create", "start", "kill", "exit", "delete"} {
			d[i] = s.noisy(c[i]/1e3, 0.03)
			t.Phases = append(t.Phases, result.Phase{Name: phase, Start: offset, Duration: seconds(d[i])})
			offset += seconds(d[i])
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
			end := s.noisy(base[target][1]/1e3, 0.05)
			record(t, "StartLatency", start)
			record(t, "FirstInstruction", start*1.03)
			record(t, "DestroyLatency", end)
			total, destroy = total+start, destroy+end
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
