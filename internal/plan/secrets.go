package plan

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// Redacted stands for a value of an environment variable.
const Redacted = "(redacted)"

// fromEnv reads the names of environment variables with values from the environment of Touchstone.
func (r *reader) fromEnv(n ast.Node) []string {
	const key = "workloads.from-env"
	var names []string
	for _, v := range r.listOr(n, key, maxArgs, "write it like [TOKEN]", "name a variable, or leave the key out", "pass fewer variables") {
		name, ok := text(v)
		switch {
		case !ok:
			r.wrongKind(v, key, "the name of a variable", "write it like [TOKEN]")
		case slices.Contains(names, name):
			r.fail(v, key+": "+quote(name)+" occurs twice", "leave one of them out")
		default:
			if f := checkVariable(name); f != nil {
				r.failKey(v, key, f)
				continue
			}
			names = append(names, name)
		}
	}
	return names
}

// WithSecrets returns p with the values of the variables that from-env names. lookup returns the value of a variable, such as os.LookupEnv.
// YAML does not write the values.
func (p Plan) WithSecrets(lookup func(name string) (value string, ok bool)) (Plan, error) {
	var problems problems
	p.Workloads = slices.Clone(p.Workloads)
	for i := range p.Workloads {
		w := &p.Workloads[i]
		w.Secrets = nil
		for _, name := range w.FromEnv {
			value, ok := lookup(name)
			switch {
			case !ok:
				problems.add(w.fromEnvAt, name, problem{"workloads.from-env: " + name + " is not set in the environment of touchstone", "set and export it"})
			case len(value) > maxPath || !isPrintable(value): // the value stays out of the message
				problems.add(w.fromEnvAt, name, problem{fmt.Sprintf("workloads.from-env: the value of %s is longer than %d bytes or not printable", name, maxPath), "set it to one line of text"})
			default:
				put(&w.Secrets, name, value)
			}
		}
	}
	return p, problems.err()
}

// Secrets returns the values of WithSecrets. They must not be stored.
func (p Plan) Secrets() (values []string) {
	for _, w := range p.Workloads {
		for _, value := range w.Secrets {
			values = append(values, value)
		}
	}
	return values
}

// Variables returns the values of the environment variables in the plan.
func (p Plan) Variables() (values []string) {
	for _, w := range p.Workloads {
		for _, value := range w.Env {
			values = append(values, value)
		}
	}
	return values
}

// unreadable replaces a plan that cannot be read, since its environment variables cannot be found.
const unreadable = "# The plan of this run cannot be read as YAML, so it is not shown.\n"

// Redact returns the text of a stored plan with Redacted in place of each value of an environment variable, and these values. It accepts
// plans of all versions, because it reads only the keys that it changes.
func Redact(plan string) (redacted string, values []string) {
	_, root, err := parseTree("", []byte(plan), textfile.Plan)
	if err != nil {
		return unreadable, nil
	}
	for _, workload := range list(lookUp(root, "workloads")) {
		variables, _ := pairs(lookUp(workload, "env"))
		for _, v := range variables {
			value, ok := scalar(v.Value)
			if !ok { // such as a block of lines
				return unreadable, nil
			}
			if value != "" && value != Redacted {
				values = append(values, value)
			}
			v.Value = ast.String(token.New(Redacted, Redacted, v.Value.GetToken().Position))
		}
	}
	if values == nil {
		return plan, nil
	}
	return root.String() + "\n", values
}

// lookUp returns the value of a key of a mapping, or nil.
func lookUp(n ast.Node, key string) ast.Node {
	entries, _ := pairs(n)
	for _, e := range entries {
		if name, ok := text(e.Key); ok && name == key {
			return e.Value
		}
	}
	return nil
}

// list returns the items of a list, or nil.
func list(n ast.Node) []ast.Node {
	if s, ok := n.(*ast.SequenceNode); ok {
		return s.Values
	}
	return nil
}
