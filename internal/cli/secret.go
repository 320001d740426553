package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/peer"
)

// addSecretFile adds the flag for the file with the secret of two machines.
func addSecretFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "secret-file", "", "`FILE` with the secret of the servers; else "+peer.SecretVariable)
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
		// A run without another machine needs none, and one with another machine ends with the server's refusal.
		fmt.Fprintf(a.env.Stderr, "note: %s is not used: %v\n", peer.SecretVariable, err)
	}
	return s, nil
}
