package sides

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Class is a class of facts that can differ between runs.
type Class string

// The classes.
const (
	ClassMachine Class = "machine" // another machine, see result.Host.SameMachine
	ClassHost    Class = "host"    // kernel, system and settings of a machine
	ClassVersion Class = "version" // versions and properties of targets
	ClassTool    Class = "tool"    // the version of Touchstone
	ClassImage   Class = "image"   // the workload image
	ClassPlan    Class = "plan"    // settings of the plan that affect all trials
	ClassParams  Class = "params"  // parameters of a benchmark
)

// Classes lists the classes that Options.Allow can have. Machines have an option of their own.
func Classes() []Class {
	return []Class{ClassHost, ClassVersion, ClassTool, ClassImage, ClassPlan, ClassParams}
}

// Difference is a fact with different values in the runs.
type Difference struct {
	Class Class
	Fact  fact.ID
	// A and B are the values of the sides, each once.
	A, B []string
}

// String spells a difference: "Kernel: 6.1.0 in A, 6.1.9 in B".
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s in A, %s in B", d.Fact.Name(), values(d.A), values(d.B))
}

func values(list []string) string {
	list = slices.Clone(list)
	for i, v := range list {
		if v == "" {
			list[i] = "unknown"
		}
	}
	return wording.Listed(list)
}

// DifferError is the error for runs that differ in facts that the user has not allowed.
type DifferError struct{ Differences []Difference }

func (e *DifferError) Error() string {
	text := "the runs differ in facts that may be the cause of any difference:"
	var classes []string
	machines := false
	for _, d := range e.Differences {
		text += "\n" + d.String()
		if d.Class == ClassMachine {
			machines = true
		} else if !slices.Contains(classes, string(d.Class)) {
			classes = append(classes, string(d.Class))
		}
	}
	if machines { // its flag allows the facts of hosts too
		classes = slices.DeleteFunc(classes, func(c string) bool { return c == string(ClassHost) })
	}
	var flags []string
	if machines {
		flags = append(flags, "--across-machines")
	}
	if len(classes) > 0 {
		flags = append(flags, "--allow-differences "+strings.Join(classes, ","))
	}
	return text + "\nto compare them nevertheless, add " + strings.Join(flags, " ")
}

// refused returns a *DifferError for the differences that are not allowed. Runs of different machines also differ in facts of the host.
func refused(list []Difference, o Options) error {
	list = slices.Clone(list)
	isAllowed := o.AcrossMachines
	machines := slices.ContainsFunc(list, func(d Difference) bool { return d.Class == ClassMachine })
	list = slices.DeleteFunc(list, func(d Difference) bool {
		switch d.Class {
		case ClassMachine:
			return isAllowed
		case ClassHost:
			return isAllowed && machines || slices.Contains(o.Allow, d.Class)
		default:
			return slices.Contains(o.Allow, d.Class)
		}
	})
	if len(list) == 0 {
		return nil
	}
	return &DifferError{list}
}

// classOf is the class of a kind of fact. The identity of a machine is of ClassMachine if the machines differ.
func classOf(kind fact.Kind) Class {
	switch kind {
	case fact.Tool:
		return ClassTool
	case fact.Images:
		return ClassImage
	case fact.Target:
		return ClassVersion
	case fact.Runtime, fact.Workload, fact.Monitor, fact.Setting:
		return ClassPlan
	case fact.Parameters:
		return ClassParams
	default:
		return ClassHost
	}
}

// Concerns reports whether the difference can affect a benchmark on a target. A fact about another benchmark or target cannot.
func (d Difference) Concerns(benchmark, target string) bool {
	switch d.Fact.Kind {
	case fact.Target, fact.Runtime:
		return d.Fact.Subject == target
	case fact.Workload, fact.Monitor:
		name, _, _ := strings.Cut(d.Fact.Subject, " ")
		return name == benchmark
	default:
		return true
	}
}

// Differences lists the facts that differ between the runs of both sides, without parameters.
func Differences(a, b []result.Run) []Difference {
	var list []Difference
	runs := slices.Concat(a, b)
	isSame := !slices.ContainsFunc(runs[1:], func(r result.Run) bool { return !runs[0].Host.SameMachine(&r.Host) })
	monitors := ownMonitors(runs)
	ids, factsA := factsOf(a, monitors)
	idsB, factsB := factsOf(b, monitors)
	for _, id := range idsB {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		class := classOf(id.Kind)
		if id.Kind.Identity() && isSame || id.Kind.Natural() {
			continue
		}
		if id.Kind.Identity() {
			class = ClassMachine
		}
		runsA, runsB := len(a), len(b)
		if id.Kind.Partial() {
			// A target or a benchmark that a side does not have is a cell of one side. A run without it has no values of it.
			if len(factsA[id]) == 0 || len(factsB[id]) == 0 {
				continue
			}
			runsA, runsB = 0, 0
		}
		x, y := distinct(factsA[id], runsA), distinct(factsB[id], runsB)
		if union := distinct(slices.Concat(x, y), 0); len(union) > 1 {
			list = append(list, Difference{class, id, x, y})
		}
	}
	if !isSame && !slices.ContainsFunc(list, func(d Difference) bool { return d.Class == ClassMachine }) {
		list = append([]Difference{{
			ClassMachine, fact.ID{Kind: fact.Machine}, []string{unknownMachine}, []string{unknownMachine},
		}}, list...)
	}
	return list
}

