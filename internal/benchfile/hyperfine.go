package benchfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

const hyperfineCaveat = "imported from hyperfine's JSON, which has no facts about the machine and the programs, and no times of day: hyperfine measured the commands one after the other, so no report compares one with another"

// hyperfineForm is the documented form of hyperfine --export-json.
const hyperfineForm = "hyperfine's {results: [{command, times, exit_codes}]}"

// hyperfineFile is a file of hyperfine --export-json. Means and other summaries are not read.
type hyperfineFile struct {
	Results []command `json:"results"`
}

type command struct {
	Command    string            `json:"command"`
	Times      []float64         `json:"times"` // s
	Memory     []float64         `json:"memory_usage_byte"`
	ExitCodes  []any             `json:"exit_codes"` // a number, or null after a signal
	Parameters map[string]string `json:"parameters"`
}

func hyperfine(data []byte) ([]*builder, error) {
	var file hyperfineFile
	if err := decode(data, &file, hyperfineForm); err != nil {
		return nil, err
	}
	if len(file.Results) == 0 {
		return nil, errors.New("it has no results; want " + hyperfineForm)
	}
	b := newBuilder("hyperfine", hyperfineCaveat)
	names := map[result.Cell]bool{}
	for i, c := range file.Results {
		line := func(path ...any) string { return place(data, append([]any{"results", i}, path...)...) }
		name := result.ConditionText(c.Command)
		switch n := len(c.Times); {
		case name == "":
			return nil, fmt.Errorf("%s: command %d has no text; want %s", line(), i+1, hyperfineForm)
		case n == 0:
			return nil, fmt.Errorf("%s: command %d (%.80q) has no times; export it again with hyperfine --export-json", line(), i+1, name)
		case len(c.Memory) > 0 && len(c.Memory) != n, len(c.ExitCodes) > 0 && len(c.ExitCodes) != n:
			return nil, fmt.Errorf("%s: command %d (%.80q) has %d times, %d exit codes and %d values of memory; export it again", line(), i+1, name, n, len(c.ExitCodes), len(c.Memory))
		}
		cell := result.Cell{Benchmark: name, Params: c.params()}
		for n := 2; names[cell]; n++ { // the same command again is a measurement of its own
			cell.Benchmark = fmt.Sprintf("%s #%d", name, n)
		}
		names[cell] = true
		if err := tooMany(len(b.run.Trials) + len(c.Times)); err != nil {
			return nil, err
		}
		benchmark := result.Benchmark{Name: cell.Benchmark, Summary: "one execution of the command", Source: "hyperfine"}
		b.describe(benchmark, seconds("Time", "time of one execution, as hyperfine recorded it"))
		if len(c.Memory) > 0 {
			b.describe(benchmark, result.Metric{Name: "MaxMemory", Unit: result.Bytes, Better: result.Lower, Consumed: true, Optional: true, Help: "largest memory of the process, as hyperfine recorded it"})
		}
		for j, value := range c.Times {
			t := result.Trial{Cell: cell, Samples: []result.Sample{{Metric: "Time", Value: value}}}
			if len(c.Memory) > 0 {
				t.Samples = append(t.Samples, result.Sample{Metric: "MaxMemory", Value: c.Memory[j]})
			}
			if value < 0 {
				return nil, fmt.Errorf("%s: time %d of command %d (%.80q) is %v, and a time is not negative; export it again", line("times", j), j+1, i+1, name, value)
			}
			b.add(t, c.failure(j))
		}
	}
	return []*builder{b}, nil
}

// failure is the reason why an execution is no measurement.
func (c *command) failure(index int) string {
	switch {
	case len(c.ExitCodes) > 0 && c.ExitCodes[index] == nil:
		return "a signal ended the command"
	case len(c.ExitCodes) > 0 && c.ExitCodes[index] != 0.0:
		return fmt.Sprintf("exit code %.20v", c.ExitCodes[index])
	case c.Times[index] == 0:
		return "hyperfine recorded 0 s: the command takes no longer than the start of the shell, which hyperfine subtracts; measure it with hyperfine --shell=none"
	}
	return ""
}

// params spells the parameters in the order of their names.
func (c *command) params() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		parts = append(parts, name+"="+c.Parameters[name])
	}
	return result.ConditionText(strings.Join(parts, " "))
}
