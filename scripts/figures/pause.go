package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// pause prints the median time in microseconds from the end of a trial's last phase to the begin of the next trial's first
// phase. The bare loop pauses as long. A difference of wall-clock times is exact enough for that.
func pause(w io.Writer, export string) error {
	all, err := trials([]string{export})
	if err != nil {
		return err
	}
	var between []float64
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		if len(before.Phases) == 0 || len(after.Phases) == 0 {
			return errors.New("the trials have no phases")
		}
		last := before.Phases[len(before.Phases)-1]
		gap := wall(after, after.Phases[0].Start).Sub(wall(before, last.Start+last.Duration))
		between = append(between, float64(gap.Microseconds()))
	}
	if len(between) == 0 {
		return errors.New("the export has only one trial, and no time between trials")
	}
	fmt.Fprintf(w, "%.0f\n", max(0, stats.Summarize(between, 1).Median))
	return nil
}

// wall is the wall-clock time of a moment of a trial.
func wall(t result.Trial, sinceStart time.Duration) time.Time { return t.Started.Add(sinceStart) }
