package plan

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/target"
)

// document is the YAML form of a plan, with keys in canonical order.
type document struct {
	Version    int            `yaml:"version"`
	Name       string         `yaml:"name"`
	Targets    []string       `yaml:"targets,omitempty"`
	Baseline   string         `yaml:"baseline,omitempty"`
	Benchmarks []entry        `yaml:"benchmarks,omitempty"`
	Parameters Parameters     `yaml:"parameters"`
	Blocks     int            `yaml:"blocks"`
	Warmup     int            `yaml:"warmup"`
	Precision  string         `yaml:"precision,omitempty"`
	MaxBlocks  int            `yaml:"max-blocks,omitempty"`
	Budget     string         `yaml:"budget,omitempty"`
	Timeout    timeout        `yaml:"timeout"`
	Seed       *uint64        `yaml:"seed,omitempty"`
	Runtimes   map[string]any `yaml:"runtimes,omitempty"`
	Engines    *engines       `yaml:"engines,omitempty"`
	Pinning    *pinning       `yaml:"pinning,omitempty"`
	DropCaches *bool          `yaml:"drop-caches,omitempty"`
	Workloads  []workloadYAML `yaml:"workloads,omitempty"`
	Export     string         `yaml:"export,omitempty"`
}

type entry struct {
	Name   string            `yaml:"name"`
	Image  string            `yaml:"image,omitempty"`
	Params map[string]string `yaml:"params,omitempty"`
}

// runtime is the YAML form of a runtime that is more than a path.
type runtime struct {
	Path    string            `yaml:"path,omitempty"`
	Type    string            `yaml:"type,omitempty"`
	Options map[string]string `yaml:"options,omitempty"`
}

type engines struct {
	Managed  bool              `yaml:"managed,omitempty"`
	Sockets  map[string]string `yaml:"sockets,omitempty"`
	Binaries map[string]string `yaml:"binaries,omitempty"`
}

type pinning struct {
	Workload   string `yaml:"workload,omitempty"`
	Engines    string `yaml:"engines,omitempty"`
	Touchstone string `yaml:"touchstone,omitempty"`
}

type workloadYAML struct {
	Name     string            `yaml:"name"`
	Summary  string            `yaml:"summary,omitempty"`
	Image    string            `yaml:"image"`
	Args     []string          `yaml:"argv"`
	Env      map[string]string `yaml:"env,omitempty"`
	Writable bool              `yaml:"writable,omitempty"`
	Network  string            `yaml:"network,omitempty"`
	Parse    []metricYAML      `yaml:"parse"`
}

type metricYAML struct {
	Metric string  `yaml:"metric"`
	Regex  string  `yaml:"regex,omitempty"`
	JSON   string  `yaml:"json,omitempty"`
	Unit   string  `yaml:"unit"`
	Better string  `yaml:"better"`
	Scale  float64 `yaml:"scale,omitempty"`
}

type timeout struct {
	Trial string `yaml:"trial"`
	Call  string `yaml:"call"`
}

// YAML spells a plan canonically in Touchstone's format, with every default. Parse returns the same plan from it (except Notes and
// Hints), and equal plans have equal spellings. A run keeps this form and is resumed from it.
func (p Plan) YAML() []byte {
	d := document{
		Version:    Version,
		Name:       p.Name,
		Parameters: p.Parameters,
		Blocks:     p.Blocks,
		Warmup:     p.Warmup,
		MaxBlocks:  p.MaxBlocks,
		Timeout:    timeout{formatDuration(p.Timeout.Trial), formatDuration(p.Timeout.Call)},
		Seed:       p.Seed,
		DropCaches: p.DropCaches,
		Workloads:  workloadsYAML(p.Workloads),
		Export:     p.Export,
	}
	for _, t := range p.Targets {
		d.Targets = append(d.Targets, t.String())
	}
	for name, r := range p.Runtimes {
		put(&d.Runtimes, name, runtimeYAML(r))
	}
	if e := p.Engines; e.Managed || len(e.Sockets)+len(e.Binaries) > 0 {
		d.Engines = &engines{e.Managed, e.Sockets, e.Binaries}
	}
	if p.Pinning != (Pinning{}) {
		pinned := pinning(p.Pinning)
		d.Pinning = &pinned
	}
	if p.Baseline.Engine != "" {
		d.Baseline = p.Baseline.String()
	}
	for _, i := range p.Benchmarks {
		d.Benchmarks = append(d.Benchmarks, entry{i.Name, i.Image, i.Params})
	}
	if p.Precision != 0 {
		d.Precision = formatPercent(p.Precision)
	}
	if p.Budget != 0 {
		d.Budget = formatDuration(p.Budget)
	}
	out, err := yaml.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("a plan of plain texts and numbers cannot be written as YAML: %v", err))
	}
	return out
}

// runtimeYAML converts a runtime for YAML: to its path if it has nothing else.
func runtimeYAML(r target.Runtime) any {
	if r.Type == "" && len(r.Options) == 0 {
		return r.Path
	}
	out := runtime{Path: r.Path, Type: r.Type}
	for _, o := range r.Options {
		put(&out.Options, o.Name, o.Value)
	}
	return out
}
