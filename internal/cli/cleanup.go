package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/image"
)

func (a *App) cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what killed runs left on this machine",
		Long: `Removes the processes, cgroups, mounts and files that killed runs left, and the containers and
images that they have with daemons of yours; and what killed builds and loads of images left in
the image cache. Runs that are under way, results, images that are kept, and whatever Touchstone
did not make stay as they are. Every benchmark and every listing of targets does the same for
runs when it begins, and every build of the workload image for the cache.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			swept, err := execution.Sweep(cmd.Context())
			for _, s := range swept {
				fmt.Fprintf(a.env.Stdout, "removed %v\n", s)
			}
			left, cacheErr := sweepCache()
			for _, dir := range left {
				fmt.Fprintf(a.env.Stdout, "removed %s\n", dir)
			}
			if err = errors.Join(err, cacheErr); len(swept)+len(left) == 0 && err == nil {
				fmt.Fprintln(a.env.Stdout, "there is nothing to remove")
			}
			return err
		},
	}
}

// sweepCache removes what killed processes left in the image cache, which is not made for that.
func sweepCache() ([]string, error) {
	dir, err := image.CacheDir()
	if err != nil {
		return nil, err
	}
	return image.Sweep(dir)
}
