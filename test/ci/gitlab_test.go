package ci

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// component is templates/touchstone.yml: the inputs, and the job with their values.
type component struct {
	Spec struct {
		Inputs map[string]struct {
			Description string   `yaml:"description"`
			Type        string   `yaml:"type"`
			Options     []string `yaml:"options"`
			Default     *string  `yaml:"default"`
		} `yaml:"inputs"`
	} `yaml:"spec"`
	jobs any
}

// pipelineJob is a job of GitLab.
type pipelineJob struct {
	Stage        string         `yaml:"stage"`
	Tags         []string       `yaml:"tags"`
	Variables    map[string]any `yaml:"variables"`
	BeforeScript []string       `yaml:"before_script"`
	Script       []string       `yaml:"script"`
	AfterScript  []string       `yaml:"after_script"`
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

func parseComponent(t *testing.T) component {
	t.Helper()
	var c component
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, "templates/touchstone.yml"))), yaml.Strict())
	must.Do(t, decoder.Decode(&c))
	must.Do(t, decoder.Decode(&c.jobs))
	return c
}

// block matches an input in a value. GitLab replaces it after it has parsed the file.
var block = regexp.MustCompile(`\$\[\[ inputs\.(\w+) \]\]`)

// interpolate replaces the inputs in the keys and values of a document. A value that is one input keeps its type.
func interpolate(t *testing.T, value any, inputs map[string]any) any {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		document := map[string]any{}
		for name, v := range value {
			document[fmt.Sprint(interpolate(t, name, inputs))] = interpolate(t, v, inputs)
		}
		return document
	case []any:
		list := []any{}
		for _, v := range value {
			list = append(list, interpolate(t, v, inputs))
		}
		return list
	case string:
		if match := block.FindStringSubmatch(value); match != nil && match[0] == value {
			return inputs[match[1]]
		}
		return block.ReplaceAllStringFunc(value, func(match string) string { return fmt.Sprint(inputs[block.FindStringSubmatch(match)[1]]) })
	}
	return value
}

// include returns the jobs of the component with inputs.
func include(t *testing.T, values map[string]any) map[string]pipelineJob {
	t.Helper()
	c := parseComponent(t)
	inputs := maps.Clone(values)
	for name, input := range c.Spec.Inputs {
		value, ok := inputs[name]
		switch {
		case !ok && input.Default == nil:
			t.Fatalf("the input %s is missing", name)
		case !ok:
			inputs[name] = *input.Default
		case input.Options != nil && !slices.Contains(input.Options, fmt.Sprint(value)):
			t.Fatalf("the input %s is %v, and must be one of %q", name, value, input.Options)
		}
	}
	for name := range values {
		if _, ok := c.Spec.Inputs[name]; !ok {
			t.Fatalf("the component has no input %s", name)
		}
	}
	text, err := yaml.Marshal(interpolate(t, c.jobs, inputs))
	must.Do(t, err)
	var jobs map[string]pipelineJob
	must.Do(t, yaml.UnmarshalWithOptions(text, &jobs, yaml.Strict()))
	return jobs
}

// gitlab executes the job of the component with a shell.
func (j *job) gitlab(t *testing.T, shell string) {
	t.Helper()
	inputs := map[string]any{"tags": []any{"benchmark"}}
	for name, value := range j.inputs {
		inputs[name] = value
	}
	j.pipeline(t, shell, include(t, inputs)["touchstone"])
}

// pipeline executes a job of GitLab: the script, and after its end, however it ends, the second one.
func (j *job) pipeline(t *testing.T, shell string, p pipelineJob) {
	t.Helper()
	variables := map[string]string{"CI_PROJECT_DIR": j.workspace}
	for name, value := range p.Variables {
		if expanded, ok := value.(map[string]any); ok {
			if expanded["expand"] != false {
				t.Errorf("GitLab would expand the variable %s", name)
			}
			value = expanded["value"]
		}
		variables[name] = fmt.Sprint(value)
	}
	variables["TOUCHSTONE_SIGNERS"] = j.variables["TOUCHSTONE_SIGNERS"]
	j.code = j.script(t, []string{shell, "-e"}, strings.Join(append(p.BeforeScript, p.Script...), "\n"), variables)
	if code := j.script(t, []string{shell, "-e"}, strings.Join(p.AfterScript, "\n"), variables); code != 0 {
		j.log += fmt.Sprintf("after_script failed with %d\n", code)
	}
	j.report = filepath.Join(j.workspace, p.Artifacts.Paths[0])
}
