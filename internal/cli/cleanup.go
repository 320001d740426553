package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/workdir"
)

func (a *App) cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what killed runs left on this machine",
		Long: `Removes the processes, cgroups, mounts and files that killed runs left, and the containers and
images that they have with daemons of yours. Runs that are under way, results, and
whatever Touchstone did not make stay as they are. Every benchmark and every listing of
targets does the same when it begins.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			roots, err := workdir.HostRoots()
			if err != nil {
				return err
			}
			groups, err := hostCgroups()
			if err != nil {
				return err
			}
			swept, err := workdir.Sweep(cmd.Context(), roots, groups, askDaemon)
			for _, s := range swept {
				fmt.Fprintf(a.env.Stdout, "removed %v\n", s)
			}
			if len(swept) == 0 && err == nil {
				fmt.Fprintln(a.env.Stdout, "there is nothing to remove")
			}
			return err
		},
	}
}
