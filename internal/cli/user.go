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
)

// addEngineFlags gives a verb that talks to engines the flags that say which ones and how.
func addEngineFlags(cmd *cobra.Command, o *plan.Overrides, managed *bool) {
	f := cmd.Flags()
	f.StringArrayVar(&o.Runtimes, "runtime", nil, "a runtime's binary, as `NAME=PATH`")
	f.StringArrayVar(&o.CRI, "cri", nil, "the socket of a CRI daemon, as `NAME=SOCKET`")
	f.BoolVar(managed, "managed", false, "start private daemons, even where your own can be reached")
	f.StringArrayVar(&o.Binaries, "engine-bin", nil, "an engine's program, or the folder cni, as `NAME=PATH`")
}

// applied gives a plan with the user's own runtimes, what the environment says, and then the flags. The plan
// holds over the former two, the flags over all.
func applied(p plan.Plan, own map[string]target.Runtime, o plan.Overrides) (plan.Plan, error) {
	o.Engines, o.Getenv = engines.All(fake.NewClock(), nil).Descriptions(), os.Getenv
	p, err := p.WithRuntimes(own).Apply(o)
	if err != nil {
		return plan.Plan{}, err
	}
	return p, binariesThere(p)
}

// quickPlan is the plan of verbs that have none, for its runtimes and engines.
func quickPlan(o plan.Overrides) (plan.Plan, error) {
	own, err := ownRuntimes()
	if err != nil {
		return plan.Plan{}, err
	}
	return applied(plan.Quick(), own, o)
}

// ownRuntimes reads the file in which the user's own runtimes stand; there need not be one. A file that others
// could change is an error: what it names is executed, as root more often than not.
func ownRuntimes() (map[string]target.Runtime, error) {
	dir, _ := os.UserConfigDir()
	if dir == "" { // there is no HOME
		return nil, nil
	}
	path := filepath.Join(dir, "touchstone", "runtimes.yaml")
	var s unix.Stat_t
	err := unix.Stat(path, &s)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at the runtimes in %s: %w", path, err)
	case s.Uid != 0 && int(s.Uid) != os.Geteuid():
		return nil, usage(fmt.Errorf("%s belongs to another user, and names programs to execute; make it yours, or remove it", path))
	case s.Mode&0o022 != 0:
		return nil, usage(fmt.Errorf("others can write to %s, which names programs to execute; run chmod go-w on it", path))
	}
	return plan.LoadRuntimes(path)
}

// binariesThere makes sure that there is something at the paths of engines' programs. Whether it is what
// it should be is for the engines to say.
func binariesThere(p plan.Plan) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.Engines.Binaries)) {
		if _, err := os.Stat(p.Engines.Binaries[name]); err != nil {
			errs = append(errs, fmt.Errorf("look for %s: %w; mend the path given for it", name, err))
		}
	}
	if len(errs) > 0 {
		return usage(errors.Join(errs...))
	}
	return nil
}
