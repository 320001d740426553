package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/custom"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Catalogue is the source of benchmarks for plans.
type Catalogue interface {
	// All lists the benchmarks for a plan without names, in display order.
	All() []bench.Benchmark
	// Lookup finds a benchmark by its full name. It also knows benchmarks with a number in their name that All omits, such as
	// scalability.runtime.37.
	Lookup(name string) (bench.Benchmark, bool)
}

// Work is one benchmark with all of its parameters.
type Work struct {
	Benchmark bench.Benchmark
	Params    bench.Params
	// Limits are the limits of its containers.
	Limits engine.Resources
	// Monitor is the interval of the samples of memory and CPU; 0 takes none, unless the benchmark itself has Monitor.
	Monitor time.Duration
	// Blocks is the number of measured blocks; 0 stands for the number of the plan.
	Blocks int
}

// Needs are the requirements of the benchmark with its parameters.
func (w Work) Needs() bench.Needs {
	if w.Benchmark.Needs == nil {
		return bench.Needs{}
	}
	return w.Benchmark.Needs(w.Params)
}

// Resolve finds the benchmarks of the plan and fills in their parameters. Items keep their order; the benchmarks of one item have
// the order of the catalogue. A benchmark that is selected twice with the same parameters and limits runs once. The error is an *Error, or
// several of them joined.
func (p Plan) Resolve(catalogue Catalogue) ([]Work, error) {
	paper := p.Parameters == PaperValues
	benchmarks, err := p.withWorkloads(catalogue)
	if err != nil {
		return nil, err
	}
	items := p.Benchmarks
	if items == nil {
		for _, b := range benchmarks {
			items = append(items, Item{Name: b.Name})
		}
	}
	var (
		work     []Work
		problems problems
		keys     = map[string]bool{}
	)
	for _, item := range items {
		if problems.full() {
			break
		}
		selection, ok := item.selects(catalogue, benchmarks)
		switch {
		case selection != nil:
		case ok:
			problems.add(item.at, item.Name, problem{"no benchmark of " + quote(item.Name) + " has programs from the image " + item.Image, "leave image out"})
		default:
			problems.add(item.at, item.Name, unknown(item.Name, benchmarks))
		}
		item.idle(selection, &problems)
		for _, b := range selection {
			params, ok := item.resolve(b, paper, &problems)
			if !ok {
				break // the other benchmarks of the group have the same error
			}
			w := Work{b, params, p.limitsFor(item, b), cmp.Or(item.Monitor, p.Monitor).Memory, item.Blocks}
			if key := b.Name + " " + w.Key(); !keys[key] {
				keys[key] = true
				work = append(work, w)
			}
		}
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	monitored(work)
	return work, nil
}

// withWorkloads returns the benchmarks of the catalogue, followed by the plan's workloads. A workload must not have a name from the
// catalogue, since its results would look like the results of another program.
func (p Plan) withWorkloads(catalogue Catalogue) ([]bench.Benchmark, error) {
	var problems problems
	benchmarks := slices.Clone(catalogue.All())
	for _, w := range p.Workloads {
		if _, exists := catalogue.Lookup(w.Name); exists {
			problems.add(w.at, w.Name, problem{"workloads: " + quote(w.Name) + " is a benchmark of Touchstone's", "give the workload another name"})
			continue
		}
		b, err := custom.Benchmark(w.Workload)
		if err != nil {
			problems.add(w.at, w.Name, problem{"workloads: " + printable(err.Error()), ""})
			continue
		}
		benchmarks = append(benchmarks, b)
	}
	return benchmarks, problems.err()
}

// selects returns the benchmarks that an item selects. exists reports whether any benchmark has the item's name.
func (i Item) selects(catalogue Catalogue, benchmarks []bench.Benchmark) (selection []bench.Benchmark, exists bool) {
	var matches []bench.Benchmark
	for _, b := range benchmarks {
		if bench.Matches(i.Name, b.Name) {
			matches = append(matches, b)
		}
	}
	if matches == nil {
		if b, ok := catalogue.Lookup(i.Name); ok {
			matches = append(matches, b)
		}
	}
	for _, b := range matches {
		if i.has(b) {
			selection = append(selection, b)
		}
	}
	return selection, matches != nil
}

// has reports whether the programs of a benchmark come from the item's image.
func (i Item) has(b bench.Benchmark) bool {
	image, ours := images()[i.Image]
	return !ours || b.Image == image
}

// resolve fills in the parameters of one benchmark. It first tries each given parameter alone, to report each error at its
// location.
func (i Item) resolve(b bench.Benchmark, paper bool, problems *problems) (bench.Params, bool) {
	right := true
	for _, name := range slices.Sorted(maps.Keys(i.Params)) {
		value := i.Params[name]
		_, err := b.Resolve(bench.Params{name: value}, paper)
		if err == nil {
			continue
		}
		right = false
		location, ok := i.paramAt[name]
		if !ok {
			location = i.at
		}
		problems.add(location, value, problem{err.Error(), nearParam(b, name)})
	}
	if !right {
		return nil, false
	}
	params, err := b.Resolve(i.Params, paper)
	if err != nil {
		problems.add(i.at, i.Name, problem{err.Error(), ""})
		return nil, false
	}
	return params, true
}

// nearParam suggests a name for an unknown parameter.
func nearParam(b bench.Benchmark, name string) string {
	var names []string
	for _, p := range b.Params {
		if p.Name == name {
			return ""
		}
		names = append(names, p.Name)
	}
	return didYouMean(name, names, "")
}

// unknown returns the problem of a filter that selects nothing, with a similar name as advice.
func unknown(name string, benchmarks []bench.Benchmark) problem {
	var names []string
	for _, b := range benchmarks {
		for index, c := range b.Name + "." {
			if c == '.' {
				names = append(names, b.Name[:index])
			}
		}
	}
	slices.Sort(names)
	return problem{
		"no benchmark or group has the name " + quote(name),
		didYouMean(name, slices.Compact(names), "touchstone list shows all names; a filter consists of whole components of a name"),
	}
}

// Pin returns p with all defaults decided: the targets found, the work from Resolve, and the seed. A pinned plan has the same
// meaning on another day, with more targets or other quick values.
func (p Plan) Pin(targets []target.Target, work []Work, seed uint64) Plan {
	baseline := p.Baseline
	p = p.Only(targets, work)
	p.Baseline = baseline
	p.Seed = &seed
	return p
}
