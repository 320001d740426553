package plan

import (
	"maps"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/custom"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Catalogue is where plans find benchmarks.
type Catalogue interface {
	// All lists the benchmarks that a plan without names measures, in the order
	// in which they are shown.
	All() []bench.Benchmark
	// Lookup finds a benchmark by its full name. It also knows those that All does
	// not list because their name holds a number, such as scalability.runtime.37.
	Lookup(name string) (bench.Benchmark, bool)
}

// Work is one benchmark with all of its parameters.
type Work struct {
	Benchmark bench.Benchmark
	Params    bench.Params
}

// Resolve finds the benchmarks of the plan and fills in their parameters. Items keep
// their order, the benchmarks that one item selects have the catalogue's, and what
// comes twice with the same parameters is done once. The error is an *Error, or a *FlagError
// for a filter from the command line, or several of them joined.
func (p Plan) Resolve(catalogue Catalogue) ([]Work, error) {
	paper := p.Parameters == PaperValues
	all, err := p.withWorkloads(catalogue)
	if err != nil {
		return nil, err
	}
	items := p.Benchmarks
	if items == nil {
		for _, b := range all {
			items = append(items, Item{Name: b.Name})
		}
	}
	var (
		work     []Work
		problems problems
		seen     = map[string]bool{}
	)
	for _, item := range items {
		if problems.full() {
			break
		}
		selected, known := item.selects(catalogue, all)
		switch {
		case selected != nil:
		case known:
			problems.add(item.at, item.Name, problem{"no benchmark of " + quote(item.Name) + " has its programs from the image " + item.Image, "leave image out"})
		default:
			problems.add(item.at, item.Name, unknown(item.Name, all))
		}
		for _, b := range selected {
			params, ok := item.resolve(b, paper, &problems)
			if !ok {
				break // the others of the group would say the same
			}
			if key := b.Name + " " + params.String(); !seen[key] {
				seen[key] = true
				work = append(work, Work{b, params})
			}
		}
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return work, nil
}

// withWorkloads gives the benchmarks of the catalogue, and then those of the plan. The user's own may have no name that the catalogue
// knows: results would be taken for those of another program.
func (p Plan) withWorkloads(catalogue Catalogue) ([]bench.Benchmark, error) {
	var problems problems
	all := slices.Clone(catalogue.All())
	for _, w := range p.Workloads {
		if _, taken := catalogue.Lookup(w.Name); taken {
			problems.add(w.at, w.Name, problem{"workloads: " + quote(w.Name) + " is a benchmark of Touchstone's", "give the workload another name"})
			continue
		}
		b, err := custom.Benchmark(w.Workload)
		if err != nil {
			problems.add(w.at, w.Name, problem{"workloads: " + printable(err.Error()), ""})
			continue
		}
		all = append(all, b)
	}
	return all, problems.err()
}

// selects gives the benchmarks that an item names and does not leave out, and tells whether it names any.
func (i Item) selects(catalogue Catalogue, all []bench.Benchmark) (selected []bench.Benchmark, known bool) {
	var named []bench.Benchmark
	for _, b := range all {
		if bench.Matches(i.Name, b.Name) {
			named = append(named, b)
		}
	}
	if named == nil {
		if b, ok := catalogue.Lookup(i.Name); ok {
			named = append(named, b)
		}
	}
	for _, b := range named {
		if i.has(b) {
			selected = append(selected, b)
		}
	}
	return selected, named != nil
}

// has tells whether a benchmark's programs come from the item's image.
func (i Item) has(b bench.Benchmark) bool {
	image, ours := images()[i.Image]
	return !ours || b.Image == image
}

// resolve fills in the parameters of one benchmark. Each given one is tried by itself
// first, so that every wrong one is told at its place.
func (i Item) resolve(b bench.Benchmark, paper bool, problems *problems) (bench.Params, bool) {
	right := true
	for _, name := range slices.Sorted(maps.Keys(i.Params)) {
		value := i.Params[name]
		_, err := b.Resolve(bench.Params{name: value}, paper)
		if err == nil {
			continue
		}
		right = false
		at, ok := i.paramAt[name]
		if !ok {
			at = i.at
		}
		problems.add(at, value, problem{err.Error(), nearParam(b, name)})
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

// nearParam offers a name for a parameter that the benchmark does not have.
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

// unknown says that a filter selects nothing, and which near name would.
func unknown(name string, all []bench.Benchmark) problem {
	var names []string
	for _, b := range all {
		for at, c := range b.Name + "." {
			if c == '.' {
				names = append(names, b.Name[:at])
			}
		}
	}
	slices.Sort(names)
	return problem{
		"no benchmark is named " + quote(name) + " or is in a group of that name",
		didYouMean(name, slices.Compact(names), "touchstone list shows what there is; a filter holds whole components of a name"),
	}
}

// Pin gives p with all that it left open decided: the targets that were found, the
// work that Resolve gave, the seed that was drawn. A pinned plan says the same on another
// day, on which more targets are found and other values are quick.
func (p Plan) Pin(targets []target.Target, work []Work, seed uint64) Plan {
	p.Targets = nil
	for _, t := range targets {
		p.Targets = append(p.Targets, Pattern(t))
	}
	p.Benchmarks = nil
	for _, w := range work {
		item := Item{Name: w.Benchmark.Name}
		if len(w.Params) > 0 {
			item.Params = maps.Clone(w.Params)
		}
		p.Benchmarks = append(p.Benchmarks, item)
	}
	p.Seed = &seed
	return p
}
