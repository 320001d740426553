package cli

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// programVersion is the version of this program as people read it.
func programVersion() string {
	t := tool()
	return fmt.Sprintf("%s, %s %s/%s", t.Version, t.Go, runtime.GOOS, runtime.GOARCH)
}

func (a *App) versionCommand() *cobra.Command {
	var format format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of touchstone and of the runtimes on this machine",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			launcher, err := process.New(process.Options{})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, launcher.Close()) }()
			type runtimeVersion struct {
				Target  string `json:"target"`
				Version string `json:"version"`
				Binary  string `json:"binary,omitempty"`
			}
			data := struct {
				Touchstone result.Tool      `json:"touchstone"`
				Targets    []runtimeVersion `json:"targets"`
			}{Touchstone: tool()}
			rows := [][]string{{"touchstone", programVersion(), "-"}}
			p, err := quickPlan(plan.Overrides{})
			if err != nil {
				return err
			}
			s := engine.Session{Launcher: launcher, Runtimes: p.Runtimes, Sockets: p.Engines.Sockets}
			for _, c := range engines.All(fake.NewClock(), s.Sockets).Candidates(cmd.Context(), s) {
				if !c.Default || c.Err != nil {
					continue
				}
				data.Targets = append(data.Targets, runtimeVersion{c.Target.String(), c.Version, c.Binary})
				rows = append(rows, []string{c.Target.String(), c.Version, dash(c.Binary)})
			}
			return a.print(format, data, []string{"NAME", "VERSION", "BINARY"}, rows)
		},
	}
	addFormat(cmd, &format)
	return cmd
}
