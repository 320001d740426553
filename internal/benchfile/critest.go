package benchfile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

const critestCaveat = "imported from critest's JSON, which has no facts about the machine, the engine and the runtime: times are differences of the wall clock, and the order of trials is the order in the file"

// critestForm is the form of the files of critest -benchmark -benchmarking-output-dir.
const critestForm = "critest's {operationsNames, numParallel, datapoints: [{operationsDurationsNs}]}"

type critestFile struct {
	Operations []string    `json:"operationsNames"`
	Parallel   int         `json:"numParallel"`
	Datapoints []datapoint `json:"datapoints"`
}

// datapoint has the times of one object, in the order of the operations.
type datapoint struct {
	Start     int64   `json:"startTime"` // ns since 1970
	End       int64   `json:"endTime"`
	Durations []int64 `json:"operationsDurationsNs"`
}

func critest(data []byte) ([]*builder, error) {
	var file critestFile
	if err := decode(data, &file, critestForm); err != nil {
		return nil, err
	}
	count := len(file.Operations)
	if count == 0 || len(file.Datapoints) == 0 {
		return nil, fmt.Errorf("it has %d operations and %d datapoints; want %s", count, len(file.Datapoints), critestForm)
	}
	if err := tooMany(len(file.Datapoints)); err != nil {
		return nil, err
	}
	if sorted := slices.Sorted(slices.Values(file.Operations)); len(slices.Compact(sorted)) != count || sorted[0] == "" {
		return nil, errors.New(place(data, "operationsNames") + ": operationsNames has an empty or repeated name; want " + critestForm)
	}
	b := newBuilder("critest", critestCaveat)
	cell := result.Cell{Benchmark: "critest." + result.ConditionText(file.Operations[0])}
	if count > 1 {
		cell.Benchmark += "…" + result.ConditionText(file.Operations[count-1])
	}
	if file.Parallel > 1 {
		cell.Params = fmt.Sprintf("parallel=%d", file.Parallel)
	}
	for _, name := range file.Operations {
		b.describe(result.Benchmark{Name: cell.Benchmark, Summary: "operations of the CRI on one object, one after the other", Source: "critest"},
			seconds(result.ConditionText(name), "time of the operation, as critest recorded it"))
	}
	for i, d := range file.Datapoints {
		t := result.Trial{Cell: cell, Started: moment(d.Start), Elapsed: time.Duration(max(0, d.End-d.Start))}
		if len(d.Durations) != count {
			b.add(t, fmt.Sprintf("critest recorded %d times of %d operations", len(d.Durations), count))
			continue
		}
		reason := ""
		for j, ns := range d.Durations {
			name := file.Operations[j]
			if ns < 0 {
				return nil, fmt.Errorf("%s: datapoint %d: %.80q took %d ns, and a time is not negative; measure again, because the wall clock was set back",
					place(data, "datapoints", i, "operationsDurationsNs", j), i+1, name, ns)
			}
			if ns == 0 {
				reason = fmt.Sprintf("critest recorded 0 ns for %s", result.ConditionText(name))
			}
			t.Samples = append(t.Samples, result.Sample{Metric: result.ConditionText(name), Value: float64(ns) / 1e9})
		}
		b.add(t, reason)
	}
	b.run.Started = b.run.Trials[0].Started
	return []*builder{b}, nil
}
