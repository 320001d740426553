package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// PodShare is the share of the pods whose memory the overhead of a class bounds.
const PodShare = 0.95

// Class is the content of a runtime class of Kubernetes for a target.
type Class struct {
	// Target is the ranked target, and Measured the target of a CRI engine with the same runtime whose pods were measured; empty without one.
	Target   result.Target
	Measured string
	// Handler is the name of the class and of the handler in the engine.
	Handler string
	// Memory is the upper bound of the memory of one more pod, in bytes: PodShare of the pods need no more. It is 0 without a bound, for Reason.
	Memory float64
	Reason string
	// Command measures the bound; empty if there is one.
	Command string
	// Trials are the trials of Measured, each with Pods pods. In a fleet Nodes is the number of nodes in their place.
	Trials, Pods, Nodes int
	// IsWhole is set if the bound has the memory of the kernel too.
	IsWhole bool
	// Parts are the medians by component.
	Parts []Part
}

// Part is the memory of one component of a pod.
type Part struct {
	Component string
	Bytes     float64
}

// podBenchmark has the memory of pods that run at the same time. The two series are the memory of all pods so far: of the host with the kernel's memory,
// and of processes alone.
const (
	podBenchmark = "density.memory"
	hostSeries   = "Memory"
	pssSeries    = "PSS"
)

// Engines of Kubernetes.
const (
	Containerd = "containerd"
	CRIO       = "crio"
)

// runtime is the runtime of the target with its options, such as "runsc@platform=kvm".
func (c *Class) runtime() string {
	_, runtime, _ := strings.Cut(c.Target.Name, "/")
	return cmp.Or(c.Target.Runtime, runtime)
}

// Name is the name of the runtime, without its options.
func (c *Class) Name() string {
	name, _, _ := strings.Cut(c.runtime(), "@")
	return name
}

// Options are the options of the runtime, such as "platform=kvm".
func (c *Class) Options() []string {
	_, options, ok := strings.Cut(c.runtime(), "@")
	if !ok {
		return nil
	}
	return strings.Split(options, ",")
}

// EngineOf is the engine in the name of a target.
func EngineOf(target string) string {
	name, _, _ := strings.Cut(target, "/")
	return name
}

func isCRI(target string) bool {
	return slices.Contains([]string{Containerd, CRIO, "cri"}, EngineOf(target))
}

// newClass makes the class of a target; nil if no engine of Kubernetes can call it.
func newClass(runs []result.Run, t result.Target, folder string) *Class {
	if !strings.Contains(t.Name, "/") || EngineOf(t.Name) == "fake" {
		return nil
	}
	c := &Class{Target: t}
	runtime := c.runtime()
	c.Handler = handler(runtime)
	var targets []string
	for i := range runs {
		for _, peer := range runs[i].Targets {
			if isCRI(peer.Name) && peer.Unavailable == "" && (peer.Name == t.Name || !isCRI(t.Name) && peer.Runtime == runtime) && !slices.Contains(targets, peer.Name) {
				targets = append(targets, peer.Name)
			}
		}
	}
	for _, name := range targets {
		for i := range runs {
			if c.Memory == 0 {
				c.measure(&runs[i], name)
			}
		}
	}
	if c.Memory > 0 {
		c.Reason = ""
		return c
	}
	c.Reason = cmp.Or(c.Reason, "no run has the memory of pods with this runtime behind containerd or CRI-O ("+podBenchmark+")")
	if len(targets) == 0 {
		targets = []string{Containerd + "/" + runtime}
	}
	c.Command = command("touchstone benchmark", "-t", targets[0], "--filter", podBenchmark, "-n", strconv.Itoa(stats.BoundSamples(PodShare)), folder)
	return c
}

// The benchmark of a fleet with the memory of a pod.
const (
	fleetBenchmark = "pods.density"
	fleetMetric    = "Memory"
)

// ClusterEngine is the engine of targets that are classes of a cluster. Their classes exist.
const ClusterEngine = "k8s"

// newFleetClass makes the class of a target of a fleet; nil for the cluster's default class. The bound is for the memory of a pod on one more node.
func newFleetClass(r *fleet.Report, t result.Target, folder string) *Class {
	_, name, ok := strings.Cut(t.Name, "/")
	if !ok {
		return nil
	}
	c := &Class{Target: t, Handler: name, IsWhole: true}
	c.Memory, c.Nodes = r.NextNode(fleetBenchmark, fleetMetric, t.Name, PodShare)
	if c.Memory > 0 {
		c.Measured = t.Name
		return c
	}
	c.Reason = fmt.Sprintf("%s the memory of a pod (%s in %d blocks), and a bound needs %d", counted(c.Nodes), fleetBenchmark, stats.MinSamples, stats.MinNodes)
	c.Command = command("touchstone cluster run", "-t", t.Name, "--filter", fleetBenchmark, "-n", strconv.Itoa(leastBlocks), folder)
	return c
}

func counted(nodes int) string {
	if nodes == 1 {
		return "1 node has"
	}
	return wording.Counted(nodes, "node") + " have"
}

// handler makes a DNS label of a runtime with its options.
func handler(runtime string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(runtime))
	const limit = 63
	return cmp.Or(strings.Trim(label[:min(len(label), limit)], "-"), "runtime")
}

// measure takes the bound from the trials of a target in a run. The value of a trial is its most expensive pod, so the pods of a trial may depend on each
// other. A lost trial counts as an infinite value.
func (c *Class) measure(run *result.Run, target string) {
	var peaks []float64
	var params *string
	parts := map[string][]float64{}
	isWhole := true
	for i := range run.Trials {
		t := &run.Trials[i]
		if t.Benchmark != podBenchmark || t.Target != target || t.Warmup || t.Status == result.Skipped || params != nil && t.Params != *params {
			continue
		}
		params = &t.Params
		if t.Status != result.OK {
			peaks = append(peaks, math.Inf(1))
			continue
		}
		series := t.Values(hostSeries)
		if len(series) == 0 {
			series, isWhole = t.Values(pssSeries), false
		}
		if len(series) == 0 {
			continue
		}
		peak, sum := 0.0, 0.0
		for _, v := range series {
			peak, sum = max(peak, v-sum), v
		}
		peaks, c.Pods = append(peaks, peak), len(series)
		for _, s := range t.Samples {
			parts[s.Metric] = append(parts[s.Metric], s.Value)
		}
	}
	if len(peaks) == 0 {
		return
	}
	c.Measured, c.Trials, c.IsWhole, c.Parts = target, len(peaks), isWhole, componentsOf(run, parts)
	bound, ok := stats.UpperBound(peaks, PodShare)
	switch {
	case ok:
		c.Memory = bound
	case len(peaks) < stats.BoundSamples(PodShare):
		c.Reason = fmt.Sprintf("%s has %s of %s, and a bound for %.0f %% of the pods needs %d", target, wording.Counted(len(peaks), "trial"), podBenchmark, 100*PodShare, stats.BoundSamples(PodShare))
	default:
		c.Reason = fmt.Sprintf("%s has lost too many trials of %s for a bound", target, podBenchmark)
	}
}

// componentsOf are the medians of the metrics of components.
func componentsOf(run *result.Run, values map[string][]float64) []Part {
	var list []Part
	for _, b := range run.Bench {
		for _, m := range b.Metrics {
			if b.Name == podBenchmark && m.Component != "" && len(values[m.Name]) > 0 {
				list = append(list, Part{m.Component, stats.Median(values[m.Name])})
			}
		}
	}
	return list
}