// unknownMachine is the value for machines that differ in no shown fact.
const unknownMachine = "a machine without a proof that it is the same one: its name, CPU, memory or identity is unknown or differs"

// factsOf lists the facts of runs in their order, with the values of the runs that have them. monitors are from ownMonitors.
func factsOf(runs []result.Run, monitors map[string]bool) (ids []fact.ID, facts map[fact.ID][]string) {
	facts = map[fact.ID][]string{}
	put := func(id fact.ID, value string) {
		if _, ok := facts[id]; !ok {
			ids = append(ids, id)
		}
		facts[id] = append(facts[id], value)
	}
	add := func(kind fact.Kind, subject, value string) { put(fact.ID{Kind: kind, Subject: subject}, value) }
	for i := range runs {
		r := &runs[i]
		var images []string
		for _, f := range fact.Host(r) {
			switch {
			case f.Kind == fact.Image:
				images = append(images, f.Text)
			case f.Kind == fact.KSM: // the number of merged pages differs by nature
				text, _, _ := strings.Cut(f.Text, ",")
				put(f.ID, text)
			case f.Text != "" || !f.Kind.Optional():
				put(f.ID, f.Text)
			}
		}
		add(fact.Images, "", strings.Join(images, "; "))
		sections := sectionsOf(r.Plan)
		runtimes := runtimesOf(sections["runtimes"])
		for _, t := range r.Targets {
			if t.Unavailable == "" {
				add(fact.Target, t.Name, fact.TargetText(&t, storageNotes(t)...))
				_, runtime, _ := strings.Cut(t.Name, "/")
				runtime, _, _ = strings.Cut(runtime, "@")
				add(fact.Runtime, t.Name, cmp.Or(runtimes[runtime], "no options"))
			}
		}
		workloads := workloadsOf(sections["workloads"])
		for _, name := range slices.Sorted(maps.Keys(workloads)) {
			add(fact.Workload, name, workloads[name])
		}
		for _, i := range itemsOf(sections["benchmarks"]) {
			hasSeveral, isOwn := monitors[i.name]
			title := i.name
			if hasSeveral {
				title = i.title
			}
			if isOwn {
				add(fact.Monitor, title, cmp.Or(i.monitor, joined(sections["monitor"]), "none"))
			}
		}
		for _, key := range slices.Sorted(slices.Values(settings)) {
			if len(sections) > 0 { // an import may lack the plan
				add(fact.Setting, key, cmp.Or(joined(sections[key]), "not set"))
			}
		}
	}
	return ids, facts
}

// storageNotes are the notes of the engines about the storage of a target, which can change its results.
func storageNotes(t result.Target) []string {
	var notes []string
	for _, note := range t.Notes {
		if strings.Contains(note, "storage driver") || strings.Contains(note, "snapshotter") {
			notes = append(notes, note)
		}
	}
	return notes
}

// distinct lists each value once. A fact that some of the runs do not have has the value "" there.
func distinct(list []string, runs int) []string {
	var set []string
	for _, v := range list {
		if !slices.Contains(set, v) {
			set = append(set, v)
		}
	}
	if len(list) < runs && !slices.Contains(set, "") {
		set = append(set, "")
	}
	return set
}

// conditions are notes about conditions of the measurement that differ, such as the file system or the path of packets.
func conditions(orderA []identity, cellsA map[identity]measured, orderB []identity, cellsB map[identity]measured) []string {
	type place struct{ cell, condition string }
	var order []place
	found := map[place][2][]string{}
	for side, group := range []struct {
		order []identity
		cells map[identity]measured
	}{{orderA, cellsA}, {orderB, cellsB}} {
		for _, id := range group.order {
			for _, m := range group.cells[id].cells {
				for _, c := range m.Conditions {
					spot := place{analysis.Key{Name: m.Benchmark, Params: m.Params}.Title() + " on " + m.Target, c.Name()}
					v, ok := found[spot]
					if !ok {
						order = append(order, spot)
					}
					if !slices.Contains(v[side], c.Text) {
						v[side] = append(v[side], c.Text)
					}
					found[spot] = v
				}
			}
		}
	}
	var notes []string
	for _, spot := range order {
		v := found[spot]
		if v[0] != nil && v[1] != nil && len(distinct(slices.Concat(v[0], v[1]), 0)) > 1 {
			notes = append(notes, fmt.Sprintf("%s: the condition %q differs: %s in A, %s in B.", spot.cell, spot.condition, values(v[0]), values(v[1])))
		}
	}
	return notes
}
