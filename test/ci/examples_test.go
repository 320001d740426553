package ci

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/forge/forgetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// workflow is a workflow of GitHub Actions with one job.
type workflow struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		If      string            `yaml:"if"`
		RunsOn  []string          `yaml:"runs-on"`
		Timeout int               `yaml:"timeout-minutes"`
		Env     map[string]string `yaml:"env"`
		Steps   []step            `yaml:"steps"`
	} `yaml:"jobs"`
}

// newExample returns a job with the installed program and the files of a repository, on a runner with the fake engine.
func newExample(t *testing.T) *job {
	t.Helper()
	j := newJob(t, signed(t))
	file, err := program()
	must.Do(t, err)
	bin := t.TempDir()
	// Other runs of the machine do not matter to the fake engine.
	wrapper := fmt.Sprintf("#!/bin/sh\nverb=$1\nshift\n[ \"$verb\" != benchmark ] || set -- --allow-concurrent \"$@\"\nexec %s \"$verb\" \"$@\"\n", file)
	must.Do(t, os.WriteFile(filepath.Join(bin, "touchstone"), []byte(wrapper), 0o700))
	j.variables["PATH"] = bin + ":" + j.variables["PATH"]
	gates := []byte(read(t, "examples/ci/gates.yaml"))
	for _, dir := range []string{"base", "head", "performance"} {
		dir := filepath.Join(j.workspace, dir)
		must.Do(t, os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "gates.yaml"), gates, 0o600),
			os.WriteFile(filepath.Join(dir, "Makefile"), []byte("runc:\n\ttouch runc && chmod +x runc\n"), 0o600))
	}
	return j
}

// workflow executes the scripts of a workflow, and this action with its inputs. changes replace some of the inputs. codes are the exit codes of scripts
// that fail, by the names of their steps.
func (j *job) workflow(t *testing.T, file string, variables, changes map[string]string, codes map[string]int) {
	t.Helper()
	var w workflow
	must.Do(t, yaml.UnmarshalWithOptions([]byte(read(t, file)), &w, yaml.Strict()))
	example := w.Jobs["compare"]
	if _, ok := w.On["pull_request"]; !ok || len(w.On) != 1 || len(w.Jobs) != 1 || w.Permissions["pull-requests"] != "write" || example.RunsOn == nil {
		t.Errorf("%s has another event, another number of jobs, no permission or no runner", file)
	}
	if example.If != "github.event.pull_request.head.repo.full_name == github.repository" {
		t.Errorf("%s runs the code of forks", file)
	}
	for _, s := range example.Steps {
		switch {
		case s.Run != "":
			environment := maps.Clone(example.Env)
			maps.Copy(environment, variables)
			if code := j.script(t, []string{"bash", "-e"}, s.Run, environment); code != codes[s.Name] {
				t.Fatalf("%s: step %s ended with %d, want %d:\n%s", file, s.Name, code, codes[s.Name], j.log)
			}
		case strings.HasPrefix(s.Uses, "touchstone-bench/touchstone@"):
			releases := j.inputs["releases"]
			j.inputs = s.With
			maps.Copy(j.inputs, changes)
			j.inputs["releases"] = releases
			j.github(t)
		case s.Name == "Keep the report":
			if s.With["path"] != "${{ steps.compare.outputs.report }}" || s.If != "always()" || j.report == "" {
				t.Errorf("%s keeps %q, and not the report in %q", file, s.With["path"], j.report)
			}
		}
	}
}

var fakeRuns = map[string]string{"TARGETS": "fake/candidate@jitter=0.02", "ROUNDS": "4"}

func TestExampleOfGates(t *testing.T) {
	needs(t)
	j := newExample(t)
	weaker := strings.ReplaceAll(read(t, "examples/ci/gates.yaml"), "%", "0%")
	must.Do(t, os.WriteFile(filepath.Join(j.workspace, "head/gates.yaml"), []byte(weaker), 0o600)) // the gates of the base decide
	j.workflow(t, "examples/ci/github-actions.yaml", fakeRuns, nil, nil)
	j.check(t, 0, "Passed: ")
	if j.outputs["verdict"] != "not-worse" {
		t.Errorf("the outputs are %q", j.outputs)
	}
	must.Do(t, scale(filepath.Join(j.workspace, "results/head"), 1.2))
	j.github(t)
	j.check(t, 4, "Regression: of 3 gated metrics 1 worse than the margin")
}

