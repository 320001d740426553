package probe

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// then separates the programs in the arguments of a sequence.
const then = "--then"

// marker begins the line that follows the output of each program of a sequence.
const marker = `{"step":`

// Sequence calls programs one after the other in a directory of the container, until one fails. The values are the values of
// all programs; no name may occur twice.
func Sequence(dir string, programs ...workload.Program) workload.Program {
	args := []string{Path, "sequence", "--dir", dir, "--"}
	for i, p := range programs {
		if i > 0 {
			args = append(args, then)
		}
		args = append(args, p.Args...)
	}
	return workload.Program{Args: args, Parse: func(stdout []byte) (workload.Values, error) { return parseSequence(stdout, programs) }}
}

func parseSequence(stdout []byte, programs []workload.Program) (workload.Values, error) {
	results := workload.Values{}
	for i, p := range programs {
		output, took, rest, err := cutStep(stdout, i+1, len(programs))
		if err != nil {
			return nil, fmt.Errorf("find the output of step %d of %d: %w", i+1, len(programs), err)
		}
		stdout = rest
		parsed, err := p.Parse(output)
		if err != nil {
			return nil, fmt.Errorf("read the output of step %d of %d, %q: %w", i+1, len(programs), p.Args[0], err)
		}
		values := maps.Clone(parsed)
		if p.Elapsed != "" {
			values[p.Elapsed] = took.Seconds()
		}
		for name := range values {
			if _, duplicate := results[name]; duplicate {
				return nil, fmt.Errorf("step %d of %d has %s once more", i+1, len(programs), name)
			}
		}
		maps.Copy(results, values)
	}
	if len(stdout) > 0 {
		return nil, fmt.Errorf("more output follows the last step: %q", workload.Excerpt(string(stdout)))
	}
	return results, nil
}

// cutStep separates the output of a step from the rest.
func cutStep(stdout []byte, step, count int) (output []byte, took time.Duration, rest []byte, err error) {
	end := 0
	for line := range bytes.Lines(stdout) {
		if !bytes.HasPrefix(line, []byte(marker)) {
			end += len(line)
			continue
		}
		if took, err = parseMarker(line, step, count); err != nil {
			return nil, 0, nil, err
		}
		return stdout[:end], took, stdout[end+len(line):], nil
	}
	return nil, 0, nil, workload.ErrCutOff
}

func parseMarker(line []byte, step, count int) (time.Duration, error) {
	content, complete := bytes.CutSuffix(line, []byte("\n"))
	if !complete {
		return 0, workload.ErrCutOff
	}
	f, err := ReadFields(content)
	if err != nil {
		return 0, err
	}
	var gotStep, gotOf, ns uint64
	if err := f.Decode(map[string]any{"step": &gotStep, "of": &gotOf, "ns": &ns}); err != nil {
		return 0, err
	}
	if gotStep != uint64(step) || gotOf != uint64(count) {
		return 0, fmt.Errorf("it is the end of step %d of %d", gotStep, gotOf)
	}
	if ns == 0 || ns > maxLow {
		return 0, fmt.Errorf("a program took %d ns", ns)
	}
	return time.Duration(ns), nil
}
