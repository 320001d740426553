package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/plan"
)

// addSecretFile adds the flag for the file with the secret of two machines.
func addSecretFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "secret-file", "", "`FILE` with the secret of the servers; else "+peer.SecretVariable)
}

// planSecret is peerSecret for a plan. A plan without another machine needs no secret, so a broken variable does not matter.
func (a *App) planSecret(file string, p plan.Plan) (peer.Secret, error) {
	s, err := a.peerSecret(file)
	remote := slices.ContainsFunc(p.Benchmarks, func(i plan.Item) bool {
		_, found := bench.RemotePeer(i.Params)
		return found
	})
	if err != nil && file == "" && !remote {
		return peer.Secret{}, nil
	}
	return s, err
}

// peerSecret reads the secret of two machines from a file if one is named, and else from the environment. It may have none.
func (a *App) peerSecret(file string) (peer.Secret, error) {
	switch {
	case file != "":
		s, err := peer.ReadSecret(file)
		if err != nil {
			return s, fmt.Errorf("--secret-file: %w", err)
		}
		return s, nil
	case a.env.PeerSecret == "":
		return peer.Secret{}, nil
	}
	s, err := peer.ParseSecret(a.env.PeerSecret)
	if err != nil {
		return s, fmt.Errorf("%s: %w", peer.SecretVariable, err)
	}
	return s, nil
}