func TestExampleOfBuilds(t *testing.T) {
	needs(t)
	j := newExample(t)
	j.workflow(t, "examples/ci/github-actions-builds.yaml", nil, map[string]string{
		"baseline": "fake/old@jitter=0.02", "candidate": "fake/new@jitter=0.02", "args": "--margin 3% --repeat 6 --blocks 2 --allow-concurrent",
	}, nil)
	j.check(t, 0, "B is not worse by the margin.")
	for _, name := range []string{"base/runc", "head/runc"} {
		if _, err := os.Stat(filepath.Join(j.workspace, name)); err != nil {
			t.Error(err)
		}
	}
}

// The example reaches the tracer with both gates, and does not pass without one. TestRealCounts of package cli has the same commands with a tracer.
func TestExampleOfCounts(t *testing.T) {
	needs(t)
	j := newExample(t)
	counts := "touchstone-counts 1\ntarget: fake/new\nruntime: fake 1\nkernel: 6.1\narchitecture: amd64\ntouchstone: dev\ntraces: 10\n" +
		"\nbenchmark: operations.container.lifecycle\ncreate: runtime: mount = 33\n"
	must.Do(t, os.WriteFile(filepath.Join(j.workspace, "head/counts.txt"), []byte(counts), 0o600))
	j.workflow(t, "examples/ci/github-actions-counts.yaml", map[string]string{"BUILD": "fake/new"},
		map[string]string{"baseline": "fake/old", "candidate": "fake/new"}, map[string]int{"Check the expected counts": 5})
	j.check(t, 5, "count the calls of operations.container.lifecycle on fake/old: fake targets have no processes")
	if j.outputs["verdict"] != "error" || !strings.HasSuffix(strings.TrimSpace(j.log), "count the calls of fake/new: fake targets have no processes") {
		t.Errorf("the outputs are %q, and the log is\n%s", j.outputs, j.log)
	}
}

func TestExampleOfGitLab(t *testing.T) {
	needs(t)
	var pipeline map[string]any
	must.Do(t, yaml.Unmarshal([]byte(read(t, "examples/ci/gitlab-ci.yaml")), &pipeline))
	text, err := yaml.Marshal(pipeline["include"])
	must.Do(t, err)
	var files []struct {
		Remote string         `yaml:"remote"`
		Inputs map[string]any `yaml:"inputs"`
	}
	must.Do(t, yaml.UnmarshalWithOptions(text, &files, yaml.Strict()))
	if len(files) != 1 || files[0].Remote != "https://raw.githubusercontent.com/touchstone-bench/touchstone/COMMIT/"+componentFile {
		t.Fatalf("the example includes %+v", files)
	}
	delete(pipeline, "include")
	text, err = yaml.Marshal(pipeline)
	must.Do(t, err)
	var jobs map[string]pipelineJob
	must.Do(t, yaml.UnmarshalWithOptions(text, &jobs, yaml.Strict()))
	const name = "runtime-performance"
	j := newExample(t)
	forge := forgetest.New(t)
	joinGitLab(t, j, forge, false)
	inputs := maps.Clone(files[0].Inputs)
	inputs["releases"] = j.inputs["releases"]
	p := include(t, inputs)[name]
	if len(jobs) != 1 || len(jobs[name].BeforeScript) != 1 || len(p.Rules) != 1 || !slices.Equal(p.AllowFailure.ExitCodes, []int{7}) || p.Artifacts.Reports["junit"] == "" ||
		!strings.HasSuffix(p.Rules[0].If, "&& $CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID") {
		t.Fatalf("the example has the jobs %+v, and the component %+v", jobs, p)
	}
	maps.Copy(j.variables, fakeRuns)
	baseline := jobs[name].BeforeScript[0] + `
touchstone baseline save main results/ -d results
touchstone baseline show main -o json -O performance/main.json -d results
rm -r results`
	if code := j.script(t, []string{"bash", "-e"}, baseline, nil); code != 0 {
		t.Fatalf("the baseline ended with %d:\n%s", code, j.log)
	}
	example := p
	example.BeforeScript = jobs[name].BeforeScript
	j.pipeline(t, "bash", example)
	j.check(t, 0, "wrote the comment on merge request 7")
	must.Do(t, scale(filepath.Join(j.workspace, "results"), 1.2))
	j.pipeline(t, "bash", p)
	j.check(t, 4, "updated the comment on merge request 7")
	if comments := forge.Comments(); len(comments) != 1 || !strings.Contains(comments[0].Body, "Touchstone: performance/main.json against results\n") {
		t.Errorf("the comments are %+v", comments)
	}
}
