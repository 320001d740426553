// Package benchfile reads the results of other benchmark programs: the JSON of hyperfine and of critest, and the Go benchmark format.
//
// These files have no facts about the machine and about targets, no blocks and no pairs. A file becomes a run of one target, Target, on an
// unknown machine, and each of its commands or benchmarks is a benchmark of that run. Reports compare the targets of one benchmark by
// block. So they never pair values of two commands, which were measured one after the other. The runs can be compared with runs of other
// files: sides of a comparison need no pairs.
//
// The package refuses values that are negative or not finite, lists of different lengths, and files above its limits. A value that a program
// recorded for a failed execution becomes a failed trial.
package benchfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// Limits of a file.
const (
	// MaxSize is the maximum size of a file in bytes.
	MaxSize   = 64 << 20
	maxTrials = 100_000 // in all runs
	maxRuns   = 1000
)

// Target is the target of all runs.
const Target = "unknown"

// Kinds lists the files that Decode reads.
func Kinds() []textfile.Kind {
	return []textfile.Kind{textfile.Hyperfine, textfile.Critest, textfile.GoBench}
}

// Decode reads the text of a file. name becomes the name of the runs. Errors begin with the line.
func Decode(kind textfile.Kind, data []byte, name string) ([]result.Run, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it has more than %d bytes; split it", MaxSize)
	}
	var runs []*builder
	var err error
	switch kind {
	case textfile.Hyperfine:
		runs, err = hyperfine(data)
	case textfile.Critest:
		runs, err = critest(data)
	default:
		runs, err = goBench(data)
	}
	if err != nil {
		return nil, err
	}
	var list []result.Run
	for _, b := range runs {
		run, err := b.finish(name)
		if err != nil {
			return nil, err
		}
		list = append(list, run)
	}
	return list, nil
}

// builder makes a run.
type builder struct {
	run    result.Run
	blocks map[result.Cell]int // the number of trials
}

func newBuilder(program string, caveats ...string) *builder {
	return &builder{blocks: map[result.Cell]int{}, run: result.Run{
		State: result.Complete, Baseline: Target, Host: result.Host{Hostname: result.UnknownHost}, Tool: result.Tool{Version: program},
		Targets: []result.Target{{Name: Target}}, Caveats: caveats,
	}}
}

// describe adds a metric to a benchmark, and the benchmark to the run.
func (b *builder) describe(benchmark result.Benchmark, metric result.Metric) {
	index := slices.IndexFunc(b.run.Bench, func(b result.Benchmark) bool { return b.Name == benchmark.Name })
	if index < 0 {
		index = len(b.run.Bench)
		b.run.Bench = append(b.run.Bench, benchmark)
	}
	metrics := &b.run.Bench[index].Metrics
	if !slices.ContainsFunc(*metrics, func(m result.Metric) bool { return m.Name == metric.Name }) {
		*metrics = append(*metrics, metric)
	}
}

// add adds a trial. A trial with a reason is a failed one, and has no values.
func (b *builder) add(t result.Trial, reason string) {
	t.Target, t.Status = Target, result.OK
	if reason != "" {
		t.Status, t.Reason, t.Samples = result.Failed, reason, nil
	}
	t.Seq, t.Block = len(b.run.Trials)+1, b.blocks[t.Cell]
	b.blocks[t.Cell]++
	b.run.Trials = append(b.run.Trials, t)
}

// finish completes the run. Its ID is derived from its content, so the same file always has the same IDs.
func (b *builder) finish(name string) (result.Run, error) {
	text, err := json.Marshal(b.run)
	if err != nil {
		return result.Run{}, err
	}
	b.run.ID = fmt.Sprintf("%s-%x", b.run.Tool.Version, sha256.Sum256(text))[:30]
	b.run.Name = result.ConditionText(name)
	return b.run, b.run.Validate()
}

// decode reads a JSON document. form names the fields that are needed.
func decode(data []byte, document any, form string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	err := d.Decode(document)
	if err == nil {
		err = result.CheckNumbers(bytes.TrimSpace(data[:d.InputOffset()]), document)
	}
	offset := d.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("line %d: the file is cut off; copy it again", lineOf(data, int64(len(data))))
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: %w; export it again", lineOf(data, syntax.Offset), err)
	case errors.As(err, &kind):
		return fmt.Errorf("line %d: %s is a JSON %s; want %s", lineOf(data, kind.Offset), kind.Field, kind.Value, form)
	case err != nil:
		return fmt.Errorf("%w; want %s", err, form)
	case len(bytes.TrimSpace(data[offset:])) > 0:
		return fmt.Errorf("line %d: another text follows the JSON document; give a file with one document", lineOf(data, offset+1))
	}
	return nil
}

func lineOf(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
}

// place returns "line N" of a value in a JSON document, by its keys and indexes.
func place(data []byte, path ...any) string {
	d := json.NewDecoder(bytes.NewReader(data))
	for _, step := range path {
		if !enter(d, step) {
			return "line 1"
		}
	}
	if d.More() {
		var value json.RawMessage
		_ = d.Decode(&value) // the document was read before
	}
	return fmt.Sprintf("line %d", lineOf(data, d.InputOffset()))
}

// enter moves a decoder to the value of a key, or to an item of a list.
func enter(d *json.Decoder, step any) bool {
	var skipped json.RawMessage
	if _, err := d.Token(); err != nil { // the bracket
		return false
	}
	index, isIndex := step.(int)
	for i := 0; d.More(); i++ {
		if isIndex && i == index {
			return true
		}
		if !isIndex {
			if key, err := d.Token(); err != nil || key == step {
				return err == nil
			}
		}
		if d.Decode(&skipped) != nil {
			return false
		}
	}
	return false
}

// seconds describes a metric of time.
func seconds(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower, Help: help}
}

// tooMany is the error of a file with more values than Decode reads.
func tooMany(trials int) error {
	if trials > maxTrials {
		return fmt.Errorf("it has more than %d measurements; split it", maxTrials)
	}
	return nil
}

// moment is a time in nanoseconds since 1970; it is zero if it is unknown or no time of a measurement.
func moment(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// listed lists names in order, up to ten of them.
func listed(names map[string]bool) string {
	const limit = 10
	list := slices.Sorted(maps.Keys(names))
	if rest := len(list) - limit; rest > 0 {
		list = append(list[:limit], fmt.Sprintf("%d more", rest))
	}
	return strings.Join(list, ", ")
}
