package cli

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/setup"
)

func (a *App) cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the leftovers of killed runs",
		Long: `Removes the leftovers of killed runs: processes, cgroups, mounts and files, and containers and
images in your daemons. It also removes leftovers of killed image builds and loads from the image
cache, and leftovers of a killed touchstone setup. It does not touch runs that are under way, results, cached images, or anything that
Touchstone did not create. On a file system that hosts share, it lists the runs of other hosts and
keeps them. touchstone benchmark and touchstone targets remove leftovers of runs
when they start, and a build of the workload image removes leftovers from the cache.

It does not put back the settings that touchstone host tune has changed, but it lists them.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			leftovers, err := execution.Sweep(cmd.Context(), func(reason string) { fmt.Fprintln(a.env.Stderr, reason) })
			for _, s := range leftovers {
				verb := "removed"
				if s.Host != "" {
					verb = "kept"
				}
				fmt.Fprintf(a.env.Stdout, "%s %v\n", verb, s)
			}
			left, cacheErr := sweepCache()
			for _, dir := range left {
				fmt.Fprintf(a.env.Stdout, "removed %s\n", dir)
			}
			halves, storeErr := sweepStore()
			for _, dir := range halves {
				fmt.Fprintf(a.env.Stdout, "removed %s\n", dir)
			}
			left = append(left, halves...)
			if err = errors.Join(err, cacheErr, storeErr); len(leftovers)+len(left) == 0 && err == nil {
				fmt.Fprintln(a.env.Stdout, "nothing to remove")
			}
			return errors.Join(err, a.mentionTuning())
		},
	}
}

// sweepCache removes leftovers of killed processes from the image cache. It does not create the cache.
func sweepCache() ([]string, error) {
	dir, err := image.CacheDir()
	if err != nil {
		return nil, err
	}
	return image.Sweep(dir)
}

// sweepStore removes leftovers of killed set-ups from the store of runtimes. It does not create the store.
func sweepStore() ([]string, error) {
	root, err := parts.Root()
	if err != nil {
		return nil, err
	}
	var removals []string
	for _, arch := range setup.Architectures() {
		left, bad := setup.Sweep(setup.Store(root, arch, runtime.GOARCH))
		removals, err = append(removals, left...), errors.Join(err, bad)
	}
	return removals, err
}
