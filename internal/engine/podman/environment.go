package podman

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// variables passes the environment of a process in a container to Podman. Other users can read command lines, so these have only names.
type variables struct {
	args []string
	// own are variables of Podman itself, which it copies into the container.
	own  []string
	file string // empty without a file
}

// plainValue matches values that every version of Podman reads from a file as they are. Some versions give quotes and # a meaning.
var plainValue = regexp.MustCompile("^([^\\s'\"`#$\\\\]([^'\"`#$\\\\]*[^\\s'\"`#$\\\\])?)?$")

// variables writes the values to a file that only this user can read. A file does not change the behaviour of Podman, unlike
// Podman's own environment, with variables such as HOME and GOMAXPROCS. Only values that a file cannot express go through that
// environment.
func (e *Engine) variables(owner string, env []string) (variables, error) {
	var v variables
	var lines []string
	for _, variable := range env {
		if name, value, _ := strings.Cut(variable, "="); !plainValue.MatchString(value) {
			v.args, v.own = append(v.args, "--env", name), append(v.own, variable)
			continue
		}
		lines = append(lines, variable)
	}
	if lines == nil {
		return v, nil
	}
	name := owner + ".env"
	if err := managed.WriteFiles(e.state, map[string]string{name: strings.Join(lines, "\n") + "\n"}); err != nil {
		return variables{}, fmt.Errorf("pass variables to Podman: %w", err)
	}
	v.file = filepath.Join(e.state, name)
	v.args = append(v.args, "--env-file", v.file)
	return v, nil
}

// remove removes the file after the command.
func (v variables) remove() error {
	if v.file == "" {
		return nil
	}
	return os.Remove(v.file)
}
