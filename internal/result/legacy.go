package result

import (
	"slices"
	"strings"
	"unicode"
)

// Describe completes a run whose targets, benchmarks and metrics do not describe themselves, because an earlier version
// recorded it. It leaves other runs as they are. Only here does a reader conclude anything from names: those versions
// gave no other names the same meanings.
func Describe(run *Run) {
	if slices.ContainsFunc(run.Targets, func(t Target) bool { return t.Kind != "" }) {
		return
	}
	run.Targets, run.Bench = slices.Clone(run.Targets), slices.Clone(run.Bench) // the caller's stay
	for i := range run.Targets {
		run.Targets[i].describe()
	}
	for i := range run.Bench {
		run.Bench[i].describe()
	}
}

// describe concludes the kind and the runtime from "engine/runtime@options".
func (t *Target) describe() {
	engine, runtime, driven := strings.Cut(t.Name, "/")
	switch {
	case t.Name == "native":
		t.Kind = KindNative
	case !driven || engine == "" || runtime == "":
	case engine == "oci":
		t.Kind, t.Runtime = KindRuntime, runtime
	default:
		t.Kind, t.Runtime = KindEngine, runtime
	}
}

// legacyPhrases are the phrases of metrics by benchmark, with # for the last component of the benchmark's name.
var legacyPhrases = []struct{ benchmark, metric, phrase string }{
	{"operations.container.lifecycle", "CreateAndRun", "creates and starts a container in"},
	{"operations.container.lifecycle", "FirstInstruction", "brings a container to its first instruction in"},
	{"operations.container.lifecycle", "Destroy", "destroys a container in"},
	{"operations.container.exec", "Exec", "runs a further process in a container in"},
	{"operations.container.pause", "Pause", "pauses a container in"},
	{"operations.service.ready", "Ready", "answers the first request after"},
	{"scalability.runtime", "TotalTime", "starts # containers in"},
	{"scalability.runtime", "DestroyTime", "destroys # containers in"},
}

// legacyLayers are the roles of metrics of operations.container.lifecycle.
var legacyLayers = map[string]Layer{"CreateAndRun": LayerTotal, "HostCPU": LayerTotal, "RunPodSandbox": LayerSandbox}

// legacyGroups are the groups of metrics named by a prefix and a component, such as HostCPUShim.
var legacyGroups = map[string]string{"HostCPU": "CPU time by component", "PSS": "Memory by component"}

func (b *Benchmark) describe() {
	b.Phases = strings.HasPrefix(b.Name, "operations.")
	if strings.HasPrefix(b.Name, "scalability.") {
		b.Place = "number of the container, in order of start"
	}
	b.Metrics = slices.Clone(b.Metrics)
	last := b.Name[strings.LastIndexByte(b.Name, '.')+1:]
	for i := range b.Metrics {
		m := &b.Metrics[i]
		for _, p := range legacyPhrases {
			if m.Name == p.metric && (b.Name == p.benchmark || strings.HasPrefix(b.Name, p.benchmark+".")) {
				m.Phrase = strings.Replace(p.phrase, "#", last, 1)
			}
		}
		if b.Name == "operations.container.lifecycle" {
			m.Layer = legacyLayers[m.Name]
		}
		if b.Name == "performance.syscall.unixbench" && m.Name == "Index" {
			m.DerivedFrom = "LoopsPerSecond"
		}
		for prefix, group := range legacyGroups {
			if rest, has := strings.CutPrefix(m.Name, prefix); has && rest != "" && unicode.IsUpper(rune(rest[0])) {
				m.Group, m.Component = group, strings.ToLower(rest)
			}
		}
	}
}
