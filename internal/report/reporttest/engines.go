package reporttest

import (
	"math"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	podmanCrun  = "podman/crun"
	kata        = "containerd/kata@hypervisor=qemu"
	noYouki     = "oci/youki"
	crioRunsc   = "runsc blocks under conmon in a CRI pod; use containerd with containerd-shim-runsc-v1"
	noInterface = "pause: CRI has no call to freeze a container"
)

// Engines is a run of five engines, 22 targets in all, for layers and components. Engines of CRI have steps and a sandbox, which
// for one runtime does the work of the bare runtime's create. One runtime has no bare target, one engine is faster than the
// bare runtime, one layer has no shown addition, and some cells are skipped.
func Engines() result.Run {
	s := newSampler("01K9Z0TOUCHSTONE0ENGINES00", "engines", "sample.json")
	s.run.Targets = s.run.Targets[:1]
	for _, engine := range []string{"oci", "containerd", "crio", "docker", "podman"} {
		for _, runtime := range []string{"runc", "crun", "youki", "runsc@platform=ptrace", "runsc@platform=systrap"} {
			t := result.Target{Name: engine + "/" + runtime, Version: engine + " 1.0, " + runtime, Isolation: "shared kernel", Cgroup: "v2"}
			switch {
			case engine == "podman" && runtime != "runc" && runtime != "crun":
				continue
			case engine == "crio" && strings.HasPrefix(runtime, "runsc"):
				t.Unavailable = crioRunsc
			case t.Name == noYouki:
				t.Unavailable = notFound
			}
			s.run.Targets = append(s.run.Targets, t)
		}
	}
	s.run.Targets = append(s.run.Targets, result.Target{Name: kata, Version: "containerd 1.0, kata", Isolation: "virtual machine", Cgroup: "v2"})
	for block := -1; block < blocks; block++ {
		for _, target := range s.order() {
			s.layeredLifecycle(block, target)
		}
		for _, target := range s.order() {
			s.layeredPause(block, target)
		}
	}
	s.run.Bench = []result.Benchmark{s.run.Bench[0], s.run.Bench[2]}
	var components []result.Metric
	load("engines.json", &components)
	s.run.Bench[0].Metrics = append(s.run.Bench[0].Metrics, components...)
	describe(&s.run)
	return s.run
}

// bareStart is the time of a bare runtime to create and start a container, in ms.
func bareStart(runtime string) float64 {
	for prefix, ms := range map[string]float64{"runc": 25, "crun": 8, "youki": 30, "runsc@platform=ptrace": 140, "runsc@platform=systrap": 106, "kata": 620} {
		if strings.HasPrefix(runtime, prefix) {
			return ms
		}
	}
	return 1
}

// cost is the times of a lifecycle in ms. With steps it has the steps of CRI.
type cost struct {
	create, start, sandbox, destroy float64
	steps                           bool
}

func costOf(target string) cost {
	engine, runtime, _ := strings.Cut(target, "/")
	bare := bareStart(runtime)
	c := cost{create: 0.7 * bare, start: 0.3 * bare, destroy: 0.6 * bare}
	switch engine {
	case "containerd":
		c = cost{create: 0.7*bare + 60, start: 0.3*bare + 12, sandbox: bare + 190, destroy: bare + 90, steps: true}
		if strings.HasPrefix(runtime, "runsc") { // its kernel starts in the sandbox already
			c.create, c.start = 22, 14
		}
	case "crio":
		c = cost{create: 0.7*bare + 70, start: 0.3*bare + 9, sandbox: 130, destroy: bare + 60, steps: true}
	case "docker":
		c = cost{create: 48, start: bare + 150, destroy: bare + 80}
	case "podman":
		c = cost{create: 0.7 * bare, start: 0.3 * bare, destroy: bare + 60}
		if target == podmanCrun {
			c.create -= 2.5
		}
	}
	return c
}

