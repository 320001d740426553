package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/touchstone-bench/touchstone/internal/cli"
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

// steps FILE TO NAME... writes the commands of a workflow of GitHub Actions, or of a job of GitLab, as a script: of all steps, or of those with a
// name. It refuses a file with an unknown key, and one that lacks the trigger, the runner, the report or the condition that skips forks.
func steps(ts *testscript.TestScript, _ bool, args []string) {
	read := githubSteps
	if strings.Contains(args[0], "gitlab") {
		read = gitlabSteps
	}
	commands, err := read([]byte(ts.ReadFile(args[0])), args[2:])
	ts.Check(err)
	script := "set -eu\n" + strings.Join(commands, "\n") + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(script), 0o700))
}

func githubSteps(text []byte, names []string) (commands []string, err error) {
	var workflow struct {
		Name        string            `yaml:"name"`
		On          map[string]any    `yaml:"on"`
		Permissions map[string]string `yaml:"permissions"`
		Jobs        map[string]struct {
			If      string            `yaml:"if"`
			RunsOn  []string          `yaml:"runs-on"`
			Timeout int               `yaml:"timeout-minutes"`
			Env     map[string]string `yaml:"env"`
			Steps   []struct {
				Name string            `yaml:"name"`
				Uses string            `yaml:"uses"`
				With map[string]string `yaml:"with"`
				If   string            `yaml:"if"`
				Run  string            `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := yaml.UnmarshalWithOptions(text, &workflow, yaml.Strict()); err != nil {
		return nil, err
	}
	if len(workflow.On) == 0 || len(workflow.Jobs) != 1 || workflow.Jobs["compare"].RunsOn == nil {
		return nil, errors.New("it has no event, no runner, or another number of jobs than one")
	}
	if workflow.Jobs["compare"].If != "github.event.pull_request.head.repo.full_name == github.repository" {
		return nil, errors.New("it runs the code of forks")
	}
	for _, s := range workflow.Jobs["compare"].Steps {
		if (s.Uses == "") == (s.Run == "") {
			return nil, fmt.Errorf("step %q needs either uses or run", s.Name)
		}
		if len(names) == 0 || slices.Contains(names, s.Name) {
			commands = append(commands, s.Run)
		}
	}
	if len(commands) == 0 {
		return nil, fmt.Errorf("no step has a name of %q", names)
	}
	return commands, nil
}

func gitlabSteps(text []byte, _ []string) ([]string, error) {
	var jobs map[string]struct {
		Stage        string            `yaml:"stage"`
		Tags         []string          `yaml:"tags"`
		Variables    map[string]string `yaml:"variables"`
		Script       []string          `yaml:"script"`
		AllowFailure struct {
			ExitCodes []int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
		Artifacts struct {
			When    string            `yaml:"when"`
			Paths   []string          `yaml:"paths"`
			Reports map[string]string `yaml:"reports"`
		} `yaml:"artifacts"`
		Rules []struct {
			If string `yaml:"if"`
		} `yaml:"rules"`
	}
	if err := yaml.UnmarshalWithOptions(text, &jobs, yaml.Strict()); err != nil {
		return nil, err
	}
	job := jobs["runtime-performance"]
	if len(jobs) != 1 || job.Artifacts.Reports["junit"] == "" || job.Rules == nil || !slices.Equal(job.AllowFailure.ExitCodes, []int{cli.ExitInconclusive}) {
		return nil, errors.New("it has another job, no report, no rule, or another exit code that is allowed")
	}
	for _, rule := range job.Rules {
		if !strings.HasSuffix(rule.If, "&& $CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID") {
			return nil, errors.New("it runs the code of forks")
		}
	}
	return job.Script, nil
}
