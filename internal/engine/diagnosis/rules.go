package diagnosis

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// rules are the known errors. The first that matches counts, so special rules precede general ones.
var rules = slices.Concat(images, networks, limits, programs, versions, services, groups, rights)

// rule is a known error.
type rule struct {
	// patterns are the spellings of the message. Their named groups are values for cause and advice.
	patterns func() []*regexp.Regexp
	// when limits the rule to targets; nil is for all.
	when func(Facts) bool
	// cause and advice contain names of values in ${}: groups of the pattern, and the facts of Facts.values.
	cause, advice string
	// page is the section of docs/troubleshooting.md with more about the cause; empty for the table of known errors alone.
	page string
	// general marks a rule for messages that special rules may also match.
	general bool
	// refine may change the values, and may return another cause or advice; nil changes nothing.
	refine func(f Facts, values map[string]string, cause, advice string) (string, string)
	// transient reports that another attempt may succeed. vague leaves that to the signs in the rest of the text.
	transient, vague bool
}

// Signature is a known error in the documentation.
type Signature struct {
	// Cause and Advice have the names of values in capital letters.
	Cause, Advice string
	// Page is the section of docs/troubleshooting.md about the cause; empty without one.
	Page string
}

// Signatures lists the known errors in the order of their rules.
func Signatures() []Signature {
	var list []Signature
	for _, r := range rules {
		name := func(template string) string { return os.Expand(template, strings.ToUpper) }
		list = append(list, Signature{name(r.cause), name(r.advice), r.page})
	}
	return list
}

// match compiles the spellings of a message at the first error: a run without one has the memory for other things.
func match(patterns ...string) func() []*regexp.Regexp {
	return sync.OnceValue(func() (expressions []*regexp.Regexp) {
		for _, p := range patterns {
			expressions = append(expressions, regexp.MustCompile(p))
		}
		return expressions
	})
}

// isOf limits a rule to engines, by their own names.
func isOf(names ...string) func(Facts) bool {
	return func(f Facts) bool { return slices.Contains(names, f.Engine) }
}

func isRoot(f Facts) bool    { return f.Root }
func isPrivate(f Facts) bool { return f.Private }
func hasGuest(f Facts) bool  { return f.Isolation == engine.VM }
func isGVisor(f Facts) bool  { return f.Isolation == engine.UserKernel }
func isBare(f Facts) bool    { return f.Engine == "" }
