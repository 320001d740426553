package plan

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// Pinning says on which CPUs the parts of a run stay, as the kernel spells them: "0-3,8". An empty
// one stays where it is put.
type Pinning struct {
	Workload   string // the containers, and what runs on native
	Engines    string // the daemons of the run and what they start beside containers
	Touchstone string // this program, with what runs at the host's end of a network
}

// part is a part of a run that can be pinned.
type part struct {
	name string
	cpus *string
}

// parts are those there are, by their names in plans and flags.
func (p *Pinning) parts() []part {
	return []part{{"workload", &p.Workload}, {"engines", &p.Engines}, {"touchstone", &p.Touchstone}}
}

// checkCPUs refuses what is no list of CPUs. Whether this machine has them is for Check to say.
func checkCPUs(s string) *problem {
	if _, err := cpuset.Parse(s); err != nil || len(s) > maxPath {
		return &problem{quote(s) + " is no list of CPUs", "write it like 0-3,8"}
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
			// One CPU may be written as a number.
			if s, ok := scalar(n); ok {
				if f := checkCPUs(s); f != nil {
					r.failKey(n, key, f)
					return
				}
				*p.cpus = s
				return
			}
			r.wrongKind(n, key, "a list of CPUs is", `write it in quotes, like "0-3,8"`)
		}})
	}
	return fields
}

func (r *reader) pinning(n ast.Node) {
	entries, ok := pairs(n)
	if !ok {
		r.wrongKind(n, "pinning", "workload, engines or touchstone are", `write it like {workload: "1", engines: "0", touchstone: "0"}`)
		return
	}
	r.entries(entries, "pinning", r.pinningFields())
}

// pin reads the values of --pin: part=CPUs with commas between them. A list of CPUs has commas too: what is no
// part= goes on with the list before it.
func (p *Plan) pin(values []string, fail func(flag, value string, f *problem) bool) {
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
	for _, item := range items {
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
					put(&p.at, "pinning."+name, location{flag: "--pin"})
				}
			}
		}
		if !found {
			fail("--pin", name, &problem{quote(name) + " is no part of a run", didYouMean(name, names, "there are "+strings.Join(names, ", "))})
		}
	}
}

// sets gives the pinned parts with their CPUs.
func (p Pinning) sets() map[string]cpuset.Set {
	sets := map[string]cpuset.Set{}
	for _, part := range p.parts() {
		if set, err := cpuset.Parse(*part.cpus); err == nil {
			sets[part.name] = set
		}
	}
	return sets
}

// shared tells of each part that measures, and is pinned to a CPU of what is measured.
func (p Pinning) shared(m Machine) []string {
	var notes []string
	sets := p.sets()
	workload := sets["workload"]
	for _, name := range []string{"engines", "touchstone"} {
		both := workload.And(sets[name])
		if len(both) > 0 {
			notes = append(notes, fmt.Sprintf("pinning: %s and workload share CPU %s, so that what measures takes time from what is measured", name, both))
			continue
		}
		for _, core := range m.Cores {
			if a, b := core.And(workload), core.And(sets[name]); len(a) > 0 && len(b) > 0 {
				notes = append(notes, fmt.Sprintf("pinning: CPU %s of %s and CPU %s of workload are threads of one core, and slow each other down", b, name, a))
			}
		}
	}
	return notes
}
