package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/target"
)

// runtimes reads the section of that name: a binary's path, or what else makes a runtime, by name.
func (r *reader) runtimes(n ast.Node) {
	for _, e := range r.named(n, "runtimes", "a mapping of names to binaries is", "write it like {mycrun: /opt/crun/bin/crun}", MaxRuntimes) {
		name, ok := r.key(e.Key)
		if !ok {
			continue
		}
		if f := checkRuntimeName(name); f != nil {
			r.failKey(e.Key, "runtimes", f)
			continue
		}
		if runtime, ok := r.runtime(name, e.Value); ok {
			if r.plan.Runtimes == nil {
				r.plan.Runtimes = map[string]target.Runtime{}
			}
			r.plan.Runtimes[name] = runtime
		}
	}
}

// named reads a mapping with names of the user's own, at most as many as given.
func (r *reader) named(n ast.Node, key, what, advice string, most int) []*ast.MappingValueNode {
	entries, ok := pairs(n)
	switch {
	case !ok:
		r.wrongKind(n, key, what, advice)
		return nil
	case len(entries) > most:
		r.fail(entries[most].Key, fmt.Sprintf("%s has more than %d entries", key, most), "leave out what is not used")
		return nil
	}
	return entries
}

// runtimeFields are the keys of a runtime.
func (r *reader) runtimeFields(name string, into *target.Runtime) []field {
	key := "runtimes." + name + "."
	return []field{
		{"path", func(n ast.Node) {
			r.text(n, key+"path", func(s string) *problem { return checkBinary(name, s) }, &into.Path)
		}},
		{"type", func(n ast.Node) { r.text(n, key+"type", checkRuntimeType, &into.Type) }},
		{"options", func(n ast.Node) { into.Options = r.options(n, key+"options") }},
	}
}

// runtime reads one runtime; ok tells that it has no fault.
func (r *reader) runtime(name string, n ast.Node) (runtime target.Runtime, ok bool) {
	before := len(r.problems.errs)
	entries, isMapping := pairs(n)
	path, isText := text(n)
	switch {
	case isText:
		if f := checkBinary(name, path); f != nil {
			r.failKey(n, "runtimes", f)
		}
		runtime.Path = path
	case !isMapping:
		r.wrongKind(n, "runtimes", "the path of "+name+" is", "write it like /usr/bin/crun, or {type: io.containerd.kata.v2}")
	default:
		r.entries(entries, "a runtime", r.runtimeFields(name, &runtime))
		switch {
		case runtime.Path != "" && runtime.Type != "":
			r.fail(n, fmt.Sprintf("runtimes: %s has a path and a type", name), "a runtime is a binary or a containerd shim; leave one of them out")
		case runtime.Path+runtime.Type == "" && runtime.Options == nil && len(r.problems.errs) == before:
			r.fail(n, "runtimes: nothing is said of "+name, "give its path, its type or options")
		}
	}
	return runtime, len(r.problems.errs) == before
}

// options reads options of a runtime, in order of their names.
func (r *reader) options(n ast.Node, key string) []target.Option {
	var options []target.Option
	for _, e := range r.named(n, key, "a mapping of names to values is", "write it like {platform: systrap}", MaxOptions) {
		name, ok := r.key(e.Key)
		if !ok {
			continue
		}
		value, ok := scalar(e.Value)
		if !ok {
			r.wrongKind(e.Value, key, "a single value for "+quote(name)+" is", "")
			continue
		}
		if f := checkOption(name, value); f != nil {
			r.failKey(e.Value, key, f)
			continue
		}
		options = append(options, target.Option{Name: name, Value: value})
	}
	slices.SortFunc(options, func(a, b target.Option) int { return strings.Compare(a.Name, b.Name) })
	return options
}

var runtimeType = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$`)

// checkRuntimeType refuses what containerd makes no name of a shim from.
func checkRuntimeType(s string) *problem {
	if len(s) > maxName || !runtimeType.MatchString(s) {
		return &problem{quote(s) + " is not the runtime type of a containerd shim", "write it like io.containerd.kata.v2; give a binary with path instead"}
	}
	return nil
}

// checkOption refuses an option that a target could not spell.
func checkOption(name, value string) *problem {
	t, err := target.Parse("x/x@" + name + "=" + value)
	if got, _ := t.Option(name); err != nil || got != value || len(t.Options) != 1 || len(name) > maxName || len(value) > maxPath || !isPrintable(value) {
		return &problem{fmt.Sprintf("%s=%s is not an option", quote(name), quote(value)), "write name and value without blanks and commas"}
	}
	return nil
}

// LoadRuntimes reads a file that has the section runtimes of a plan and nothing else. There is none
// if there is no such file. Errors of its content are as Parse has them.
func LoadRuntimes(path string) (map[string]target.Runtime, error) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the runtimes: %w", err)
	}
	return parseRuntimes(path, data)
}

func parseRuntimes(file string, data []byte) (map[string]target.Runtime, error) {
	root, err := parseTree(file, data)
	if root == nil {
		return nil, err // or it has only comments
	}
	r := &reader{file: file}
	if entries, ok := pairs(root); ok {
		r.entries(entries, "a file of runtimes", []field{{"version", r.version}, {"runtimes", r.runtimes}})
	} else {
		r.fail(root, "a file of runtimes is a mapping, not "+shown(root), `begin with "runtimes:", and write names to paths below it`)
	}
	return r.plan.Runtimes, r.problems.err()
}
