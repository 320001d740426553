package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/touchstone"
)

// touchstoneFile is the content of a file of TouchStone's own format (espe, 4.2.2), by key.
type touchstoneFile struct {
	cri, oci, filter []ast.Node
}

// ownExport ends the name of the export in Touchstone's own form, beside the output in TouchStone's form.
const ownExport = ".touchstone.json"

// touchstoneFields are the keys of TouchStone's format.
func (r *reader) touchstoneFields(f *touchstoneFile) []field {
	scale := 1
	return []field{
		{"cri", func(n ast.Node) { f.cri = r.words(n, "cri") }},
		{"oci", func(n ast.Node) { f.oci = r.words(n, "oci") }},
		{"filter", func(n ast.Node) { f.filter = r.words(n, "filter") }},
		{"runs", func(n ast.Node) { r.count(n, "runs", 1, &r.plan.Blocks) }},
		{"scale", func(n ast.Node) { r.count(n, "scale", 0, &scale) }},
		{"output", func(n ast.Node) {
			r.text(n, "output", checkFileName, &r.plan.TouchstoneOutput)
			if stem, ok := strings.CutSuffix(r.plan.TouchstoneOutput, ".json"); ok {
				r.plan.Export = stem + ownExport
			}
		}},
	}
}

// replacement returns the advice to replace a key of TouchStone's.
func replacement(key string) string {
	successor := map[string]string{"cri": "targets", "oci": "targets", "filter": "benchmarks", "runs": "blocks", "output": "export"}[key]
	if successor == "" {
		return "leave it out"
	}
	return "write " + successor + " instead"
}

// format detects the format of a file. A file with keys of TouchStone's and none of Touchstone's is TouchStone's. A file with keys
// of both is refused, since the same words have different meanings.
func (r *reader) format(entries []*ast.MappingValueNode) (touchstone, isMixed bool) {
	ours, their := keys(r.fields()), keys(r.touchstoneFields(&touchstoneFile{}))
	var first *ast.MappingValueNode // the first key of TouchStone's
	var our string
	for _, e := range entries {
		key, _ := text(e.Key)
		switch {
		case first == nil && slices.Contains(their, key):
			first = e
		case our == "" && slices.Contains(ours, key):
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
		location, ok := r.seen["oci"]
		if !ok {
			location = r.start
		}
		r.problems.add(location, "", problem{"oci is empty, so the plan has no targets", "write it like [runc]"})
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

// filters reads TouchStone's prefixes of names as whole components. A group selects the benchmarks that TouchStone has, since the same
// words select more of Touchstone's. A name that is none of TouchStone's selects Touchstone's benchmark. The empty string is a prefix of
// every name.
func (r *reader) filters(nodes []ast.Node) {
	if len(nodes) == 0 {
		r.group("", Location{})
	}
	for _, n := range nodes {
		s, _ := text(n)
		if s == "" {
			r.group("", r.at(n))
			continue
		}
		if f := filterSyntax.check(s); f != nil {
			r.failKey(n, "filter", f)
			continue
		}
		r.group(s, r.at(n))
	}
	if r.plan.Benchmarks == nil {
		return
	}
	for _, i := range r.plan.Benchmarks {
		if !slices.Contains(filterNames(nodes), i.Name) {
			r.plan.Notes = append(r.plan.Notes, "filter selects only benchmarks that TouchStone has; --filter, or benchmarks in a plan of Touchstone's format, selects the others too")
			return
		}
	}
}

func filterNames(nodes []ast.Node) []string {
	var names []string
	for _, n := range nodes {
		s, _ := text(n)
		names = append(names, s)
	}
	return names
}

// group adds TouchStone's benchmarks of a group, or the name itself if TouchStone has none. Nothing is added twice.
func (r *reader) group(name string, location Location) {
	found := false
	add := func(name string) {
		found = true
		if !slices.ContainsFunc(r.plan.Benchmarks, func(i Item) bool { return i.Name == name }) {
			r.plan.Benchmarks = append(r.plan.Benchmarks, Item{Name: name, at: location})
		}
	}
	for _, b := range touchstone.Benchmarks() {
		if name == "" || bench.Matches(name, b) {
			add(b)
		}
	}
	if !found {
		add(name)
	}
}
