package reporttest

import (
	"slices"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// describe completes the targets, benchmarks and metrics of a sample run by their names, as the catalogue would.
func describe(r *result.Run) {
	for i := range r.Targets {
		describeTarget(&r.Targets[i])
	}
	r.Bench = slices.Clone(r.Bench) // runs of several machines share it
	for i := range r.Bench {
		describeBenchmark(&r.Bench[i])
	}
}

// describeTarget derives the kind and the runtime from "engine/runtime@options".
func describeTarget(t *result.Target) {
	engine, runtime, ok := strings.Cut(t.Name, "/")
	switch {
	case t.Name == "native":
		t.Kind = result.KindNative
	case !ok || engine == "" || runtime == "":
	case engine == "oci":
		t.Kind, t.Runtime = result.KindRuntime, runtime
	default:
		t.Kind, t.Runtime = result.KindEngine, runtime
	}
}

// phrases are the phrases of metrics by benchmark, with # for the last component of the benchmark's name.
var phrases = []struct{ benchmark, metric, phrase string }{
	{"operations.container.lifecycle", "CreateAndRun", "creates and starts a container in"},
	{"operations.container.lifecycle", "FirstInstruction", "brings a container to its first instruction in"},
	{"operations.container.lifecycle", "Destroy", "destroys a container in"},
	{"operations.container.exec", "Exec", "runs a further process in a container in"},
	{"operations.container.pause", "Pause", "pauses a container in"},
	{"operations.service.ready", "Ready", "answers the first request after"},
	{"scalability.runtime", "TotalTime", "starts # containers in"},
	{"scalability.runtime", "DestroyTime", "destroys # containers in"},
}

// layers are the roles of metrics of operations.container.lifecycle.
var layers = map[string]result.Layer{"CreateAndRun": result.LayerTotal, "HostCPU": result.LayerTotal, "RunPodSandbox": result.LayerSandbox}

// groups are the groups of metrics named by a prefix and a component, such as HostCPUShim.
var groups = map[string]string{"HostCPU": "CPU time by component", "PSS": "Memory by component"}

func describeBenchmark(b *result.Benchmark) {
	b.Phases = strings.HasPrefix(b.Name, "operations.")
	if strings.HasPrefix(b.Name, "scalability.") {
		b.Place = "number of the container, in order of start"
	}
	b.Metrics = slices.Clone(b.Metrics)
	last := b.Name[strings.LastIndexByte(b.Name, '.')+1:]
	for i := range b.Metrics {
		m := &b.Metrics[i]
		for _, p := range phrases {
			if m.Name == p.metric && (b.Name == p.benchmark || strings.HasPrefix(b.Name, p.benchmark+".")) {
				m.Phrase = strings.Replace(p.phrase, "#", last, 1)
			}
		}
		if b.Name == "operations.container.lifecycle" {
			m.Layer = layers[m.Name]
		}
		m.Consumed = strings.HasPrefix(m.Name, "HostCPU")
		if b.Name == "performance.syscall.unixbench" && m.Name == "Index" {
			m.DerivedFrom = "LoopsPerSecond"
		}
		for prefix, group := range groups {
			if rest, has := strings.CutPrefix(m.Name, prefix); has && rest != "" && unicode.IsUpper(rune(rest[0])) {
				m.Group, m.Component = group, strings.ToLower(rest)
			}
		}
	}
}
