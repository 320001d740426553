package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/trace"
)

// traceRow reports whether Touchstone can trace a target.
type traceRow struct {
	Works  bool   `json:"works"`
	Reason string `json:"reason,omitempty"`
	Advice string `json:"advice,omitempty"`
	// Functions is the reason why surface.functions does not count functions of the kernel. It is empty if it does.
	Functions string `json:"functions,omitempty"`
}

// addTraces fills in the traces of the targets that work. The errors are the results of trace.Check and trace.CheckFunctions.
func addTraces(rows []targetRow, err, functions error) {
	machine := traceRow{Works: err == nil}
	if functions != nil {
		machine.Functions = functions.Error()
	}
	if reason, ok := errors.AsType[*trace.Error](err); ok {
		machine.Reason, machine.Advice = reason.Cause, reason.Remedy
	} else if err != nil {
		machine.Reason = err.Error()
	}
	for i := range rows {
		r := &rows[i]
		if !r.Works {
			continue
		}
		r.Trace = &machine
		if reason, ok := r.Cannot[string(engine.OnHost)]; ok {
			r.Trace = &traceRow{Reason: reason, Functions: machine.Functions}
		}
	}
}

// printTraces prints whether traces work, each reason once.
func printTraces(w io.Writer, width int, rows []targetRow) {
	var answers []traceRow
	for _, r := range rows {
		if r.Trace != nil && !slices.Contains(answers, *r.Trace) {
			answers = append(answers, *r.Trace)
		}
	}
	for i, answer := range answers {
		text := "Traces work: touchstone benchmark --trace 3 adds counts of system calls."
		if !answer.Works {
			text = "Traces do not work: " + strings.Join(slices.DeleteFunc([]string{answer.Reason, answer.Advice}, func(s string) bool { return s == "" }), "; ") + "."
		}
		if len(answers) > 1 {
			text = strings.Join(patterns(rows, func(r targetRow) bool { return r.Trace != nil && *r.Trace == answer }), ", ") + ": " + text
		}
		if i == 0 {
			fmt.Fprintln(w)
		}
		printWrapped(w, width, "", text)
	}
	if slices.ContainsFunc(answers, func(r traceRow) bool { return !r.Works && r.Advice != "" }) {
		printWrapped(w, width, "", "No other tracer takes its place: tracefs loses calls, and knows no components (docs/adr/0055-traces.md).")
	}
	switch {
	case answers == nil:
	case answers[0].Functions == "":
		printWrapped(w, width, "", "surface.functions counts functions of the kernel.")
	default:
		printWrapped(w, width, "", "surface.functions counts no functions of the kernel: "+answers[0].Functions+".")
	}
}
