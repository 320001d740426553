package main

import (
	"fmt"
	"io"
)

// mostOwnCPU is how much CPU time Touchstone may use for each second that the processes
// which it starts use.
const mostOwnCPU = 0.10

// ownCPU prints, for each trial, Touchstone's own CPU time against that of all that it
// started. The containers' own time is part of the latter; they do nothing but write a line.
func ownCPU(w io.Writer, exports []string) error {
	all, err := trials(exports)
	if err != nil {
		return err
	}
	beyond := false
	for _, t := range all {
		started, err := value(t, "HostCPU")
		if err != nil {
			return err
		}
		share := t.Self.Seconds() / started
		fmt.Fprintf(w, "%s %s: own CPU %.1f %% (%.3f s against %.3f s)\n", t.Target, t.Benchmark, 100*share, t.Self.Seconds(), started)
		beyond = beyond || share >= mostOwnCPU
	}
	if beyond {
		return fmt.Errorf("own CPU: %w of %.0f %%", errBeyond, 100*mostOwnCPU)
	}
	return nil
}
