package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// targetRow is a target in the listing.
type targetRow struct {
	Target    string            `json:"target"`
	Works     bool              `json:"works"`
	Default   bool              `json:"default"`
	Reason    string            `json:"reason,omitempty"`
	Advice    string            `json:"advice,omitempty"`
	Binary    string            `json:"binary,omitempty"`
	Version   string            `json:"version,omitempty"`
	Isolation string            `json:"isolation,omitempty"`
	Cgroup    string            `json:"cgroup,omitempty"`
	Can       []string          `json:"can,omitempty"`
	Cannot    map[string]string `json:"cannot,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
}

func (a *App) targetsCommand() *cobra.Command {
	var format format
	var runtimes []string
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "Show what can be measured on this machine, and why the rest cannot",
		Long: `Tries every target that may be on this machine with one container, and shows what
it is and what it can do, or why it does not work and what to do about it. What
hangs is given up after some seconds.`,
		Example: `  touchstone targets
  touchstone targets --runtime mycrun=/opt/crun/bin/crun -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := plan.Quick().Apply(plan.Overrides{Runtimes: runtimes})
			if err != nil {
				return err
			}
			return a.listTargets(cmd.Context(), p.Runtimes, format)
		},
	}
	addFormat(cmd, &format)
	cmd.Flags().StringArrayVar(&runtimes, "runtime", nil, "a runtime's binary, as `NAME=PATH`")
	return cmd
}

func (a *App) listTargets(ctx context.Context, runtimes map[string]target.Runtime, format format) (err error) {
	s, err := a.open(ctx, a.env.RunID(), runtimes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close(s)) }()
	drivers := engines.All(fake.NewClock())
	var rows []targetRow
	working := 0
	for _, c := range drivers.Candidates(ctx, s.Session) {
		a.note("trying %s …", c.Target)
		row := a.tryTarget(ctx, drivers, c, s.Session)
		if ctx.Err() != nil {
			a.note("")
			return context.Cause(ctx)
		}
		if row.Works && c.Target.Engine != fake.Name {
			working++
		}
		rows = append(rows, row)
	}
	a.note("")
	if err := printTargets(a, format, rows); err != nil {
		return err
	}
	if working == 0 {
		return &exitError{ExitNoTarget, errors.New("no target works on this machine")}
	}
	return nil
}

func (a *App) tryTarget(ctx context.Context, drivers engines.Drivers, c engine.Candidate, s engine.Session) targetRow {
	info, err := c.Info, c.Err
	row := targetRow{Default: c.Default}
	if err == nil {
		var e engine.Engine
		if e, err = drivers.Open(ctx, c.Target, s); err == nil {
			info = e.Info()
			row.Works, row.Cannot = true, map[string]string{}
			for _, capability := range engine.Capabilities() {
				if err := e.Supports(capability); err != nil {
					row.Cannot[string(capability)], _ = reasonOf(err)
				} else {
					row.Can = append(row.Can, string(capability))
				}
			}
			err = e.Close()
		}
	}
	if err != nil {
		row.Works = false
		row.Reason, row.Advice = reasonOf(err)
	}
	row.Target, row.Binary, row.Version = c.Target.String(), info.Binary, info.Version
	row.Isolation, row.Cgroup, row.Notes = string(info.Isolation), info.Cgroup, info.Notes
	return row
}

func printTargets(a *App, format format, rows []targetRow) error {
	var cells [][]string
	for _, r := range rows {
		works, can := "yes", strings.Join(r.Can, ", ")
		if !r.Works {
			works, can = "no", "-"
		}
		cells = append(cells, []string{r.Target, works, dash(r.Version), dash(r.Isolation), dash(r.Cgroup), can, dash(r.Binary)})
	}
	if err := format.print(a.env.Stdout, rows, []string{"TARGET", "WORKS", "VERSION", "ISOLATION", "CGROUP", "CAN", "BINARY"}, cells); err != nil || format != formatTable {
		return err
	}
	w := a.env.Stdout
	for _, r := range rows {
		if !r.Works {
			fmt.Fprintf(w, "\n%s does not work: %s\n", r.Target, printable(r.Reason))
			if r.Advice != "" {
				fmt.Fprintf(w, "  what to do: %s\n", printable(r.Advice))
			}
			continue
		}
		for _, c := range engine.Capabilities() {
			if reason, ok := r.Cannot[string(c)]; ok {
				fmt.Fprintf(w, "\n%s cannot %s: %s\n", r.Target, c, printable(reason))
			}
		}
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(w, "\nWithout root only rootless containers can be measured. As root there is more.")
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// note shows a passing message on a terminal, in place of the one before; an empty
// one clears the line.
func (a *App) note(format string, args ...any) {
	if a.env.Live {
		fmt.Fprintf(a.env.Stderr, "\r\x1b[K"+format, args...)
	}
}
