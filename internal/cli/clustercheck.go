package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/cluster"
)

func (a *App) clusterCheckCommand() *cobra.Command {
	var opts fleetOptions
	var dry bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "See whether a cluster run can work",
		Long: `Checks the access to the cluster, the rights, the nodes, the RuntimeClasses and their handlers,
quotas, Pod Security and the image, each with a remedy. It takes the flags of touchstone cluster
run. At the end it starts one pod of each class on each chosen node, in a namespace that it
removes: a missing handler or image shows only there. --dry leaves that out and creates nothing.`,
		Example: `  touchstone cluster check
  touchstone cluster check -f plan.yaml --dry`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := opts.client()
			if err != nil {
				return err
			}
			var findings []cluster.Finding
			add := func(f cluster.Finding) {
				findings = append(findings, f)
				if opts.format == formatTable {
					a.clear()
					printWrapped(a.env.Stdout, a.env.Width, fmt.Sprintf("%-8s ", f.Level), f.String())
				}
			}
			ctx := cmd.Context()
			f, exclusions, err := a.fleet(ctx, cmd, &opts, client)
			if err != nil {
				return err
			}
			check := cluster.Checker{Client: client, Fleet: f, Excluded: exclusions, Report: add, Step: a.step}
			if err := check.Run(ctx); err != nil {
				return err
			}
			if !dry && check.Passed() {
				var hasObjects bool
				hasObjects, err = check.Try(ctx)
				bare := f
				bare.Nodes = nil // they had no agents
				if hasObjects {
					err = orExit(a.clean(client, &bare), err)
				}
			}
			a.clear()
			if err != nil {
				return err
			}
			if opts.format != formatTable {
				if err := a.print(opts.format, findings, nil, nil); err != nil {
					return err
				}
			} else {
				fmt.Fprintf(a.env.Stdout, "\na run creates: %s\n", f.Summary())
			}
			if !check.Passed() {
				return &exitError{code: ExitFailure}
			}
			return nil
		},
	}
	addFleet(cmd, &opts)
	cmd.Flags().BoolVar(&dry, "dry", false, "create nothing: leave out one pod of each class on each node")
	addFormat(cmd, &opts.format)
	return cmd
}
