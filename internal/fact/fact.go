// Package fact has the facts of runs in words: machine, settings, program, images, targets and conditions. A fact has a [Kind], which decides how
// runs with different values are compared; the name for people is a property of the kind. Reports, comparisons of runs and histories share these
// facts, so a fact is spelled once.
package fact

import "strings"

// ID identifies a fact in a run.
type ID struct {
	Kind Kind
	// Subject is the target, benchmark or setting of the fact. It is empty for a fact of the whole run.
	Subject string
}

// Name is the name for people: "Kernel", "Target oci/runc".
func (i ID) Name() string { return strings.TrimSpace(properties[i.Kind].name + " " + i.Subject) }

// Fact is a fact of one run. Without Text it is unknown.
type Fact struct {
	ID
	Text string
}

func newFact(kind Kind, text string) Fact { return Fact{ID{Kind: kind}, text} }

// Row is a fact of each of several runs. An unknown value is empty.
type Row struct {
	ID      `json:"-"`
	Values  []string `json:"values" doc:"The value of each run, in the order of runs; empty if it is not known."`
	Differs bool     `json:"differs" doc:"Set if the runs differ in a fact that could be the same."`
}

// Group is the runs with the same value of a fact.
type Group struct {
	Value string
	Runs  []int
}

// Groups groups the runs by value.
func (r *Row) Groups() []Group {
	var groups []Group
	place := map[string]int{}
	for run, value := range r.Values {
		index, ok := place[value]
		if !ok {
			index = len(groups)
			place[value] = index
			groups = append(groups, Group{Value: value})
		}
		groups[index].Runs = append(groups[index].Runs, run)
	}
	return groups
}