// layeredLifecycle adds a trial of a lifecycle. All trials of a block share a disturbance.
func (s *sampler) layeredLifecycle(block int, target string) {
	t := s.trial(lifecycle, "", target, block)
	c := costOf(target)
	factor := 1 + 0.05*math.Sin(float64(block))
	offset := time.Millisecond
	phase := func(name string, ms float64, steps ...string) float64 {
		d := s.noisy(ms*factor/1e3, 0.02)
		t.Phases = append(t.Phases, result.Phase{Name: name, Start: offset, Duration: seconds(d)})
		step := offset
		for _, name := range steps {
			share := d / float64(len(steps)) * 0.97
			switch name {
			case "create/RunPodSandbox":
				share = d * c.sandbox / ms
			case "create/CreateContainer":
				share = d * (0.99 - c.sandbox/ms)
			}
			t.Phases = append(t.Phases, result.Phase{Name: name, Start: step, Duration: seconds(share)})
			_, metric, _ := strings.Cut(name, "/")
			record(t, metric, share)
			step += seconds(share)
		}
		offset += seconds(d)
		return d
	}
	var inCreate, inStart, inKill, inDelete []string
	if c.steps {
		inCreate = []string{"create/RunPodSandbox", "create/CreateContainer"}
		inStart = []string{"start/StartContainer"}
		inKill = []string{"kill/StopContainer"}
		inDelete = []string{"delete/RemoveContainer", "delete/StopPodSandbox", "delete/RemovePodSandbox"}
	}
	create := phase("create", c.create+c.sandbox, inCreate...)
	start := phase("start", c.start, inStart...)
	destroy := phase("kill", 0.3*c.destroy, inKill...) + phase("exit", 0.1*c.destroy) + phase("delete", 0.6*c.destroy, inDelete...)
	record(t, "Create", create)
	record(t, "Run", start)
	record(t, "CreateAndRun", create+start)
	record(t, "Destroy", destroy)
	record(t, "FirstInstruction", (create+start)*1.02)
	s.components(t, c)
}

// components records the costs of a lifecycle, by component and together.
func (s *sampler) components(t *result.Trial, c cost) {
	var cpu float64
	engine, _, _ := strings.Cut(t.Target, "/")
	for _, part := range []struct {
		name     string
		on       string // engines
		cpu, pss float64
	}{
		{"Daemon", "containerd crio docker", 0.12 * (c.create + c.sandbox), 48},
		{"Engine", "podman", 61, 42},
		{"Shim", "containerd docker", 14, 14.5},
		{"Runtime", "oci containerd crio docker podman", 1.1 * c.start, 0},
		{"Monitor", "crio podman", 3, 1.2},
		{"Sandbox", "containerd crio", 2, 0.7},
		{"Network", "containerd crio docker", 31, 0},
		{"Container", "native oci containerd crio docker podman", 0.8, 0.5},
		{"Other", "docker podman", 2.2, 0},
	} {
		if !strings.Contains(part.on, engine) {
			continue
		}
		v := s.noisy(part.cpu/1e3, 0.05)
		cpu += v
		record(t, "HostCPU"+part.name, v)
		if part.pss > 0 {
			record(t, "PSS"+part.name, math.Round(s.noisy(part.pss*(1<<20), 0.01)))
		}
	}
	record(t, "HostCPU", cpu)
}

// layeredPause adds a trial of a benchmark that engines of CRI and native skip.
func (s *sampler) layeredPause(block int, target string) {
	const name, params = "operations.container.pause", "repeats=5"
	engine, runtime, _ := strings.Cut(target, "/")
	switch engine {
	case native:
		s.skip(name, params, target, "pause: a bare process has no container to freeze", block)
	case "containerd", "crio":
		s.skip(name, params, target, noInterface, block)
	default:
		t := s.trial(name, params, target, block)
		for range 5 {
			record(t, "Pause", s.noisy(bareStart(runtime)/3e3, 0.04))
			record(t, "Resume", s.noisy(bareStart(runtime)/3.2e3, 0.04))
		}
	}
}
