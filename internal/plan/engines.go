package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// Engines are the daemons and programs of the engines.
type Engines struct {
	// Managed starts private daemons, even if the user's own daemons are running.
	Managed bool `yaml:"managed,omitempty"`
	// Sockets holds the addresses of the user's own daemons by engine name: a path, or a URL. An unknown name is an engine that
	// speaks CRI.
	Sockets map[string]string `yaml:"sockets,omitempty"`
	// Binaries holds the paths of engines' programs by name, such as containerd or conmon.
	Binaries map[string]string `yaml:"binaries,omitempty"`
}

// enginesFields are the keys of engines.
func (r *reader) enginesFields() []field {
	e := &r.plan.Engines
	return []field{
		{"managed", func(n ast.Node) { e.Managed = r.boolean(n, "engines.managed", "") }},
		{"sockets", func(n ast.Node) {
			r.paths(n, "engines.sockets", "{containerd: /run/containerd/containerd.sock}", checkEngineName, checkAddress, &e.Sockets)
		}},
		{"binaries", func(n ast.Node) {
			r.paths(n, "engines.binaries", "{containerd: /usr/local/bin/containerd}", checkProgramName, checkBinary, &e.Binaries)
		}},
	}
}

// paths reads a mapping of names to addresses or paths.
func (r *reader) paths(n ast.Node, key, example string, checkName func(string) *problem, check func(name, path string) *problem, dest *map[string]string) {
	r.named(n, key, "paths", example, MaxRuntimes, checkName, func(name string, e *ast.MappingValueNode) {
		var path string
		r.text(e.Value, key, func(s string) *problem { return check(name, s) }, &path)
		if path != "" {
			put(dest, name, path)
			r.seen[key+"."+name] = r.at(e.Key)
		}
	})
}

// put sets an entry of a map that may be nil.
func put[M ~map[string]V, V any](dest *M, name string, value V) {
	if *dest == nil {
		*dest = M{}
	}
	(*dest)[name] = value
}

// checkEngineName refuses a name that cannot be an engine's.
func checkEngineName(name string) *problem {
	if t, err := target.Parse(name + "/x"); name != target.Native && (err != nil || t.Engine != name || len(name) > maxName) {
		return &problem{quote(name) + " is not a name for an engine", "use letters, digits and . _ -"}
	}
	return nil
}

// checkSocket refuses a socket of an engine that has none. An unknown name is an engine that speaks CRI.
func (o Overrides) checkSocket(name string) *problem {
	if d := o.engine(name); d != nil && !d.Socket {
		return &problem{quote(name) + " is an engine without a daemon", "leave it out"}
	}
	return nil
}

// checkCRIName refuses names of engines that do not speak CRI.
func (o Overrides) checkCRIName(name string) *problem {
	switch d := o.engine(name); {
	case d == nil || d.CRI || !d.Socket:
		return cmp.Or(checkEngineName(name), o.checkSocket(name))
	case d.AddressVariable != "":
		return &problem{name + " does not speak CRI", "give its address in " + d.AddressVariable}
	default:
		return &problem{name + " does not speak CRI", fmt.Sprintf("give its socket in a plan, as engines: {sockets: {%[1]s: /run/%[1]s/%[1]s.sock}}", name)}
	}
}

// engine returns the description of an engine, or nil.
func (o Overrides) engine(name string) *engine.Description {
	for _, d := range o.Engines {
		if d.Name == name {
			return &d
		}
	}
	return nil
}

// checkBinaryName refuses programs that no engine uses.
func (o Overrides) checkBinaryName(name string) *problem {
	if p := checkProgramName(name); p != nil || o.Engines == nil {
		return p
	}
	var names []string
	for _, d := range o.Engines {
		names = append(names, d.Binaries...)
	}
	slices.Sort(names)
	if names = slices.Compact(names); slices.Contains(names, name) {
		return nil
	}
	return &problem{quote(name) + " is not a program of an engine", "name one of " + strings.Join(names, ", ") + ", or a runtime with --runtime"}
}

// checkProgramName refuses strings that cannot name a program.
func checkProgramName(name string) *problem {
	if checkRuntimeName(name) != nil {
		return &problem{quote(name) + " is not the name of a program", "use letters, digits and . _ -, as in containerd-shim-runc-v2"}
	}
	return nil
}

