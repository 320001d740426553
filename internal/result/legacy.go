package result

import (
	"slices"
	"strings"
	"unicode"
)

// Rename is a metric of a benchmark that has another name since version 2 of the schema.
type Rename struct{ Benchmark, Old, New string }

// renames lists the metrics of Touchstone's benchmarks that were renamed. Custom workloads cannot have these benchmark names.
func renames() []Rename {
	return []Rename{
		{"limits.cpu.time", "Used", "CPULimitUse"},
		{"limits.cpu.scaling", "Used", "CPULimitUse"},
		{"limits.cpu.scaling", "Behind", "LimitResponse"},
	}
}

// Upgrade brings a run of an earlier schema version to SchemaVersion, in place. Read calls it for documents and the store calls
// it for its rows, so there is one upgrade path. It returns the renamed metrics of the run's benchmarks, for a caller with separate
// samples. A second call changes nothing.
func (r *Run) Upgrade() []Rename {
	r.describe()
	var done []Rename
	for _, rename := range renames() {
		for i := range r.Bench {
			b := &r.Bench[i]
			if b.Name != rename.Benchmark {
				continue
			}
			for j := range b.Metrics {
				if m := &b.Metrics[j]; m.Name == rename.Old {
					m.Name = rename.New
					done = append(done, rename)
				}
			}
		}
	}
	for i := range r.Trials {
		r.Trials[i].rename(done)
	}
	return done
}

// rename renames the metrics of the samples.
func (t *Trial) rename(renames []Rename) {
	for _, rename := range renames {
		if t.Benchmark != rename.Benchmark {
			continue
		}
		for j := range t.Samples {
			if s := &t.Samples[j]; s.Metric == rename.Old {
				s.Metric = rename.New
			}
		}
	}
}

// describe completes the targets, benchmarks and metrics of a run, which did not describe themselves in version 1 of the schema. It
// does not change other runs. Only this function draws conclusions from names: in version 1 no other name has the same meaning.
func (r *Run) describe() {
	if slices.ContainsFunc(r.Targets, func(t Target) bool { return t.Kind != "" }) {
		return
	}
	r.Targets, r.Bench = slices.Clone(r.Targets), slices.Clone(r.Bench) // the caller's stay
	for i := range r.Targets {
		r.Targets[i].describe()
	}
	for i := range r.Bench {
		r.Bench[i].describe()
	}
}

// describe derives the kind and the runtime from "engine/runtime@options".
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
		m.Consumed = strings.HasPrefix(m.Name, "HostCPU")
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
