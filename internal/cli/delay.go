package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// delayCommand writes a runtime with known delays, for scripts that check what Touchstone finds. It is hidden, because users need
// only selfcheck.
func (a *App) delayCommand() *cobra.Command {
	var sleep, burn []string
	cmd := &cobra.Command{
		Use:    "delay-runtime BINARY FILE",
		Short:  "Write a program that executes a runtime after known delays",
		Hidden: true,
		Long: `Writes a program that executes the runtime BINARY, and prints its path: FILE with the
prefix runtime- before its name. It delays calls of create, start, exec, kill, delete,
state, pause, resume or update. Without delays it makes the baseline of a comparison.`,
		Example: `  touchstone delay-runtime /usr/bin/crun /tmp/slow --sleep create=1ms --cpu start=500us`,
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			binary, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			adapter := runtimes.Adapter{Binary: binary}
			for _, list := range []struct {
				flag  string
				items []string
				burn  bool
			}{{"--sleep", sleep, false}, {"--cpu", burn, true}} {
				for _, item := range list.items {
					d, err := parseDelay(item)
					if err != nil {
						return usage(fmt.Errorf("%s %s: %w", list.flag, item, err))
					}
					d.Burn = list.burn
					adapter.Delays = append(adapter.Delays, d)
				}
			}
			path, err := adapter.Write(filepath.Dir(args[1]), filepath.Base(args[1]))
			if err != nil {
				return err
			}
			fmt.Fprintln(a.env.Stdout, path)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&sleep, "sleep", nil, "`VERB=TIME`: sleep before each call of the verb")
	cmd.Flags().StringSliceVar(&burn, "cpu", nil, "`VERB=TIME`: use a CPU before each call of the verb")
	return cmd
}

// parseDelay reads VERB=TIME.
func parseDelay(item string) (runtimes.Delay, error) {
	verbs := []string{"create", "start", "exec", "kill", "delete", "state", "pause", "resume", "update"}
	verb, text, ok := strings.Cut(item, "=")
	d, err := time.ParseDuration(text)
	switch {
	case !ok || !slices.Contains(verbs, verb):
		return runtimes.Delay{}, errors.New("want VERB=TIME with a verb of " + strings.Join(verbs, ", "))
	case err != nil || d < 0 || d > time.Minute:
		return runtimes.Delay{}, errors.New("want a time from 0s to 1m, such as 500us")
	}
	return runtimes.Delay{Verb: verb, Time: d}, nil
}