// url is a URL, perhaps with nothing after the scheme, which has a default place with some engines.
var url = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[^ ]*$`)

// checkAddress accepts a path or a URL. The engine checks the URL further.
func checkAddress(name, address string) *problem {
	if checkBinary(name, address) == nil {
		return nil
	}
	if len(address) > maxPath || !isPrintable(address) || !url.MatchString(address) {
		return &problem{
			fmt.Sprintf("%s is not an address of %s", quote(address), name),
			"write the absolute path of a socket, or a URL that begins with unix:// or tcp://",
		}
	}
	return nil
}

// recordable returns the address of an environment variable in a form that a plan may have. The engine reads it, and a bad address ends its own
// targets only. An address without a scheme is TCP, as for the engine's own client.
func recordable(address string) string {
	for _, form := range []string{address, "tcp://" + address} {
		if checkAddress("", form) == nil {
			return form
		}
		if strings.Contains(address, "://") {
			break
		}
	}
	return engine.RecordUnreadable(address)
}

// runtimes reads the section of that name: each runtime is the path of a binary, or a mapping.
func (r *reader) runtimes(n ast.Node) {
	r.named(n, "runtimes", "binaries", "{mycrun: /opt/crun/bin/crun}", MaxRuntimes, checkRuntimeName, func(name string, e *ast.MappingValueNode) {
		if runtime, ok := r.runtime(name, e.Value); ok {
			put(&r.plan.Runtimes, name, runtime)
		}
	})
}

// runtimeFields are the keys of a runtime.
func (r *reader) runtimeFields(name string, dest *target.Runtime) []field {
	key := "runtimes." + name + "."
	return []field{
		{"path", func(n ast.Node) {
			r.text(n, key+"path", func(s string) *problem { return checkBinary(name, s) }, &dest.Path)
		}},
		{"type", func(n ast.Node) { r.text(n, key+"type", runtimeType.check, &dest.Type) }},
		{"options", func(n ast.Node) { dest.Options = r.options(n, key+"options") }},
	}
}

// runtime reads one runtime; ok reports whether it has no problem.
func (r *reader) runtime(name string, n ast.Node) (runtime target.Runtime, ok bool) {
	count := len(r.problems.errs)
	entries, isMapping := pairs(n)
	path, isText := text(n)
	switch {
	case isText:
		if f := checkBinary(name, path); f != nil {
			r.failKey(n, "runtimes", f)
		}
		runtime.Path = path
	case !isMapping:
		r.wrongKind(n, "runtimes", "the path of "+name, "write it like /usr/bin/crun, or {type: io.containerd.kata.v2}")
	default:
		r.entries(entries, "a runtime", r.runtimeFields(name, &runtime))
		switch {
		case runtime.Path != "" && runtime.Type != "":
			r.fail(n, fmt.Sprintf("runtimes: %s has a path and a type", name), "a runtime is a binary or a containerd shim; leave one of the keys out")
		case runtime.Path+runtime.Type == "" && runtime.Options == nil && len(r.problems.errs) == count:
			r.fail(n, "runtimes: "+name+" is empty", "give its path, its type or options")
		}
	}
	return runtime, len(r.problems.errs) == count
}

// options reads options of a runtime, in order of their names.
func (r *reader) options(n ast.Node, key string) []target.Option {
	var options []target.Option
	anyName := func(string) *problem { return nil } // checkOption checks the name with the value
	r.values(n, key, "{platform: systrap}", MaxOptions, anyName, checkOption, func(_ *ast.MappingValueNode, name, value string) {
		options = append(options, target.Option{Name: name, Value: value})
	})
	slices.SortFunc(options, func(a, b target.Option) int { return strings.Compare(a.Name, b.Name) })
	return options
}

// checkOption refuses options that cannot be part of a target.
func checkOption(name, value string) *problem {
	t, err := target.Parse("x/x@" + name + "=" + value)
	if got, _ := t.Option(name); err != nil || got != value || len(t.Options) != 1 || len(name) > maxName || len(value) > maxPath || !isPrintable(value) {
		return &problem{fmt.Sprintf("%s=%s is not an option", quote(name), quote(value)), "write name and value without blanks and commas"}
	}
	return nil
}

// ParseRuntimes reads a file with only the section runtimes of a plan. The file name appears in errors. Its errors have the types of
// Parse's errors.
func ParseRuntimes(file string, data []byte) (map[string]target.Runtime, error) {
	data, root, err := parseTree(file, data, textfile.Runtimes)
	if root == nil {
		return nil, err // nil for a file with only comments
	}
	r := &reader{file: file}
	if entries, ok := pairs(root); ok {
		r.entries(entries, "a file of runtimes", []field{{"version", r.version}, {"runtimes", r.runtimes}})
	} else {
		r.fail(root, "a file of runtimes is a mapping, not "+shown(root), `begin with "runtimes:", and write names to paths below it`)
	}
	return r.plan.Runtimes, r.problems.with(blemishes(file, data)).err()
}
