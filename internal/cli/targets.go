package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
)

// tryLimit bounds the attempt to open one target, the start of its daemon included. Engines have shorter limits with
// more specific errors.
const tryLimit = 2 * time.Minute

// targetRow is a target in the listing: a cell of the matrix engine × runtime.
type targetRow struct {
	Target string `json:"target"`
	Engine string `json:"engine"`
	// Runtime includes the options, as in the target.
	Runtime   string            `json:"runtime,omitempty"`
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
	var overrides plan.Overrides
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "Show the targets of this machine, and why others do not work",
		Long: `Tries every target that this machine may have, each runtime on each engine, with one
container. Shows the targets that work, their capabilities, and the matrix of runtimes
and engines. Each pair that does not work has a reason and advice. At the end come
the properties of this machine that make results less complete or less stable.

If no daemon of an engine can be reached, a private daemon is started for the
attempt. A target that hangs is given up after a time limit. ^C ends the command.`,
		Example: `  touchstone targets
  touchstone targets --runtime mycrun=/opt/crun/bin/crun -o json
  touchstone targets --managed --engine-bin containerd=/opt/containerd/bin/containerd`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keepGiven(cmd.Flags(), "managed", &overrides.Managed)
			p, err := quickPlan(overrides)
			if err != nil {
				return err
			}
			return a.listTargets(cmd.Context(), p, format)
		},
	}
	addFormat(cmd, &format)
	addEngineFlags(cmd, &overrides)
	return cmd
}

