package plan

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/target"
)

const (
	// wildcard stands for any engine or any runtime.
	wildcard = "*"
	// everything is the spelling of the pattern for all targets.
	everything = "all"
)

// Pattern selects targets. An exact target selects itself, even if it is not available. The other patterns select from the targets
// found on the machine:
//
//	containerd/*               the engine with each runtime
//	*/runc                     the runtime on each engine
//	*/runsc@platform=ptrace    the same with options
//	*/*                        each runtime on each engine
//	all                        the same, and native
//
// A * matches a whole name. It selects each runtime once, without options. A pattern is a target with * as a name; the pattern for
// all targets has no runtime.
type Pattern target.Target

// Exact returns the target of an exact pattern. The second result is false for patterns that select from the targets found.
func (p Pattern) Exact() (target.Target, bool) {
	return target.Target(p), p.Engine != wildcard && p.Runtime != wildcard
}

// Select reports whether a pattern selects a found target. It returns the target with the pattern's options, if any.
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

// matches reports whether a name matches a name of a pattern.
func matches(pattern, name string) bool { return pattern == wildcard || pattern == name }

// String spells a pattern for parsePattern.
func (p Pattern) String() string {
	if p.Engine == wildcard && p.Runtime == "" {
		return everything
	}
	return target.Target(p).String()
}

// MarshalText lets a pattern stand as a string in plans.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

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
		_, f = parseTarget(s) // its message shows the original spelling
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
