package plan

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
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
func (r *reader) paths(n ast.Node, key, example string, checkName func(string) *problem, check func(name, path string) *problem, into *map[string]string) {
	r.named(n, key, "paths", example, MaxRuntimes, checkName, func(name string, e *ast.MappingValueNode) {
		var path string
		r.text(e.Value, key, func(s string) *problem { return check(name, s) }, &path)
		if path != "" {
			put(into, name, path)
			r.seen[key+"."+name] = r.at(e.Key)
		}
	})
}

// put sets an entry of a map that may be nil.
func put[M ~map[string]V, V any](into *M, name string, value V) {
	if *into == nil {
		*into = M{}
	}
	(*into)[name] = value
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

// checkProgramName refuses strings that cannot name a program.
func checkProgramName(name string) *problem {
	if checkRuntimeName(name) != nil {
		return &problem{quote(name) + " is not the name of a program", "use letters, digits and . _ -, as in containerd-shim-runc-v2"}
	}
	return nil
}

var url = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[^ ]+$`)

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
