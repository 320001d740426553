package plan

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// YAML spells a plan canonically in Touchstone's format, with every default. Parse returns the same plan from it (except Notes and
// Hints), and equal plans have equal spellings. A run keeps this form and is resumed from it.
func (p Plan) YAML() []byte {
	document := struct {
		Version int `yaml:"version"`
		Plan    `yaml:",inline"`
	}{Version, p}
	out, err := yaml.MarshalWithOptions(document,
		yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) { return []byte(formatDuration(d)), nil }),
		yaml.CustomMarshaler(func(s Share) ([]byte, error) { return []byte(formatPercent(s)), nil }),
		yaml.CustomMarshaler(func(i bench.Image) ([]byte, error) { return yaml.Marshal(imageName(i)) }),
		yaml.CustomMarshaler(runtimeYAML),
	)
	if err != nil {
		panic(fmt.Sprintf("a plan of plain texts and numbers cannot be written as YAML: %v", err))
	}
	return out
}

// runtimeYAML converts a runtime for YAML: to its path if it has nothing else.
func runtimeYAML(r target.Runtime) ([]byte, error) {
	if r.Type == "" && len(r.Options) == 0 {
		return yaml.Marshal(r.Path)
	}
	var spelled struct {
		Path    string            `yaml:"path,omitempty"`
		Type    string            `yaml:"type,omitempty"`
		Options map[string]string `yaml:"options,omitempty"`
	}
	spelled.Path, spelled.Type = r.Path, r.Type
	for _, o := range r.Options {
		put(&spelled.Options, o.Name, o.Value)
	}
	return yaml.Marshal(spelled)
}
