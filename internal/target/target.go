// Package target names targets: an engine × runtime with its options, one column of a report.
//
// The spelling of a target is engine/runtime[@option=value,…], or "native" alone:
//
//	native
//	oci/crun
//	oci/runsc@platform=systrap
//	k8s/gvisor
//	k8s
//
// The last one is the default RuntimeClass of a Kubernetes cluster.
//
// The spelling is canonical: options are sorted by name, so two targets are equal exactly if their strings are equal. This package
// knows no engine; the engines check the existence of targets on a machine.
package target

import (
	"fmt"
	"slices"
	"strings"
)

// Native is the target without a container: the same program from the same
// root file system.
const Native = "native"

// Kubernetes is the engine whose runtimes are the RuntimeClasses of a cluster. Without a runtime it is the cluster's default class.
const Kubernetes = "k8s"

// Target is an engine × runtime with the runtime's options. The zero value is not a valid target. Targets are values: use String as
// a map key.
type Target struct {
	// Engine drives the runtime: "native", "oci", "fake", ….
	Engine string
	// Runtime is the name of the runtime. It is empty for native, and for the default class of a cluster.
	Runtime string
	// Options are the options of the runtime in order of their names.
	Options []Option
}

// Option is one option of a runtime, such as platform=systrap.
type Option struct{ Name, Value string }

// Runtime is a user's definition of a runtime. The zero value is an OCI runtime from PATH.
type Runtime struct {
	// Path is the absolute path of an OCI runtime's binary.
	Path string
	// Type is the runtime type of a containerd shim, such as io.containerd.kata.v2. A
	// runtime has a Path or a Type, not both.
	Type string
	// Options apply to each of its targets that does not set them.
	Options []Option
}

// SyntaxError is the error for a string that is not a target.
type SyntaxError struct {
	Input  string
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("target %q: %s; write engine/runtime[@option=value,…], such as oci/runc or oci/runsc@platform=systrap, or native", e.Input, e.Reason)
}

// Parse reads the spelling of a target. Its errors are *SyntaxError.
func Parse(s string) (Target, error) {
	fail := func(format string, args ...any) (Target, error) {
		return Target{}, &SyntaxError{Input: s, Reason: fmt.Sprintf(format, args...)}
	}
	name, options, hasOptions := strings.Cut(s, "@")
	engine, runtime, hasRuntime := strings.Cut(name, "/")
	switch {
	case !isName(engine):
		return fail("the engine's name %q is not a name", engine)
	case engine == Native && hasRuntime:
		return fail("native has no runtime")
	case engine != Native && engine != Kubernetes && !hasRuntime:
		return fail("the runtime is missing")
	case hasRuntime && !isName(runtime):
		return fail("the runtime's name %q is not a name", runtime)
	}
	t := Target{Engine: engine, Runtime: runtime}
	if !hasOptions {
		return t, nil
	}
	for _, item := range strings.Split(options, ",") {
		key, value, ok := strings.Cut(item, "=")
		if !ok || !isName(key) || value == "" {
			return fail("%q is not option=value", item)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return fail("the value of %s holds a blank or a control character", key)
		}
		if _, duplicate := t.Option(key); duplicate {
			return fail("option %s is given twice", key)
		}
		t.Options = append(t.Options, Option{key, value})
	}
	slices.SortFunc(t.Options, func(a, b Option) int { return strings.Compare(a.Name, b.Name) })
	return t, nil
}

// String spells t for Parse.
func (t Target) String() string {
	var b strings.Builder
	b.WriteString(t.Engine)
	if t.Runtime != "" {
		b.WriteByte('/')
		b.WriteString(t.Runtime)
	}
	for i, o := range t.Options {
		b.WriteByte("@,"[min(i, 1)])
		b.WriteString(o.Name)
		b.WriteByte('=')
		b.WriteString(o.Value)
	}
	return b.String()
}

// RuntimeText spells the runtime with its options, as in the target's name.
func (t Target) RuntimeText() string {
	_, text, _ := strings.Cut(t.String(), "/")
	return text
}

// Option returns the value of an option and whether it is set.
func (t Target) Option(name string) (string, bool) {
	for _, o := range t.Options {
		if o.Name == name {
			return o.Value, true
		}
	}
	return "", false
}

// With returns t with one option set, in canonical order. It does not change t.
func (t Target) With(name, value string) Target {
	options := slices.DeleteFunc(slices.Clone(t.Options), func(o Option) bool { return o.Name == name })
	options = append(options, Option{name, value})
	slices.SortFunc(options, func(a, b Option) int { return strings.Compare(a.Name, b.Name) })
	t.Options = options
	return t
}

// MarshalText lets a target stand as a string in plans.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// isName reports whether s is a valid name of an engine, runtime or option: a letter or digit, then letters, digits and . _ -.
func isName(s string) bool {
	for i, r := range s {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._-", r)) {
			return false
		}
	}
	return s != ""
}
