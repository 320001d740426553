package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
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
	"github.com/touchstone-bench/touchstone/internal/trace"
	"github.com/touchstone-bench/touchstone/internal/wording"
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
	// Trace is nil without --trace, and for a target that does not work.
	Trace *traceRow `json:"trace,omitempty"`

	output, log string // of engine.UnsupportedError, for touchstone doctor
}

func (a *App) targetsCommand() *cobra.Command {
	var format format
	var overrides plan.Overrides
	var traces bool
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "Show the targets of this machine, and why others do not work",
		Long: `Tries every target that this machine may have, each runtime on each engine, with one
container. Shows the matrix of runtimes and engines, the reason and the remedy for each
pair that does not work, and the capabilities that targets lack. Then come the properties
of this machine that make results less complete or less stable, and the command that
repairs most targets. With --trace it also tries whether Touchstone can count system
calls (docs/trace.md), and shows the missing part with the remedy.

If no daemon of an engine can be reached, a private daemon is started for the
attempt. A target that hangs is given up after a time limit. ^C ends the command.`,
		Example: `  touchstone targets
  touchstone targets --runtime mycrun=/opt/crun/bin/crun -o json
  touchstone targets --trace
  touchstone targets --managed --engine-bin containerd=/opt/containerd/bin/containerd`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keepGiven(cmd.Flags(), "managed", &overrides.Managed)
			p, err := quickPlan(overrides)
			if err != nil {
				return err
			}
			return a.withTargets(cmd.Context(), p, func(_ *engine.Session, rows []targetRow) error {
				if traces {
					addTraces(rows, trace.Check(), trace.CheckFunctions())
				}
				return a.listTargets(rows, format)
			})
		},
	}
	addFormat(cmd, &format)
	cmd.Flags().BoolVar(&traces, "trace", false, "try whether system calls can be counted")
	addEngineFlags(cmd, &overrides)
	return cmd
}

// withTargets tries the targets of a plan, and calls use with their rows while the session is open.
func (a *App) withTargets(ctx context.Context, p plan.Plan, use func(s *engine.Session, rows []targetRow) error) (err error) {
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
	return use(&s.Session, rows)
}

