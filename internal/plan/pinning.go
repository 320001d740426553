package plan

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// Pinning holds the CPUs for each part of a run, in the kernel's syntax: "0-3,8". A part with an empty list is not pinned.
type Pinning struct {
	Workload   string `yaml:"workload,omitempty"`   // the containers, and the programs on native
	Engines    string `yaml:"engines,omitempty"`    // the daemons of the run, and the processes that they start outside of containers
	Touchstone string `yaml:"touchstone,omitempty"` // this program, and the peer processes on the host for network benchmarks
}

// part is a part of a run that can be pinned.
type part struct {
	name string
	cpus *string
}

// parts lists the parts by their names in plans and flags.
func (p *Pinning) parts() []part {
	return []part{{"workload", &p.Workload}, {"engines", &p.Engines}, {"touchstone", &p.Touchstone}}
}

// checkCPUs refuses strings that are not a list of CPUs. Check compares the list with this machine.
func checkCPUs(s string) *problem {
	if _, err := cpuset.Parse(s); err != nil || len(s) > maxPath {
		return &problem{quote(s) + " is not a list of CPUs", "write it like 0-3,8"}
	}
	return nil
}

// pinningFields are the keys of pinning.
func (r *reader) pinningFields() []field {
	var fields []field
	for _, p := range r.plan.Pinning.parts() {
		fields = append(fields, field{p.name, func(n ast.Node) {
			key := "pinning." + p.name
			r.seen[key] = r.at(n)
			// A single CPU may be a number.
			if s, ok := scalar(n); ok {
				if f := checkCPUs(s); f != nil {
					r.failKey(n, key, f)
					return
				}
				*p.cpus = s
				return
			}
			r.wrongKind(n, key, "a list of CPUs", `write it in quotes, like "0-3,8"`)
		}})
	}
	return fields
}

// splitNamed splits values of a flag at their commas into items name=value. An item without name= belongs to the item before it.
func splitNamed(values []string) []string {
	var items []string
	for _, value := range values {
		for i, item := range strings.Split(value, ",") {
			if i > 0 && !strings.Contains(item, "=") {
				items[len(items)-1] += "," + item
				continue
			}
			items = append(items, item)
		}
	}
	return items
}

// pin reads the values of --pin: part=CPUs, separated by commas. A list of CPUs contains commas too: an item without part= belongs
// to the list before it.
func (p *Plan) pin(values []string, fail func(flag, value string, f *problem) bool) {
	for _, item := range splitNamed(values) {
		name, cpus, ok := strings.Cut(item, "=")
		if !ok {
			fail("--pin", item, &problem{quote(item) + " is not part=CPUs", "write it like workload=2-3,engines=1,touchstone=0"})
			continue
		}
		var names []string
		found := false
		for _, part := range p.Pinning.parts() {
			names = append(names, part.name)
			if part.name == name {
				found = true
				if !fail("--pin", cpus, checkCPUs(cpus)) {
					*part.cpus = cpus
					put(&p.at, "pinning."+name, Location{Flag: "--pin"})
				}
			}
		}
		if !found {
			fail("--pin", name, &problem{quote(name) + " is not a part of a run", didYouMean(name, names, "the parts are "+strings.Join(names, ", "))})
		}
	}
}

// sets returns the pinned parts with their CPUs.
func (p Pinning) sets() map[string]cpuset.Set {
	sets := map[string]cpuset.Set{}
	for _, part := range p.parts() {
		if set, err := cpuset.Parse(*part.cpus); err == nil {
			sets[part.name] = set
		}
	}
	return sets
}

// shared returns a note for each part that shares a CPU, or a core, with the workload.
func (p Pinning) shared(m Machine) []string {
	var notes []string
	sets := p.sets()
	workload := sets["workload"]
	for _, name := range []string{"engines", "touchstone"} {
		overlap := workload.And(sets[name])
		if len(overlap) > 0 {
			notes = append(notes, fmt.Sprintf("pinning: %s and workload share CPU %s, so %[1]s takes CPU time from the workload", name, overlap))
			continue
		}
		for _, core := range m.Cores {
			if a, b := core.And(workload), core.And(sets[name]); len(a) > 0 && len(b) > 0 {
				notes = append(notes, fmt.Sprintf("pinning: CPU %s of %s and CPU %s of workload are threads of one core and slow each other down", b, name, a))
			}
		}
	}
	return notes
}

// places returns notes about CPUs that some processes of a run use otherwise than others.
func (p Pinning) places(m Machine) []string {
	var notes []string
	workload := p.sets()["workload"]
	if len(workload) == 0 && m.Usable != nil && len(m.Online.Without(m.Usable)) > 0 {
		notes = append(notes, fmt.Sprintf("this process may use CPU %s of %s, and containers in other cgroups may use all; --pin workload=%[1]s gives all targets the same CPUs",
			m.Usable, m.Online))
	}
	if isolated := workload.And(m.Isolated); len(isolated) > 1 {
		notes = append(notes, fmt.Sprintf("pinning: CPUs %s of workload are isolated, and the kernel moves no process between them: all programs may stay on one", isolated))
	}
	return notes
}
