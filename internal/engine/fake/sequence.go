package fake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// planSequence imitates the probe's command sequence, which runs installed programs one after the other, on the fake clock.
func (p program) planSequence() behaviour {
	before, words := cutWords(p.args[1:], "--")
	if len(before) != 0 && (len(before) != 2 || before[0] != "--dir") || len(words) == 0 {
		return fails(2, "sequence: a program is missing")
	}
	if len(before) > 0 && !p.writable(before[1]) {
		return fails(1, "sequence: %s cannot be written: EROFS (30)", before[1])
	}
	of := 1
	for _, w := range words {
		if w == "--then" {
			of++
		}
	}
	var all behaviour
	var out strings.Builder
	for step := 1; len(words) > 0; step++ {
		var args []string
		args, words = cutWords(words, "--then")
		next, err := p.host.loadProgram(args, p.spec)
		if err != nil || next.scripted == nil {
			return fails(127, "sequence: run %q: ENOENT (2)", args)
		}
		b := next.scripted(next.args, p.spec)
		out.WriteString(b.Stdout)
		all.complaint += b.Stderr
		all.length += b.Took
		if b.Exit != (engine.Exit{}) {
			all.result, all.exit = out.String(), b.Exit
			return all
		}
		fmt.Fprintf(&out, "{\"step\":%d,\"of\":%d,\"ns\":%d}\n", step, of, max(b.Took.Nanoseconds(), 1))
	}
	all.result = out.String()
	return all
}

// cutWords cuts words at the first separator.
func cutWords(words []string, separator string) (before, after []string) {
	i := slices.Index(words, separator)
	if i < 0 {
		return words, nil
	}
	return words[:i], words[i+1:]
}