func (a *App) listTargets(rows []targetRow, format format) (err error) {
	if format == formatTable {
		err = a.printTargets(rows, host.Facts(a.env.Root).Warnings)
	} else {
		err = a.print(format, rows, nil, nil)
	}
	if err != nil {
		return err
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
	if !a.env.Live {
		var names []string
		for _, c := range candidates {
			names = add(names, c.Target.Engine)
		}
		fmt.Fprintf(a.env.Stderr, "trying the targets of %s\n", strings.Join(names, ", "))
	}
	count := 0
	bare := map[string]error{} // the error of a runtime with its options, called without an engine
	for _, c := range candidates {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
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
	if u, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		r.output, r.log = u.Output, u.Log
	}
}

// printTargets prints what works, and ends with the command that repairs most.
func (a *App) printTargets(rows []targetRow, warnings []string) error {
	w, width := a.env.Stdout, a.env.Width
	var reasons notes
	if err := a.printMatrix(rows, &reasons); err != nil {
		return err
	}
	if versions := versionsOf(rows); len(versions) > 0 {
		printWrapped(w, width, "Versions: ", strings.Join(versions, ", "))
	}
	reasons.print(w, width)
	printIncapable(w, width, rows)
	printTraces(w, width, rows)
	printHost(w, width, warnings)
	if os.Geteuid() != 0 {
		fmt.Fprintln(w, "\nWithout root Touchstone measures only rootless containers. Root has more targets.")
	}
	_, err := os.Stat("/usr/bin/apt-get")
	if command, count := repair(rows, err == nil); count > 0 {
		fmt.Fprintf(w, "\nThis repairs most (%s): %s\n", wording.Counted(count, "target"), command)
	}
	return nil
}

// printHost prints the warnings about this machine that a report will show, before a run.
func printHost(w io.Writer, width int, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	fmt.Fprintln(w)
	printWrapped(w, width, "", "This machine makes results less complete or less stable (touchstone host lists more):")
	for _, warning := range warnings {
		printWrapped(w, width, "  - ", warning)
	}
}

// printMatrix prints runtimes × engines. A pair that does not work has the number of a note.
func (a *App) printMatrix(rows []targetRow, reasons *notes) error {
	header, last := []string{"RUNTIME"}, "ISOLATION"
	var table [][]string
	isolation := map[string]string{} // by runtime
	pairs, working := 0, 0
	var bare []string
	for _, r := range rows {
		state := "works"
		if !r.Works {
			state = fmt.Sprintf("no [%d]", reasons.number(r))
		}
		if r.Runtime == "" {
			bare = append(bare, r.Target+": "+state)
			continue
		}
		pairs++
		if r.Works {
			working++
			isolation[r.Runtime] = r.Isolation
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
			table[line] = append(table[line], "-") // the pair is not a candidate
		}
		table[line][column] = state
	}
	if pairs > 0 {
		bare = append(bare, fmt.Sprintf("engine × runtime: %d of %d work", working, pairs))
	}
	fmt.Fprintln(a.env.Stdout, strings.Join(bare, "; "))
	if pairs == 0 {
		return nil
	}
	for i, line := range table {
		for len(line) < len(header) {
			line = append(line, "-")
		}
		table[i] = append(line, dash(isolation[line[0]]))
	}
	return a.print(formatTable, nil, append(header, last), table)
}

// versionWord is the word of a program between its name and its version.
var versionWord = regexp.MustCompile(` version:? `)

// versionsOf lists the versions of all programs, each once.
func versionsOf(rows []targetRow) []string {
	var versions []string
	for _, r := range rows {
		if r.Works && r.Version != "" {
			versions = add(versions, strings.Split(versionWord.ReplaceAllString(r.Version, " "), ", ")...)
		}
	}
	return versions
}

// notes holds the reasons of targets that do not work, each once.
type notes []targetRow

// number returns the number of a row's reason, from 1. An excerpt of an error at the end of a reason names objects of one target, so it makes no
// other reason.
func (n *notes) number(r targetRow) int {
	cause := func(r targetRow) string {
		text, _, _ := strings.Cut(r.Reason, " (… ")
		return text
	}
	i := slices.IndexFunc(*n, func(o targetRow) bool { return cause(o) == cause(r) && o.Advice == r.Advice })
	if i < 0 {
		i = len(*n)
		*n = append(*n, r)
	}
	return i + 1
}

func (n notes) print(w io.Writer, width int) {
	if len(n) > 0 {
		fmt.Fprintln(w)
	}
	for i, r := range n {
		text := r.Reason
		advice, command, isLong := strings.Cut(r.Advice, "\n")
		if advice != "" {
			text += "; remedy: " + advice
		}
		printWrapped(w, width, fmt.Sprintf("[%d] ", i+1), text)
		if isLong { // a command that a shell must get in one line
			fmt.Fprintln(w, hanging+command)
		}
	}
}

// printIncapable prints the capabilities that working targets lack. The reasons are in the JSON.
func printIncapable(w io.Writer, width int, rows []targetRow) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r targetRow) bool { return !r.Works })
	var places []string
	capabilities := map[string][]string{} // by place
	for _, c := range engine.Capabilities() {
		lack := func(r targetRow) bool { return r.Cannot[string(c)] != "" }
		if !slices.ContainsFunc(rows, lack) {
			continue
		}
		place := strings.Join(patterns(rows, lack), ", ")
		if len(rows) > 1 && !slices.ContainsFunc(rows, func(r targetRow) bool { return !lack(r) }) {
			place = "every target"
		}
		places = add(places, place)
		capabilities[place] = append(capabilities[place], string(c))
	}
	if len(places) > 0 {
		var lacks []string
		for _, place := range places {
			lacks = append(lacks, strings.Join(capabilities[place], ", ")+" on "+place)
		}
		fmt.Fprintln(w)
		printWrapped(w, width, "Missing: ", strings.Join(lacks, "; ")+". touchstone targets -o json has the reasons.")
	}
}

// patterns names the selected rows: ENGINE/* for all targets of an engine, and ENGINE/RUNTIME* for a runtime with all its options.
func patterns(rows []targetRow, match func(targetRow) bool) []string {
	var names []string
	for _, r := range rows {
		if !match(r) {
			continue
		}
		runtime, _, _ := strings.Cut(r.Target, "@")
		name := r.Target
		for _, group := range []struct {
			name string
			has  func(targetRow) bool
		}{
			{r.Engine + "/*", func(o targetRow) bool { return o.Engine == r.Engine }},
			{runtime + "*", func(o targetRow) bool { return o.Target == runtime || strings.HasPrefix(o.Target, runtime+"@") }},
		} {
			count := 0
			isWhole := !slices.ContainsFunc(rows, func(o targetRow) bool {
				if group.has(o) {
					count++
				}
				return group.has(o) && !match(o)
			})
			if isWhole && count > 1 {
				name = group.name
				break
			}
		}
		names = add(names, name)
	}
	return names
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
