package main

import (
	"fmt"
	"io"
)

// mostOwnCPU is the limit of Touchstone's own CPU time for each second of its child processes.
const mostOwnCPU = 0.10

// ownCPU prints for each trial Touchstone's own CPU time relative to HostCPU. HostCPU includes the containers' own time, in
// which they write one line.
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
