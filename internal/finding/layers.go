package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// LayerNotes explain the numbers of layers and their limits.
func LayerNotes(l *analysis.Layers) []string {
	notes := []string{
		"A layer is the difference to the layers below it in the same block. Within a block the layers add up to the whole. Their medians need not: " +
			"the remainder is the difference. Each interval is a 95 % interval by itself, so one in twenty layers that add nothing may seem to add something.",
	}
	if l.Whole {
		notes = append(notes, "No step measures the sandbox's part of "+l.Metric.Name+": if an engine makes a sandbox, its cost is in shim and engine.")
	}
	if slices.ContainsFunc(l.Stacks, sandboxFirst) {
		notes = append(notes, "If shim and engine is negative beside a sandbox, the sandbox has done work that the bare runtime does in create, "+
			"such as starting gVisor's kernel or a virtual machine. Read the two together.")
	}
	var gaps []gap
	for _, s := range l.Stacks {
		if note := StackNote(&s); note != "" {
			gaps = put(gaps, "", note, s.Target)
		}
	}
	for _, g := range gaps {
		notes = append(notes, strings.Join(g.targets, ", ")+": "+g.reason+".")
	}
	return notes
}

// StackNote states the targets without a value that would separate layers. It is empty without any.
func StackNote(s *analysis.Stack) string {
	if s.Lacking == nil {
		return ""
	}
	return "no value of " + wording.Listed(s.Lacking) + " to separate the layers"
}

// sandboxFirst reports whether the engine has a negative part beside a sandbox.
func sandboxFirst(s analysis.Stack) bool {
	return slices.ContainsFunc(s.Parts, func(p analysis.Part) bool { return p.Last == analysis.SandboxLayer }) &&
		slices.ContainsFunc(s.Parts, func(p analysis.Part) bool { return p.Last == analysis.EngineLayer && p.Shown() && p.Median < 0 })
}

// ShownTrials states the choice of the trials.
func ShownTrials(s *analysis.Section) string {
	var parts []string
	for _, t := range s.Timelines {
		for _, p := range t.Panels {
			if part := fmt.Sprintf("%s trial %d (block %d)", p.Target, p.Seq, p.Block+1); !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	if parts == nil {
		return ""
	}
	return "the trial of median length on each target: " + strings.Join(parts, ", ") + "."
}
