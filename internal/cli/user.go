package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// addEngineFlags adds the flags about engines and runtimes.
func addEngineFlags(cmd *cobra.Command, o *plan.Overrides) {
	f := cmd.Flags()
	f.StringArrayVar(&o.Runtimes, "runtime", nil, "the binary of a runtime, as `NAME=PATH`")
	f.StringArrayVar(&o.CRI, "cri", nil, "the socket of a CRI daemon, as `NAME=SOCKET`")
	o.Managed = f.Bool("managed", false, "start private daemons, even if your own can be reached")
	f.StringArrayVar(&o.Binaries, "engine-bin", nil, "a program of an engine, or the folder cni, as `NAME=PATH`")
}

// applied applies the user's runtimes, the environment and the flags to a plan. The plan takes precedence over the
// runtimes and the environment, and the flags take precedence over the plan.
func applied(p plan.Plan, runtimes map[string]target.Runtime, o plan.Overrides) (plan.Plan, error) {
	o.Engines, o.Getenv = engines.All(fake.NewClock(), nil).Descriptions(), os.Getenv
	p, err := p.WithRuntimes(runtimes).Apply(o)
	if err != nil {
		return plan.Plan{}, err
	}
	return p, checkBinaries(p)
}

// quickPlan is the plan of verbs without a plan. It provides their runtimes and engines.
func quickPlan(o plan.Overrides) (plan.Plan, error) {
	runtimes, err := userRuntimes()
	if err != nil {
		return plan.Plan{}, err
	}
	return applied(plan.Quick(), runtimes, o)
}

// userRuntimes reads the file with the user's runtimes, which may be absent. A file that other users can change is
// an error: Touchstone executes the programs in it, often as root.
func userRuntimes() (map[string]target.Runtime, error) {
	dir, _ := os.UserConfigDir()
	if dir == "" { // HOME is not set
		return nil, nil
	}
	path := filepath.Join(dir, "touchstone", "runtimes.yaml")
	text, err := trust.ReadFile(path, plan.MaxSize)
	var unsafe *trust.Error
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return nil, nil
	case errors.As(err, &unsafe):
		return nil, usage(fmt.Errorf("the runtimes in %s name programs to execute: %w", path, err))
	case err != nil:
		return nil, fmt.Errorf("read the runtimes in %s: %w", path, err)
	}
	return plan.ParseRuntimes(path, text)
}

// checkBinaries checks that the paths of engines' programs exist. The engines check the programs themselves.
func checkBinaries(p plan.Plan) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.Engines.Binaries)) {
		if _, err := os.Stat(p.Engines.Binaries[name]); err != nil {
			errs = append(errs, fmt.Errorf("find %s: %w; correct its path", name, err))
		}
	}
	if len(errs) > 0 {
		return usage(errors.Join(errs...))
	}
	return nil
}
