package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// scaled FROM TO NAME FACTOR... writes runs NAME-0, NAME-1, … that are the run of an export with all durations multiplied by a factor. Each run starts
// an hour after the one before.
func scaled(ts *testscript.TestScript, _ bool, args []string) {
	source := ts.ReadFile(args[0])
	var export result.Document
	for i, factor := range args[3:] {
		f, err := strconv.ParseFloat(factor, 64)
		ts.Check(err)
		document, err := result.Decode(bytes.NewReader([]byte(source)))
		ts.Check(err)
		run := document.Runs[0]
		run.ID, run.Started = fmt.Sprint(args[2], "-", i), run.Started.AddDate(0, 0, i)
		run.Ended = run.Started.Add(1)
		var times []string
		for _, b := range run.Bench {
			for _, m := range b.Metrics {
				if m.Unit == result.Seconds {
					times = append(times, m.Name)
				}
			}
		}
		for n := range run.Trials {
			for k := range run.Trials[n].Samples {
				if s := &run.Trials[n].Samples[k]; slices.Contains(times, s.Metric) {
					s.Value *= f
				}
			}
		}
		export.Runs = append(export.Runs, run)
	}
	var b bytes.Buffer
	ts.Check(result.Encode(&b, export))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
}

// counted FROM TO N CALL=COUNT... copies an export and adds N traces to each run, of its first cell. The runtime makes the calls at create. COUNT+ is the
// count of a call with one more in each trace.
func counted(ts *testscript.TestScript, _ bool, args []string) {
	document, err := result.Decode(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	ts.Check(err)
	traces, err := strconv.Atoi(args[2])
	ts.Check(err)
	for i := range document.Runs {
		run := &document.Runs[i]
		for n := range traces {
			calls := map[string]int64{}
			for _, text := range args[3:] {
				name, number, _ := strings.Cut(text, "=")
				number, isVarying := strings.CutSuffix(number, "+")
				if calls[name], err = strconv.ParseInt(number, 10, 64); isVarying {
					calls[name] += int64(n)
				}
				ts.Check(err)
			}
			run.Traces = append(run.Traces, result.Trace{
				Seq: n + 1, Cell: run.Trials[0].Cell, Status: result.OK, Started: run.Started,
				Counts: []result.TraceCounts{{Step: "create", Component: "runtime", Calls: calls}},
			})
		}
	}
	var b bytes.Buffer
	ts.Check(result.Encode(&b, document))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
}

// negative FROM TO METRIC copies an export and sets the last value of a metric to −1 in its first run.
func negative(ts *testscript.TestScript, _ bool, args []string) {
	document, err := result.Decode(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	ts.Check(err)
	trials := document.Runs[0].Trials
	samples := trials[len(trials)-1].Samples
	for i := range samples {
		if samples[i].Metric == args[2] {
			samples[i].Value = -1
		}
	}
	var b bytes.Buffer
	ts.Check(result.Encode(&b, document))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
}

// fits FILE NAME checks a JSON document against the published schema of that name.
func fits(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(followsSchema(ts.Getenv("REPOSITORY"), args[1], []byte(ts.ReadFile(args[0]))))
}

// private FILE checks that only the user can read a file.
func private(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if info.Mode().Perm() != 0o600 {
		ts.Fatalf("%s has mode %v", args[0], info.Mode())
	}
}
