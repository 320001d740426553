package ci

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/forge/forgetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// action is action.yml.
type action struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Author      string            `yaml:"author"`
	Branding    map[string]string `yaml:"branding"`
	Inputs      map[string]struct {
		Description string `yaml:"description"`
		Required    bool   `yaml:"required"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []step `yaml:"steps"`
	} `yaml:"runs"`
}

// step is a step of an action or of a workflow.
type step struct {
	ID    string            `yaml:"id"`
	Name  string            `yaml:"name"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	With  map[string]string `yaml:"with"`
	Shell string            `yaml:"shell"`
	Env   map[string]string `yaml:"env"`
	Run   string            `yaml:"run"`
}

func parseAction(t *testing.T) action {
	t.Helper()
	var a action
	must.Do(t, yaml.UnmarshalWithOptions([]byte(read(t, "action.yml")), &a, yaml.Strict()))
	return a
}

// job is a job of GitHub Actions, or of GitLab, on a runner of the test.
type job struct {
	workspace string
	// variables are the variables of the service and of the test.
	variables map[string]string
	// inputs are the inputs of the action or of the component.
	inputs map[string]string
	token  string

	// The rest is the outcome.
	log, summary string
	// code is the exit code of the script that compares.
	code    int
	outputs map[string]string
	report  string
}

// newJob returns a job of a pull or merge request, which compares results with a release.
func newJob(t *testing.T, r *release) *job {
	t.Helper()
	dir, err := results()
	must.Do(t, err)
	workspace := t.TempDir()
	return &job{
		workspace: workspace, token: forgetest.Token,
		variables: map[string]string{"PATH": os.Getenv("PATH"), "HOME": workspace, "TOUCHSTONE_SIGNERS": strings.TrimSpace(r.signers)},
		inputs: map[string]string{
			"command": "compare", "baseline": filepath.Join(dir, "old"), "candidate": filepath.Join(dir, "equal"), "args": "--fail-on slower:5%", "releases": r.serve(t),
		},
	}
}

// script executes a script with a shell, and returns its exit code.
func (j *job) script(t *testing.T, shell []string, text string, variables map[string]string) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	cmd := exec.CommandContext(t.Context(), shell[0], append(shell[1:], file)...)
	cmd.Dir, cmd.Env = j.workspace, []string{}
	for _, set := range []map[string]string{j.variables, variables} {
		for name, value := range set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	output, err := cmd.CombinedOutput()
	j.log += string(output)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	must.Do(t, err)
	return 0
}

// expression matches the expressions of GitHub in a text.
var expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)

// github is the state of an action under way.
type github struct {
	job    *job
	inputs map[string]string
	// outputs are the outputs of the step "compare".
	outputs map[string]string
}

// value evaluates the operand of an expression.
func (g *github) value(t *testing.T, text string) string {
	t.Helper()
	name, output := strings.CutPrefix(text, "steps.compare.outputs.")
	input, ok := strings.CutPrefix(text, "inputs.")
	switch {
	case output:
		return g.outputs[name]
	case ok:
		value, ok := g.inputs[input]
		if !ok {
			t.Errorf("the action has no input %q", input)
		}
		return value
	case text == "github.token":
		return g.job.token
	}
	literal, ok := strings.CutPrefix(text, "'")
	if !ok {
		t.Errorf("the expression %q is unknown", text)
	}
	return strings.TrimSuffix(literal, "'")
}

// expand replaces the expressions in a text.
func (g *github) expand(t *testing.T, text string) string {
	return expression.ReplaceAllStringFunc(text, func(match string) string { return g.value(t, expression.FindStringSubmatch(match)[1]) })
}

// holds evaluates the condition of a step. Without a function of the status no step before it may have failed.
func (g *github) holds(t *testing.T, condition string, failed bool) bool {
	t.Helper()
	if failed && !strings.Contains(condition, "!cancelled()") {
		return false
	}
	if condition == "" {
		return true
	}
	for _, term := range strings.Split(expression.FindStringSubmatch(condition)[1], " && ") {
		if left, right, ok := strings.Cut(term, " == "); ok && g.value(t, left) != g.value(t, right) {
			return false
		}
		if left, right, ok := strings.Cut(term, " != "); ok && g.value(t, left) == g.value(t, right) {
			return false
		}
	}
	return true
}

// github executes action.yml.
func (j *job) github(t *testing.T) {
	t.Helper()
	a := parseAction(t)
	path, temp := t.TempDir(), t.TempDir()
	for _, dir := range []string{".github", "scripts"} {
		must.Do(t, os.Mkdir(filepath.Join(path, dir), 0o755))
	}
	if signers := j.variables["TOUCHSTONE_SIGNERS"]; signers != "" {
		must.Do(t, os.WriteFile(filepath.Join(path, ".github/allowed_signers"), []byte(signers+"\n"), 0o600))
	}
	must.Do(t, os.WriteFile(filepath.Join(path, "scripts/ci.sh"), []byte(read(t, "scripts/ci.sh")), 0o700))
	g := &github{job: j, inputs: map[string]string{}, outputs: map[string]string{}}
	for name, input := range a.Inputs {
		g.inputs[name] = g.expand(t, input.Default)
	}
	for name, value := range j.inputs {
		if _, ok := a.Inputs[name]; !ok {
			t.Fatalf("action.yml has no input %q", name)
		}
		g.inputs[name] = value
	}
	summary := filepath.Join(temp, "summary")
	for i, s := range a.Runs.Steps {
		if !g.holds(t, s.If, j.code != 0) {
			continue
		}
		output := filepath.Join(t.TempDir(), "output")
		variables := map[string]string{
			"GITHUB_ACTION_PATH": path, "RUNNER_TEMP": temp, "GITHUB_STEP_SUMMARY": summary, "GITHUB_OUTPUT": output, "GITHUB_ACTIONS": "true",
		}
		if i == 0 {
			variables["TOUCHSTONE_SIGNERS"] = "" // the step reads the file
		}
		for name, value := range s.Env {
			variables[name] = g.expand(t, value)
		}
		code := j.script(t, []string{"bash", "--noprofile", "--norc", "-e", "-o", "pipefail"}, s.Run, variables)
		if s.ID == "compare" {
			j.code = code
			text, err := os.ReadFile(output)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				g.outputs[name] = value
			}
		} else if code != 0 {
			t.Errorf("a step beside the comparison failed with %d:\n%s", code, j.log)
		}
	}
	j.outputs = map[string]string{}
	for name, output := range a.Outputs {
		j.outputs[name] = g.expand(t, output.Value)
	}
	j.report = j.outputs["report"]
	text, err := os.ReadFile(summary)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	j.summary = string(text)
}