func (a *App) listTargets(ctx context.Context, p plan.Plan, format format) (err error) {
	s := execution.NewSession(a.env.RunID(), p)
	defer a.onAbandon(s.Abandon)()
	report := func(kind execution.EventKind, text string) {
		(&progress{status: a.status}).Report(execution.Event{Kind: kind, Text: text})
	}
	leftovers, err := s.Open(ctx, func(reason string) { report(execution.Note, reason) })
	for _, left := range leftovers {
		report(execution.Swept, left.String())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rows, err := a.tryAll(ctx, engines.All(fake.NewClock(), s.Sockets), p, &s.Session)
	if err != nil {
		return err
	}
	if err := printTargets(a, format, rows); err != nil {
		return err
	}
	if format == formatTable {
		printHost(a.env.Stdout, a.env.Width, host.Facts(a.env.Root).Warnings)
	}
	if !slices.ContainsFunc(rows, func(r targetRow) bool { return r.Works }) {
		return &exitError{ExitNoTarget, errors.New("no target works on this machine")}
	}
	return nil
}

// tryAll tries all candidates, after it has listed them in the session. All targets stay open until the last one
// was tried, so that a daemon starts once and not for each of its targets.
func (a *App) tryAll(ctx context.Context, drivers engines.Drivers, p plan.Plan, s *engine.Session) (rows []targetRow, err error) {
	defer a.clear()
	a.show("looking for runtimes and engines …")
	candidates := drivers.Candidates(ctx, *s)
	for _, c := range candidates {
		if c.Err == nil {
			s.Targets = append(s.Targets, c.Target)
		}
	}
	live := map[int]engine.Engine{} // by index of rows
	defer func() {
		for i, e := range live {
			closing := e.Close()
			if closing != nil && i < len(rows) {
				rows[i].fail(closing)
			}
		}
	}()
	count := 0
	bare := map[string]error{} // the error of a runtime with its options, called without an engine
	for i, c := range candidates {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !a.env.Live && (i == 0 || candidates[i-1].Target.Engine != c.Target.Engine) {
			fmt.Fprintf(a.env.Stderr, "trying the targets of %s\n", c.Target.Engine)
		}
		if c.Err == nil {
			// A runtime that hangs by itself would hang with each engine.
			c.Err = bare[c.Target.RuntimeText()]
			count++
			a.show(fmt.Sprintf("trying %d of %d: %s …", count, len(s.Targets), c.Target))
		}
		row, e, err := tryTarget(ctx, drivers, c, *s)
		if e != nil {
			live[len(rows)] = e
		}
		if err != nil && c.Err == nil && drivers.Describe(c.Target.Engine).Kind == engine.BareRuntime {
			bare[c.Target.RuntimeText()] = err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		row.Default = execution.IsDefault(p, drivers.Describe(c.Target.Engine), c)
		rows = append(rows, row)
	}
	return rows, nil
}

// tryTarget opens a candidate that may work. The caller closes the engine, which is nil if the target does not work.
// The error is then the reason.
func tryTarget(ctx context.Context, drivers engines.Drivers, c engine.Candidate, s engine.Session) (targetRow, engine.Engine, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryLimit, fmt.Errorf("it did not start within %v", tryLimit))
	defer cancel()
	info, err := c.Info, c.Err
	row := targetRow{}
	var e engine.Engine
	if err == nil {
		if e, err = drivers.Open(ctx, c.Target, s); err == nil {
			info = e.Info()
			row.Works, row.Cannot = true, map[string]string{}
			for _, capability := range engine.Capabilities() {
				if err := e.Supports(capability); err != nil {
					row.Cannot[string(capability)], _ = execution.Reason(err)
				} else {
					row.Can = append(row.Can, string(capability))
				}
			}
		}
	}
	if err != nil {
		row.fail(err)
	}
	row.Target, row.Binary, row.Version = c.Target.String(), info.Binary, info.Version
	row.Engine, row.Runtime = c.Target.Engine, c.Target.RuntimeText()
	row.Isolation, row.Cgroup, row.Notes = string(info.Isolation), info.Cgroup, info.Notes
	return row, e, err
}

// fail turns the row into the row of a target that does not work.
func (r *targetRow) fail(err error) {
	r.Works = false
	r.Reason, r.Advice = execution.Reason(err)
}

func printTargets(a *App, format format, rows []targetRow) error {
	var cells [][]string
	for _, r := range rows {
		if r.Works {
			cells = append(cells, []string{r.Target, dash(r.Version), dash(r.Isolation), dash(r.Cgroup), dash(r.Binary)})
		}
	}
	w := a.env.Stdout
	if format != formatTable || len(cells) > 0 {
		if err := format.print(w, rows, []string{"TARGET", "VERSION", "ISOLATION", "CGROUP", "BINARY"}, cells); err != nil || format != formatTable {
			return err
		}
		fmt.Fprintln(w)
	}
	var reasons notes
	if err := printMatrix(w, rows, &reasons); err != nil {
		return err
	}
	reasons.print(w, a.env.Width)
	printIncapable(w, a.env.Width, rows)
	if os.Geteuid() != 0 {
		fmt.Fprintln(w, "\nWithout root Touchstone measures only rootless containers. Root has more targets.")
	}
	return nil
}

// printHost prints the warnings about this machine that a report will show, before a run.
func printHost(w io.Writer, width int, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	fmt.Fprintln(w, "\nProperties of this machine that make results less complete or less stable:")
	for _, warning := range warnings {
		printWrapped(w, width, "  - ", warning)
	}
	fmt.Fprintln(w, "touchstone host lists more of them.")
}

// printMatrix prints runtimes × engines. A failure of native is a line above it. A pair that does not work has the
// number of a note.
func printMatrix(w io.Writer, rows []targetRow, reasons *notes) error {
	header := []string{"RUNTIME"}
	var table [][]string
	for _, r := range rows {
		if r.Runtime == "" {
			if !r.Works {
				fmt.Fprintf(w, "%s does not work [%d]\n\n", r.Target, reasons.number(r))
			}
			continue
		}
		column := slices.Index(header, r.Engine)
		if column < 0 {
			column = len(header)
			header = append(header, r.Engine)
		}
		line := slices.IndexFunc(table, func(line []string) bool { return line[0] == r.Runtime })
		if line < 0 {
			line = len(table)
			table = append(table, []string{r.Runtime})
		}
		for len(table[line]) <= column {
			table[line] = append(table[line], "")
		}
		table[line][column] = "works"
		if !r.Works {
			table[line][column] = fmt.Sprintf("cannot [%d]", reasons.number(r))
		}
	}
	for i, line := range table {
		for len(line) < len(header) {
			line = append(line, "")
		}
		for column := range line {
			line[column] = dash(line[column]) // the pair is not a candidate
		}
		table[i] = line
	}
	return formatTable.print(w, nil, header, table)
}

// notes holds the reasons of targets that do not work, each once.
type notes []targetRow

// number returns the number of a row's reason, from 1.
func (n *notes) number(r targetRow) int {
	i := slices.IndexFunc(*n, func(o targetRow) bool { return o.Reason == r.Reason && o.Advice == r.Advice })
	if i < 0 {
		i = len(*n)
		*n = append(*n, r)
	}
	return i + 1
}

func (n notes) print(w io.Writer, width int) {
	for i, r := range n {
		fmt.Fprintln(w)
		printWrapped(w, width, fmt.Sprintf("[%d] ", i+1), r.Reason)
		if r.Advice != "" {
			printWrapped(w, width, "    advice: ", r.Advice)
		}
	}
}

// printIncapable prints the capabilities that working targets lack, grouped by reason and targets.
func printIncapable(w io.Writer, width int, rows []targetRow) {
	type lack struct{ reason, targets string }
	var lacks []lack
	capabilities := map[lack][]string{}
	for _, c := range engine.Capabilities() {
		targets := map[string][]string{} // by reason
		var reasons []string
		working := 0
		for _, r := range rows {
			if !r.Works {
				continue
			}
			working++
			reason, ok := r.Cannot[string(c)]
			if !ok {
				continue
			}
			if targets[reason] == nil {
				reasons = append(reasons, reason)
			}
			targets[reason] = append(targets[reason], r.Target)
		}
		for _, reason := range reasons {
			l := lack{reason, strings.Join(targets[reason], ", ")}
			if len(targets[reason]) == working && working > 1 {
				l.targets = "on no target"
			}
			if capabilities[l] == nil {
				lacks = append(lacks, l)
			}
			capabilities[l] = append(capabilities[l], string(c))
		}
	}
	for _, l := range lacks {
		fmt.Fprintln(w)
		printWrapped(w, width, "no "+strings.Join(capabilities[l], ", ")+": ", l.reason)
		printWrapped(w, width, "    ", l.targets)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
