package plan

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// MaxNodes is the maximum number of named nodes, and the highest number of nodes.
const MaxNodes = 5000

// Nodes selects the nodes of a cluster for touchstone cluster run. The zero value selects all. It has no effect on a machine.
type Nodes struct {
	// Selector is a selector of labels, as for kubectl.
	Selector string `yaml:"selector,omitempty"`
	// Names are names of nodes.
	Names []string `yaml:"names,omitempty"`
	// PerKind is the largest number of nodes of each instance type; 0 is no limit.
	PerKind int `yaml:"per-kind,omitempty"`
}

// nodeFields are the keys of nodes.
func (r *reader) nodeFields() []field {
	n := &r.plan.Nodes
	return []field{
		{"selector", func(v ast.Node) { r.text(v, "nodes.selector", checkSelector, &n.Selector) }},
		{"names", func(v ast.Node) {
			for _, item := range r.listOr(v, "nodes.names", MaxNodes, "write it like [node1, node2]", "name a node, or leave the key out", "choose nodes by a selector") {
				var name string
				r.text(item, "nodes.names", checkSelector, &name)
				n.Names = append(n.Names, name)
			}
		}},
		{"per-kind", func(v ast.Node) { r.nodeCount(v, "nodes.per-kind", &n.PerKind) }},
	}
}

// nodeCount reads a number of nodes.
func (r *reader) nodeCount(v ast.Node, key string, dest *int) {
	r.count(v, key, 1, dest)
	if *dest > MaxNodes {
		r.failKey(v, key, checkCount(*dest, 1, MaxNodes))
	}
}

// checkSelector refuses texts that the API server would refuse for their length or their characters.
func checkSelector(s string) *problem {
	if s == "" || len(s) > maxPath || !isPrintable(s) {
		return &problem{fmt.Sprintf("%s is not a printable text of 1 to %d bytes", quote(s), maxPath), "write it as for kubectl"}
	}
	return nil
}
