package plan

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/target"
)

const (
	// wildcard stands for any engine or any runtime.
	wildcard = "*"
	// everything is how the pattern of all targets is spelled.
	everything = "all"
)

// Pattern selects targets. A target selects itself, whether it is there or not. The others
// select what is found on the machine:
//
//	containerd/*               the engine with each runtime
//	*/runc                     the runtime on each engine
//	*/runsc@platform=ptrace    the same with options
//	*/*                        each runtime on each engine
//	all                        the same, and native
//
// A * stands for a whole name and takes each runtime once, as it is without options. It is a target
// with * for a name; that of all has no runtime.
type Pattern target.Target

// Exact gives the target that a pattern names. The second result is false if it is for what is
// found.
func (p Pattern) Exact() (target.Target, bool) {
	return target.Target(p), p.Engine != wildcard && p.Runtime != wildcard
}

// Select tells whether a pattern selects a target that was found, and as what: with the pattern's
// options, if it has any.
func (p Pattern) Select(found target.Target) (target.Target, bool) {
	if exact, ok := p.Exact(); ok {
		return exact, exact.String() == found.String()
	}
	if len(found.Options) > 0 || p.String() != everything && (found.Engine == target.Native || !matches(p.Engine, found.Engine) || !matches(p.Runtime, found.Runtime)) {
		return target.Target{}, false
	}
	for _, o := range p.Options {
		found = found.With(o.Name, o.Value)
	}
	return found, true
}

// stands tells whether a name of a pattern stands for a name.
func matches(pattern, name string) bool { return pattern == wildcard || pattern == name }

// String spells a pattern as parsePattern reads it.
func (p Pattern) String() string {
	if p.Engine == wildcard && p.Runtime == "" {
		return everything
	}
	return target.Target(p).String()
}

// parsePattern reads a target or a pattern of them.
func parsePattern(s string) (Pattern, *problem) {
	if s == everything {
		return Pattern{Engine: wildcard}, nil
	}
	engine, rest, _ := strings.Cut(s, "/")
	runtime, _, _ := strings.Cut(rest, "@")
	const name = "x" // in place of a wildcard
	stand := s
	if runtime == wildcard {
		stand = engine + "/" + name + rest[len(wildcard):]
	}
	if engine == wildcard {
		stand = name + stand[len(wildcard):]
	}
	t, f := parseTarget(stand)
	if f != nil {
		_, f = parseTarget(s) // which shows it as it was written
		return Pattern{}, f
	}
	if engine == wildcard {
		t.Engine = wildcard
	}
	if runtime == wildcard {
		t.Runtime = wildcard
	}
	return Pattern(t), nil
}
