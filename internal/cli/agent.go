package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/cluster/agent"
	"github.com/touchstone-bench/touchstone/internal/kube"
)

// agentCommand is the program of the pods that touchstone cluster run makes. It is hidden, because it works only in such a pod.
func (a *App) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "Execute a plan in a pod of touchstone cluster run",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := kube.InCluster("touchstone-agent/" + version)
			if err != nil {
				return usage(errors.New("agent works only in a pod that touchstone cluster run has made: " + err.Error()))
			}
			// The records are read by a program, so that the cleaner of the output does not get them.
			return agent.Run(cmd.Context(), agent.Config{Client: client, Tool: tool(), Log: os.Stdout, Getenv: os.Getenv, Root: "/"})
		},
	}
}
