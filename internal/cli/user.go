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

	"github.com/touchstone-bench/touchstone/internal/plan"
)

// addEngineFlags gives a verb that talks to engines the flags that say which ones and how.
func addEngineFlags(cmd *cobra.Command, o *plan.Overrides, managed *bool) {
	f := cmd.Flags()
	f.StringArrayVar(&o.Runtimes, "runtime", nil, "a runtime's binary, as `NAME=PATH`")
	f.StringArrayVar(&o.CRI, "cri", nil, "the socket of a CRI daemon, as `NAME=SOCKET`")
	f.BoolVar(managed, "managed", false, "start private daemons, even where your own can be reached")
	f.StringArrayVar(&o.Binaries, "engine-bin", nil, "an engine's program, or the folder cni, as `NAME=PATH`")
}

// withSurroundings gives a plan with what the user's files and environment say, and then the flags. The
// plan holds over the former, the flags over both.
func withSurroundings(p plan.Plan, o plan.Overrides) (plan.Plan, error) {
	file, err := runtimesFile()
	if err != nil {
		return plan.Plan{}, err
	}
	runtimes, err := plan.LoadRuntimes(file)
	if err != nil {
		return plan.Plan{}, err
	}
	o.DockerHost = os.Getenv("DOCKER_HOST")
	if p, err = p.WithRuntimes(runtimes).Apply(o); err != nil {
		return plan.Plan{}, err
	}
	return p, binariesThere(p)
}

// runtimesFile is where the user's own runtimes stand. A file that others could change is an error: what
// it names is executed, as root more often than not.
func runtimesFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", nil // there is no such place, and so no such file
	}
	path := filepath.Join(dir, "touchstone", "runtimes.yaml")
	var s unix.Stat_t
	err = unix.Stat(path, &s)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return path, nil
	case err != nil:
		return "", fmt.Errorf("look at the runtimes in %s: %w", path, err)
	case s.Uid != 0 && int(s.Uid) != os.Geteuid():
		return "", usage(fmt.Errorf("%s belongs to another user, and names programs to execute; make it yours, or remove it", path))
	case s.Mode&0o022 != 0:
		return "", usage(fmt.Errorf("others can write to %s, which names programs to execute; run chmod go-w on it", path))
	}
	return path, nil
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
