package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/cluster/agent"
	"github.com/touchstone-bench/touchstone/internal/kube"
)

// agentCommand is the program of the pods that touchstone cluster run makes. It is hidden, because it works only in such a pod.
func (a *App) agentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "agent",
		Short:  "Execute a plan in a pod of touchstone cluster run",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := kube.InCluster("touchstone-agent/" + version)
			if err != nil {
				return usage(errors.New("agent works only in a pod that touchstone cluster run has made: " + err.Error()))
			}
			return agent.Run(cmd.Context(), agentConfig(client, "/"))
		},
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "clean RUN", Short: "Remove the leftovers of a privileged agent from the node of this pod", Args: between(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error { return agent.Clean(cmd.Context(), args[0]) },
		},
		&cobra.Command{
			Use: "node PID", Short: "Execute the plan of a privileged agent on the node", Args: between(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return agent.RunOnNode(cmd.Context(), agentConfig(nil, filepath.Join("/proc", args[0], "root")), os.Stdin)
			},
		},
		&cobra.Command{
			Use: "clean-node RUN", Short: "Remove the leftovers of a privileged agent from the node", Args: between(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error { return agent.CleanNode(cmd.Context(), args[0]) },
		},
	)
	return cmd
}

// agentConfig describes an agent with its files below root. The records are read by a program, so that the cleaner of the output does not get them.
func agentConfig(client *kube.Client, root string) agent.Config {
	return agent.Config{Client: client, Tool: tool(), Log: os.Stdout, Getenv: os.Getenv, Root: root}
}
