package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/host/check"
	"github.com/touchstone-bench/touchstone/internal/host/tune"
	"github.com/touchstone-bench/touchstone/internal/trust"
	"github.com/touchstone-bench/touchstone/internal/turn"
)

func (a *App) hostCommand() *cobra.Command {
	var format format
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Show why this machine is a poor place to measure, and change it for a while",
		Long: `Lists the properties of this machine that decide how well one can measure on it: good, poor,
unknown (the kernel does not show the property) or unreadable (with the reason). Each poor one
has its effect on results and a remedy. The listing changes nothing. It samples the use of the
CPUs for 1.5 seconds. docs/host.md describes each property.`,
		Example: `  touchstone host
  touchstone host -o json
  sudo touchstone host tune --dry-run
  sudo touchstone host tune --only governor,turbo && sudo touchstone benchmark
  sudo touchstone host restore`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.showHost(cmd.Context(), format) },
	}
	addFormat(cmd, &format)
	for _, verb := range []*cobra.Command{a.hostTuneCommand(), a.hostRestoreCommand()} {
		limitArgs(verb)
		cmd.AddCommand(verb)
	}
	return cmd
}

func (a *App) hostTuneCommand() *cobra.Command {
	var (
		names []string
		dry   bool
		allow bool
	)
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Change poor settings of this machine until touchstone host restore",
		Long: fmt.Sprintf(`Changes the settings that make this machine a poor place to measure, where that is possible
while it runs, and where the change can be put back:

  governor      performance
  turbo         off
  thp           madvise: huge pages only for programs that ask for them
  ksm           stopped; merged pages stay merged
  swap          vm.swappiness 0; no swap device is switched off
  irqbalance    paused by a signal; interrupts stay where they are
  favordynmods  on, where cgroup2 is mounted and Linux is older than 6.18
  smt           off, unless cpusets of cgroup v1 exist, which would lose CPUs for good

The changes hold for all programs of the machine until touchstone host restore or a restart of the
machine, and runs record them. Before the first change, the present values are written to
%s.
A second tune keeps these values. While a run of root, or of the user who called sudo, is under
way, nothing is changed without --allow-concurrent. Runs of other users are named.

A setting that the machine refuses is listed with the reason, and the others are changed. The exit
code is 1 if nothing was changed and a setting was refused, or if a setting of --only was refused or
is not available. A machine that needs no change gives 0.`, tune.RecordFile("/")),
		Example: `  sudo touchstone host tune
  sudo touchstone host tune --only governor,thp --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("only") && len(names) == 0 {
				return usage(errors.New("--only names no setting; leave it out to change all of them"))
			}
			return a.tuneHost(cmd.Context(), names, dry, allow)
		},
	}
	cmd.Flags().StringSliceVar(&names, "only", nil, "change only these settings, separated by commas")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the changes, and change nothing")
	cmd.Flags().BoolVar(&allow, "allow-concurrent", false, besideHelp)
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(tune.Settings(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *App) hostRestoreCommand() *cobra.Command {
	var force, allow bool
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back the settings that touchstone host tune has changed",
		Long: `Puts back all settings that touchstone host tune has changed, also if it was killed. A value that
another program has changed since is reported and left alone. --force puts it back too. CPUs that
were offline before SMT was switched off are taken offline again. After a restart of the machine
all settings are the system's own again, and only the record is removed.

The exit code is 1 if a value could not be put back, or was left alone.`,
		Example: `  sudo touchstone host restore`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.restoreHost(cmd.Context(), force, allow) },
	}
	cmd.Flags().BoolVar(&allow, "allow-concurrent", false, besideHelp)
	cmd.Flags().BoolVar(&force, "force", false, "also put back values that another program has changed since")
	return cmd
}

// besideHelp describes --allow-concurrent of tune and restore.
const besideHelp = "change settings also during a run; it divides the run's trials"

func (a *App) showHost(ctx context.Context, format format) error {
	defer a.clear()
	a.show(fmt.Sprintf("sampling the use of the CPUs for %v …", check.SampleTime))
	pause := check.Pause
	if a.env.Root != "/" { // the counters of a copy do not change
		pause = func(context.Context) error { return nil }
	}
	findings, err := check.Inspect(ctx, a.env.Root, pause)
	if err != nil {
		return err
	}
	a.clear()
	var cells [][]string
	for _, f := range findings {
		state := f.Now
		if f.Before != "" {
			state += ", tuned from " + f.Before
		}
		cells = append(cells, []string{f.Name, string(f.Rating), state})
	}
	w := a.env.Stdout
	if err := a.print(format, findings, []string{"PROPERTY", "RATING", "NOW"}, cells); err != nil || format != formatTable {
		return err
	}
	for _, f := range findings {
		if f.Rating == check.Poor {
			printPoor(w, a.env.Width, f)
		}
	}
	if slices.ContainsFunc(findings, func(f check.Finding) bool { return f.Rating == check.Unreadable }) && os.Geteuid() != 0 {
		fmt.Fprintln(w, "\nroot can read more properties.")
	}
	return a.mentionTuning()
}

func printPoor(w io.Writer, width int, f check.Finding) {
	fmt.Fprintln(w)
	printWrapped(w, width, f.Name+": ", f.Effect)
	remedy := f.Remedy
	if f.Tunable {
		remedy = "touchstone host tune --only " + f.Name + "; or " + remedy
	}
	printWrapped(w, width, "    remedy: ", remedy)
	if f.Source != "" {
		printWrapped(w, width, "    source: ", f.Source)
	}
}

// mentionTuning prints which settings are changed now. It prints nothing to a user who cannot read the record.
func (a *App) mentionTuning() error {
	record, err := tune.ReadRecord(a.env.Root)
	switch {
	case errors.Is(err, tune.ErrNotTuned), errors.Is(err, os.ErrPermission):
		return nil
	case err != nil:
		return err
	}
	text := fmt.Sprintf("touchstone host tune changed %s of this machine at %s, and touchstone host restore puts it back",
		strings.Join(record.Settings(), ", "), record.Began.Local().Format("2006-01-02 15:04"))
	if record.Restarted {
		text = "touchstone host tune changed settings before this machine was restarted, and they are as before; touchstone host restore removes the record"
	}
	fmt.Fprintln(a.env.Stdout)
	printWrapped(a.env.Stdout, a.env.Width, "", text)
	return nil
}

func (a *App) tuneHost(ctx context.Context, names []string, dry, allow bool) error {
	for _, name := range names {
		if !slices.Contains(tune.Settings(), name) {
			return usage(fmt.Errorf("--only: no setting has the name %q; the settings are %s", name, strings.Join(tune.Settings(), ", ")))
		}
	}
	if !dry {
		release, err := a.aloneOnHost(ctx, allow)
		if err != nil {
			return err
		}
		defer release()
	}
	outcomes, err := tune.New(a.env.Root).Apply(ctx, names, dry)
	a.printOutcomes(outcomes, false)
	if err != nil {
		return err
	}
	hasChange := slices.ContainsFunc(outcomes, func(o tune.Outcome) bool { return o.Status == tune.Changed })
	if hasChange {
		fmt.Fprintln(a.env.Stdout, "touchstone host restore puts the values back, and so does a restart of the machine")
	}
	failed := slices.ContainsFunc(outcomes, func(o tune.Outcome) bool {
		return o.Status == tune.Refused && (!hasChange || len(names) > 0) || o.Status == tune.Unavailable && len(names) > 0
	})
	if failed {
		return &exitError{code: ExitFailure}
	}
	return nil
}

func (a *App) restoreHost(ctx context.Context, force, allow bool) error {
	release, err := a.aloneOnHost(ctx, allow)
	if err != nil {
		return err
	}
	defer release()
	outcomes, err := tune.New(a.env.Root).Restore(ctx, force)
	if errors.Is(err, tune.ErrNotTuned) {
		fmt.Fprintln(a.env.Stdout, "nothing to restore: "+err.Error())
		return nil
	}
	a.printOutcomes(outcomes, true)
	if err != nil {
		return err
	}
	status := func(s tune.Status) bool {
		return slices.ContainsFunc(outcomes, func(o tune.Outcome) bool { return o.Status == s })
	}
	if status(tune.Foreign) {
		printWrapped(a.env.Stdout, a.env.Width, "", fmt.Sprintf("--force puts back also the values that were left alone; to keep them, remove %s", tune.RecordFile(a.env.Root)))
	}
	if status(tune.Foreign) || status(tune.Refused) {
		return &exitError{code: ExitFailure}
	}
	return nil
}

// aloneOnHost keeps runs from starting while settings change. It fails for users who cannot change settings, and while a run of root or of the
// user who called sudo is under way, because the change would divide its trials; allow is for those who accept it. Runs of
// other users are only named: otherwise any user could prevent root from putting the settings back.
func (a *App) aloneOnHost(ctx context.Context, allow bool) (release func(), err error) {
	if a.env.Root != "/" {
		return func() {}, nil
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("the settings of a machine can be changed only by root; use sudo")
	}
	mine, counting, rest, err := turn.Seize(ctx, a.env.RunID(), trust.User, allow)
	switch {
	case err != nil:
		return nil, err
	case mine == nil:
		return nil, fmt.Errorf("%s, and a change would divide its trials: wait for its end; --allow-concurrent changes the settings nevertheless", turn.UnderWay(counting))
	}
	if list := slices.Concat(counting, rest); len(list) > 0 {
		a.line("note: " + turn.UnderWay(list) + ": the change divides its trials")
	}
	return mine.End, nil
}

// printOutcomes prints one line for the values of a setting that had the same outcome. back is set for changes from the tuned value to the one before.
func (a *App) printOutcomes(outcomes []tune.Outcome, back bool) {
	type line struct {
		tune.Outcome
		values int
	}
	var lines []line
	for _, o := range outcomes {
		o.Key = ""
		i := slices.IndexFunc(lines, func(l line) bool { return l.Outcome == o })
		if i < 0 {
			i, lines = len(lines), append(lines, line{Outcome: o})
		}
		lines[i].values++
	}
	for _, l := range lines {
		text := l.Setting
		if l.Before != "" {
			start, end := l.Before, l.After
			if back {
				start, end = end, start
			}
			text += fmt.Sprintf(" from %s to %s", start, end)
		}
		if l.values > 1 {
			text += fmt.Sprintf(" (%d values)", l.values)
		}
		reason := cmp.Or(l.Reason, map[tune.Status]string{tune.Kept: "no poor value"}[l.Status])
		if reason != "" {
			text += ": " + reason
		}
		printWrapped(a.env.Stdout, a.env.Width, "", string(l.Status)+" "+text)
	}
}
