package workload

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Step is one of several programs that run one after the other.
type Step struct {
	Args []string
	// Parse is as Program's, and is told how long the program took from its start to its end, by the clock inside.
	Parse func(stdout []byte, took time.Duration) (Values, error)
}

// then separates the programs in the arguments of a sequence.
const then = "--then"

// marker begins the line that follows the output of each program of a sequence.
const marker = `{"step":`

// Sequence calls programs one after the other in a directory of the container, until one fails. The values are
// those of all of them: no two may give the same.
func Sequence(dir string, steps ...Step) Program {
	args := []string{Probe, "sequence", "--dir", dir, "--"}
	for i, s := range steps {
		if i > 0 {
			args = append(args, then)
		}
		args = append(args, s.Args...)
	}
	return Program{Args: args, Parse: func(stdout []byte) (Values, error) { return parseSequence(stdout, steps) }}
}

func parseSequence(stdout []byte, steps []Step) (Values, error) {
	all := Values{}
	for i, s := range steps {
		output, took, rest, err := cutStep(stdout, i+1, len(steps))
		if err != nil {
			return nil, fmt.Errorf("read what step %d of %d has written: %w", i+1, len(steps), err)
		}
		stdout = rest
		values, err := s.Parse(output, took)
		if err != nil {
			return nil, fmt.Errorf("read the output of step %d of %d, %q: %w", i+1, len(steps), s.Args[0], err)
		}
		for name := range values {
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("step %d of %d gives %s once more", i+1, len(steps), name)
			}
		}
		maps.Copy(all, values)
	}
	if len(stdout) > 0 {
		return nil, fmt.Errorf("after the last step there is more: %q", cut(string(stdout)))
	}
	return all, nil
}

// cutStep cuts off the output of the first step of several.
func cutStep(stdout []byte, step, of int) (output []byte, took time.Duration, rest []byte, err error) {
	end := 0
	for line := range bytes.Lines(stdout) {
		if !bytes.HasPrefix(line, []byte(marker)) {
			end += len(line)
			continue
		}
		if took, err = parseMarker(line, step, of); err != nil {
			return nil, 0, nil, err
		}
		return stdout[:end], took, stdout[end+len(line):], nil
	}
	return nil, 0, nil, ErrCutOff
}

func parseMarker(line []byte, step, of int) (time.Duration, error) {
	content, complete := bytes.CutSuffix(line, []byte("\n"))
	if !complete {
		return 0, ErrCutOff
	}
	f, err := parseFields(content)
	if err != nil {
		return 0, err
	}
	var gotStep, gotOf, ns uint64
	for name, value := range map[string]*uint64{"step": &gotStep, "of": &gotOf, "ns": &ns} {
		if err := f.whole(name, value); err != nil {
			return 0, err
		}
	}
	if err := f.rest(); err != nil {
		return 0, err
	}
	if gotStep != uint64(step) || gotOf != uint64(of) {
		return 0, fmt.Errorf("it is the end of step %d of %d", gotStep, gotOf)
	}
	if ns == 0 || ns > maxLow {
		return 0, fmt.Errorf("a program took %s ns", strconv.FormatUint(ns, 10))
	}
	return time.Duration(ns), nil
}
