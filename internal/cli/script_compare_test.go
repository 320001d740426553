package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// scaled FROM TO NAME FACTOR... writes runs NAME-0, NAME-1, … that are the run of an export with all durations multiplied by a factor. Each run starts
// an hour after the one before.
func scaled(ts *testscript.TestScript, _ bool, args []string) {
	source := ts.ReadFile(args[0])
	var all result.Document
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
		all.Runs = append(all.Runs, run)
	}
	var b bytes.Buffer
	ts.Check(result.Encode(&b, all))
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
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(ts.Getenv("REPOSITORY"), "docs", "schema", args[1]+".schema.json"))
	ts.Check(err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	ts.Check(err)
	ts.Check(schema.Validate(document))
}

// private FILE checks that only the user can read a file.
func private(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if info.Mode().Perm() != 0o600 {
		ts.Fatalf("%s has mode %v", args[0], info.Mode())
	}
}

// steps FILE TO writes the commands of a workflow of GitHub Actions or of a job of GitLab as a script. It refuses a file with another structure.
func steps(ts *testscript.TestScript, _ bool, args []string) {
	var workflow struct {
		On   map[string]any `yaml:"on"`
		Jobs map[string]struct {
			RunsOn any               `yaml:"runs-on"`
			Env    map[string]string `yaml:"env"`
			Steps  []struct {
				Name string            `yaml:"name"`
				Uses string            `yaml:"uses"`
				With map[string]any    `yaml:"with"`
				If   string            `yaml:"if"`
				Env  map[string]string `yaml:"env"`
				Run  string            `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	text := []byte(ts.ReadFile(args[0]))
	var script strings.Builder
	script.WriteString("set -eu\n")
	if strings.Contains(args[0], "gitlab") {
		var jobs map[string]struct {
			Stage     string            `yaml:"stage"`
			Variables map[string]string `yaml:"variables"`
			Tags      []string          `yaml:"tags"`
			Script    []string          `yaml:"script"`
			Artifacts map[string]any    `yaml:"artifacts"`
			Rules     []map[string]any  `yaml:"rules"`
		}
		ts.Check(yaml.Unmarshal(text, &jobs))
		for name, job := range jobs {
			if len(job.Script) == 0 || job.Artifacts["reports"] == nil {
				ts.Fatalf("job %s has no script or no report", name)
			}
			script.WriteString(strings.Join(job.Script, "\n") + "\n")
		}
	} else {
		ts.Check(yaml.Unmarshal(text, &workflow))
		if len(workflow.On) == 0 || len(workflow.Jobs) != 1 {
			ts.Fatalf("%s has no event, or another number of jobs than one", args[0])
		}
		for name, job := range workflow.Jobs {
			if job.RunsOn == nil {
				ts.Fatalf("job %s has no runner", name)
			}
			for _, s := range job.Steps {
				if (s.Uses == "") == (s.Run == "") {
					ts.Fatalf("step %q of job %s needs either uses or run", s.Name, name)
				}
				script.WriteString(s.Run + "\n")
			}
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(script.String()), 0o700))
}
