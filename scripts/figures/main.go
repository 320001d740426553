// Command figures computes the figures of the scripts beside it, from the output of touchstone export and touchstone report.
// It measures nothing.
//
//	figures overhead TARGET BARE EXPORT...   Touchstone's times against a bare loop's
//	figures pause EXPORT                     the time between Touchstone's trials
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
		bare, err := os.Open(args[2])
		if err != nil {
			return err
		}
		defer func() { _ = bare.Close() }()
		return overhead(w, args[1], bare, args[3:])
	case len(args) == 2 && args[0] == "pause":
		return pause(w, args[1])
	case len(args) >= 2 && args[0] == "cpu":
		return ownCPU(w, args[1:])
	case len(args) >= 2 && args[0] == "aa":
		return falseAlarms(w, args[1:])
	}
	return errors.New("usage: figures overhead TARGET BARE EXPORT... | cpu EXPORT... | aa REPORT... | pause EXPORT")
}

// trials returns the measured trials of the exports. A failed trial is an error: a figure without it would look too good.
func trials(files []string) ([]result.Trial, error) {
	var all []result.Trial
	for _, name := range files {
		doc, err := decode(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, run := range doc.Runs {
			for _, t := range run.Trials {
				if t.Status != result.OK {
					return nil, fmt.Errorf("trial %d of run %s is %s: %s", t.Seq, run.ID, t.Status, t.Reason)
				}
				if !t.Warmup {
					all = append(all, t)
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the exports have no trials")
	}
	return all, nil
}

func decode(name string) (result.Document, error) {
	f, err := os.Open(name)
	if err != nil {
		return result.Document{}, err
	}
	defer func() { _ = f.Close() }()
	return result.Decode(f)
}

// value is the one value of a metric in a trial.
func value(t result.Trial, metric string) (float64, error) {
	values := t.Values(metric)
	if len(values) != 1 {
		return 0, fmt.Errorf("trial %d of %s has %d values of %s instead of one", t.Seq, t.Benchmark, len(values), metric)
	}
	return values[0], nil
}
