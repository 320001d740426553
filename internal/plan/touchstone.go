package plan

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/target"
)

// touchstoneFile is the content of a file of TouchStone's own format (espe, 4.2.2), by key.
type touchstoneFile struct {
	cri, oci, filter []ast.Node
}

// touchstoneFields are the keys of TouchStone's format.
func (r *reader) touchstoneFields(f *touchstoneFile) []field {
	scale := 1
	return []field{
		{"cri", func(n ast.Node) { f.cri = r.words(n, "cri") }},
		{"oci", func(n ast.Node) { f.oci = r.words(n, "oci") }},
		{"filter", func(n ast.Node) { f.filter = r.words(n, "filter") }},
		{"runs", func(n ast.Node) { r.count(n, "runs", 1, &r.plan.Blocks) }},
		{"scale", func(n ast.Node) { r.count(n, "scale", 0, &scale) }},
		{"output", func(n ast.Node) { r.text(n, "output", checkFileName, &r.plan.Export) }},
	}
}

// replacement returns the advice to replace a key of TouchStone's.
func replacement(key string) string {
	present := map[string]string{"cri": "targets", "oci": "targets", "filter": "benchmarks", "runs": "blocks", "output": "export"}[key]
	if present == "" {
		return "leave it out"
	}
	return "write " + present + " instead"
}

// format detects the format of a file. A file with keys of TouchStone's and none of Touchstone's is TouchStone's. A file with keys
// of both is refused, since the same words have different meanings.
func (r *reader) format(entries []*ast.MappingValueNode) (touchstone, mixed bool) {
	own, theirs := keys(r.fields()), keys(r.touchstoneFields(&touchstoneFile{}))
	var first *ast.MappingValueNode // the first key of TouchStone's
	var our string
	for _, e := range entries {
		key, _ := text(e.Key)
		switch {
		case first == nil && slices.Contains(theirs, key):
			first = e
		case our == "" && slices.Contains(own, key):
			our = key
		}
	}
	if first == nil || our == "" {
		return first != nil, false
	}
	key, _ := text(first.Key)
	r.fail(first.Key, fmt.Sprintf("%s is a key of TouchStone's format and %s is a key of Touchstone's", key, our), "use the keys of one format; "+replacement(key))
	return false, true
}

// readTouchstone reads a file of TouchStone's own format. Each cri with each oci is a target. TouchStone's defaults apply: no
// warm-up, paper parameters, and the properties of its pods.
func (r *reader) readTouchstone(entries []*ast.MappingValueNode) {
	r.plan = Plan{
		Name:       nameFrom(r.file),
		Parameters: PaperValues,
		Blocks:     DefaultBlocks,
		Timeout:    Timeout{Trial: DefaultPaperTimeout, Call: DefaultCallTimeout},
		Pods:       touchstonePods,
	}
	var f touchstoneFile
	r.entries(entries, "TouchStone's format", r.touchstoneFields(&f))
	if f.oci == nil && r.problems.errs == nil {
		at, ok := r.seen["oci"]
		if !ok {
			at = r.start
		}
		r.problems.add(at, "", problem{"oci is empty, so the plan has no targets", "write it like [runc]"})
	}
	r.matrix(f)
	r.filters(f.filter)
	if r.has("scale") {
		r.plan.Notes = append(r.plan.Notes, "scale has no effect: neither TouchStone nor Touchstone uses it")
	}
}

// words reads a list of strings; null is an empty list.
func (r *reader) words(n ast.Node, key string) []ast.Node {
	seq, ok := n.(*ast.SequenceNode)
	if _, null := n.(*ast.NullNode); null || ok && len(seq.Values) == 0 {
		return nil
	}
	var words []ast.Node
	for _, v := range r.list(n, key, MaxTargets) {
		if _, ok := text(v); !ok {
			r.wrongKind(v, key, "a string", "")
			continue
		}
		words = append(words, v)
	}
	return words
}

// matrix makes a target of each cri with each oci. Without cri it makes a target of each oci without a daemon. An error is located
// at the entry that causes it.
func (r *reader) matrix(f touchstoneFile) {
	engines := []string{"oci"}
	if f.cri != nil {
		engines = nil
	}
	for _, n := range f.cri {
		engine, _ := text(n)
		if t, err := target.Parse(engine + "/x"); err != nil || t.Engine != engine || t.Runtime != "x" {
			r.fail(n, "cri: "+quote(engine)+" is not the name of an engine", "write containerd or crio")
			continue
		}
		engines = append(engines, engine)
	}
	for _, engine := range engines {
		for _, n := range f.oci {
			runtime, _ := text(n)
			t, fl := parseTarget(engine + "/" + runtime)
			if fl == nil {
				fl = checkTargets(append(r.plan.Targets, Pattern(t)))
			}
			if fl != nil {
				r.failKey(n, "oci", fl)
				continue
			}
			r.plan.Targets = append(r.plan.Targets, Pattern(t))
		}
	}
}

// filters reads TouchStone's prefixes of names as whole components. The empty string is a prefix of every name.
func (r *reader) filters(nodes []ast.Node) {
	var items []Item
	all := false
	for _, n := range nodes {
		s, _ := text(n)
		if s == "" {
			all = true
			continue
		}
		if f := filterSyntax.check(s); f != nil {
			r.failKey(n, "filter", f)
			continue
		}
		items = append(items, Item{Name: s, at: r.at(n)})
	}
	if !all {
		r.plan.Benchmarks = items
	}
}
