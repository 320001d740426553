// Command figures computes the figures of the scripts beside it, from the output of touchstone export and touchstone report.
// It measures nothing.
//
//	figures overhead TARGET BARE EXPORT...   Touchstone's times against a bare loop's
//	figures traced TARGET EXPORT...          runs with traces against runs without
//	figures rhythm EXPORT                    the times between Touchstone's creates
//	figures cpu EXPORT...                    Touchstone's own CPU time against the runtimes'
//	figures aa REPORT...                     verdicts where nothing differs
//
// The exit code is 1 if the figure is beyond its limit.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// errBeyond is the error of a printed figure beyond its limit.
var errBeyond = errors.New("beyond the limit")

func main() {
	err := run(os.Stdout, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "figures: %v\n", err)
	os.Exit(1)
}

func run(w io.Writer, args []string) error {
	switch {
	case len(args) >= 4 && args[0] == "overhead":
		return overhead(w, args[1], args[2], args[3:])
	case len(args) >= 4 && args[0] == "traced":
		return traced(w, args[1], args[2:])
	case len(args) == 2 && args[0] == "rhythm":
		return rhythm(w, args[1])
	case len(args) >= 2 && args[0] == "cpu":
		return ownCPU(w, args[1:])
	case len(args) >= 2 && args[0] == "aa":
		return falseAlarms(w, args[1:])
	}
	return errors.New("usage: figures overhead TARGET BARE EXPORT... | traced TARGET EXPORT... | cpu EXPORT... | aa REPORT... | rhythm EXPORT")
}

// trials returns the measured trials of the exports.
func trials(files []string) ([]result.Trial, error) {
	list, err := allTrials(files)
	return slices.DeleteFunc(list, func(t result.Trial) bool { return t.Warmup }), err
}

// allTrials returns the trials of the exports, those of the warm-up too. A failed trial is an error: a figure without it would look
// too good.
func allTrials(files []string) ([]result.Trial, error) {
	var list []result.Trial
	for _, name := range files {
		runs, err := runsOf(name)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			for _, t := range run.Trials {
				if t.Status != result.OK {
					return nil, fmt.Errorf("trial %d of run %s is %s: %s", t.Seq, run.ID, t.Status, t.Reason)
				}
				list = append(list, t)
			}
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the exports have no trials")
	}
	return list, nil
}

// value is the one value of a metric in a trial.
func value(t result.Trial, metric string) (float64, error) {
	values := t.Values(metric)
	if len(values) != 1 {
		return 0, fmt.Errorf("trial %d of %s has %d values of %s instead of one", t.Seq, t.Benchmark, len(values), metric)
	}
	return values[0], nil
}

// mostOwnCPU is the limit of Touchstone's own CPU time for each second of its child processes.
const mostOwnCPU = 0.10

// ownCPU prints for each trial Touchstone's own CPU time relative to HostCPU. HostCPU includes the containers' own time, in
// which they write one line.
func ownCPU(w io.Writer, exports []string) error {
	list, err := trials(exports)
	if err != nil {
		return err
	}
	exceeds := false
	for _, t := range list {
		hostCPU, err := value(t, "HostCPU")
		if err != nil {
			return err
		}
		share := t.Self.Seconds() / hostCPU
		fmt.Fprintf(w, "%s %s: own CPU %.1f %% (%.3f s against %.3f s)\n", t.Target, t.Benchmark, 100*share, t.Self.Seconds(), hostCPU)
		exceeds = exceeds || share >= mostOwnCPU
	}
	if exceeds {
		return fmt.Errorf("own CPU: %w of %.0f %%", errBeyond, 100*mostOwnCPU)
	}
	return nil
}

// rhythm prints a line for each measured lifecycle: the microseconds from the end of the create before to the begin of its own
// create. The bare loop follows them. A difference of wall-clock times is exact enough for that.
func rhythm(w io.Writer, export string) error {
	list, err := allTrials([]string{export})
	if err != nil {
		return err
	}
	var creation time.Time // the end of the create before
	for _, t := range list {
		i := slices.IndexFunc(t.Phases, func(p result.Phase) bool { return p.Name == "create" })
		if i < 0 {
			return fmt.Errorf("trial %d has no create", t.Seq)
		}
		start := t.Phases[i].Start
		if !t.Warmup {
			if creation.IsZero() {
				return errors.New("the export has no warm-up before the first lifecycle")
			}
			fmt.Fprintln(w, t.Started.Add(start).Sub(creation).Microseconds())
		}
		creation = t.Started.Add(start + t.Phases[i].Duration)
	}
	return nil
}
