package benchfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/touchstone-bench/touchstone/internal/result"
)

const goBenchCaveat = "imported from the Go benchmark format: a value is a mean over the iterations of one line, the file has no facts about the machine beyond its own configuration, and the order of trials is the order in the file"

// packageKey is the key of the configuration that changes within one call of go test.
const packageKey = "pkg"

// goBench reads the Go benchmark format. Lines with different configurations, other than the package, are different runs: they may be of
// different machines or programs.
func goBench(data []byte) ([]*builder, error) {
	in := benchfmt.NewReader(bytes.NewReader(data), "")
	var runs []*builder
	index := map[string]int{}
	trials, line := 0, 0
	for in.Scan() {
		switch record := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("line %d: %s; want a line such as BenchmarkName 100 5.2 ns/op, so correct or remove it", record.Line, record.Msg)
		case *benchfmt.Result:
			_, line = record.Pos()
			if err := tooMany(trials + 1); err != nil {
				return nil, err
			}
			trials++
			configuration := configurationOf(record)
			i, ok := index[configuration]
			if !ok {
				if i = len(runs); i == maxRuns {
					return nil, fmt.Errorf("line %d: it has more than %d configurations; split it", line, maxRuns)
				}
				index[configuration] = i
				b := newBuilder("gobench", goBenchCaveat)
				if configuration != "" {
					b.run.Caveats = append(b.run.Caveats, "Touchstone has not checked the configuration in the file, "+configuration)
				}
				runs = append(runs, b)
			}
			if err := runs[i].addLine(record); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w; give the output of go test -bench", line, err)
	}
	if len(runs) == 0 {
		return nil, errors.New("it has no results; give the output of go test -bench")
	}
	for _, b := range runs {
		if err := b.judgeUnits(in.Units()); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// configurationOf spells the configuration of a result without its package.
func configurationOf(r *benchfmt.Result) string {
	var parts []string
	for _, c := range r.Config {
		if c.Key != packageKey {
			parts = append(parts, result.ConditionText(c.Key+"="+string(c.Value)))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// addLine adds a line as a trial.
func (b *builder) addLine(r *benchfmt.Result) error {
	cell := result.Cell{Benchmark: string(r.Name.Full())}
	if path := r.GetConfig(packageKey); path != "" {
		cell.Params = packageKey + "=" + path
	}
	for _, text := range []string{cell.Benchmark, cell.Params} {
		if text != result.ConditionText(text) {
			return fmt.Errorf("the name %.80q is too long or not printable; change it", text)
		}
	}
	t := result.Trial{Cell: cell}
	for _, v := range r.Values {
		switch {
		case math.IsNaN(v.Value) || math.IsInf(v.Value, 0):
			return fmt.Errorf("%s of %s is %v, which is not a finite number; remove the line", v.Unit, cell.Benchmark, v.Value)
		case v.Unit != result.ConditionText(v.Unit):
			return fmt.Errorf("the unit %.80q is too long or not printable; change it", v.Unit)
		case slices.ContainsFunc(t.Samples, func(s result.Sample) bool { return s.Metric == v.Unit }):
			return fmt.Errorf("%s has two values of %s; remove one", cell.Benchmark, v.Unit)
		}
		t.Samples = append(t.Samples, result.Sample{Metric: v.Unit, Value: v.Value})
	}
	b.add(t, "")
	return nil
}

// judgeUnits describes the metrics, once all lines about units are read. It leaves out units without a better direction.
func (b *builder) judgeUnits(units benchfmt.UnitMetadataMap) error {
	left := map[string]bool{}
	trials := b.run.Trials
	b.run.Trials, b.blocks = nil, map[result.Cell]int{}
	for _, t := range trials {
		t.Samples = slices.DeleteFunc(t.Samples, func(s result.Sample) bool {
			direction := units.GetBetter(s.Metric)
			if direction == 0 {
				left[s.Metric] = true
				return true
			}
			metric := result.Metric{Name: s.Metric, Unit: unitOf(s.Metric), Better: result.Lower, Optional: true, Help: "mean over the iterations of one line"}
			if direction > 0 {
				metric.Better = result.Higher
			}
			b.describe(result.Benchmark{Name: t.Benchmark, Summary: "a benchmark of Go", Source: "the Go benchmark format"}, metric)
			return false
		})
		if len(t.Samples) > 0 {
			b.add(t, "")
		}
	}
	const advice = "add lines such as Unit p99-ns better=lower"
	switch {
	case len(b.run.Trials) == 0:
		return fmt.Errorf("no value has a known better direction (%s); %s", listed(left), advice)
	case len(left) > 0:
		b.run.Caveats = append(b.run.Caveats, fmt.Sprintf("left out because the file does not state their better direction: %s; %s", listed(left), advice))
	}
	return nil
}

// unitOf is the unit of a metric. benchfmt has converted its value to base units.
func unitOf(unit string) result.Unit {
	switch unit, _ = strings.CutSuffix(unit, "/op"); {
	case unit == "sec", strings.HasSuffix(unit, "-sec"):
		return result.Seconds
	case unit == "B", strings.HasSuffix(unit, "-B"), strings.HasSuffix(unit, "-bytes"):
		return result.Bytes
	case unit == "B/s":
		return result.BytesPerSecond
	case unit == "allocs":
		return result.Count
	}
	return result.Score
}
