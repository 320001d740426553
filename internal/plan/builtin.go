package plan

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/touchstone-bench/touchstone/examples"
)

// BuiltinPlan is a plan that needs no file.
type BuiltinPlan struct {
	Name string
	// Summary is a one-line description.
	Summary string
}

// Builtins lists the plans that need no file, the shortest first.
func Builtins() []BuiltinPlan {
	return []BuiltinPlan{
		{"quick", "a first look in a few minutes, without a workload image; the plan when none is given"},
		{"standard", "every benchmark with short parameters, on native, runc, crun and gVisor, in 20 minutes"},
		{"paper", "every benchmark with the parameters of the studies, in hours"},
	}
}

// Builtin returns a built-in plan. The error for an unknown name lists the names.
func Builtin(name string) (Plan, error) {
	var names []string
	for _, b := range Builtins() {
		if b.Name == name {
			return builtin(name)
		}
		names = append(names, b.Name)
	}
	f := problem{"no plan is named " + quote(name), didYouMean(name, names, "there are "+strings.Join(names, ", ")+"; a plan of your own is given with -f")}
	return Plan{}, location{flag: "--plan"}.error(name, f)
}

func builtin(name string) (Plan, error) {
	file := name + ".yaml"
	text, err := fs.ReadFile(examples.Builtin, file)
	if err != nil {
		return Plan{}, fmt.Errorf("read the plan %s: %w", name, err)
	}
	return Parse(file, text)
}

// Quick returns the default plan.
func Quick() Plan {
	p, err := builtin("quick")
	if err != nil {
		panic(fmt.Sprintf("a plan that is part of the program cannot be read: %v", err))
	}
	return p
}
