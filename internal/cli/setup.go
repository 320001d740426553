package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/setup"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/turn"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// setupFlags are the flags of touchstone setup.
type setupFlags struct {
	yes, dry, list, path, remove, all, beside bool
	source, from, arch                        string
	format                                    format
}

func (a *App) setupCommand() *cobra.Command {
	var o setupFlags
	cmd := &cobra.Command{
		Use:   "setup [NAME[@VERSION]...]",
		Short: "Install current runtimes and engines for measurements, beside the system's copies",
		Long: `Installs runtimes and engines into a store of their own: runc, crun, youki, runsc (gVisor),
containerd, crio and kata. Without names it installs those that this machine lacks, or has in a version that
is too old for the targets of touchstone targets.

If the system's copy is recent, nothing is installed. Otherwise a part comes from the first of these sources that
has it: a package of the distribution (APT), a release of the project, and a build from pinned sources. --source
restricts the sources to one of them. NAME@VERSION installs exactly this version.
All parts are shown before: version, licence, source, size, digest and destination. Before a part is
installed, one container must run with it.

An installation disturbs measurements. It waits for the end of a run on this machine, and a run that begins
meanwhile fails or waits, as beside another run.

The store is /var/lib/touchstone/runtimes, or touchstone/runtimes below the user's data directory without root;
TOUCHSTONE_RUNTIMES names another directory. Only touchstone uses it: PATH, /usr and the configurations of
daemons stay as they are. Touchstone prefers its parts, and calls the system's copy of a runtime with the option
copy=system, as in oci/runsc@copy=system.`,
		Example: `  touchstone setup
  touchstone setup runsc crun
  touchstone setup --yes --source build containerd@1.7.35
  touchstone setup --from /media/usb/runtimes runsc
  touchstone setup --remove runsc`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error { return a.setup(cmd.Context(), names, o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.yes, "yes", "y", false, "install without a question, which is needed without a terminal")
	f.BoolVar(&o.dry, "dry-run", false, "show the parts and their sources, and install nothing")
	f.StringVar(&o.source, "source", "", "use only sources of this `KIND`: "+strings.Join(kindNames(), ", ")+"; the system's copy does not count")
	f.StringVar(&o.from, "from", "", flagText("take files from `DIR`, without a network: releases and sources with the names of their URLs, or a store of another machine"))
	f.StringVar(&o.arch, "arch", runtime.GOARCH, flagText("install programs for another `ARCHITECTURE`, without a trial, into a part of the store that only --path names: "+strings.Join(setup.Architectures(), ", ")))
	f.BoolVar(&o.beside, "allow-concurrent", false, "install also during a run, which disturbs it")
	f.BoolVar(&o.list, "list", false, "list the parts: installed ones, and those that can be installed")
	f.BoolVar(&o.path, "path", false, "print the directories of installed parts, all or the named ones, joined as in PATH")
	f.BoolVar(&o.remove, "remove", false, "remove the named parts: NAME with all versions, or NAME@VERSION")
	f.BoolVar(&o.all, "all", false, "with --remove: remove all parts")
	addOutput(cmd, &o.format, "`FORMAT` of --list", formatTable, formatJSON, formatYAML)
	_ = cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return partNames(), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func kindNames() []string {
	var names []string
	for _, k := range parts.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// partNames lists the names of all parts, each once.
func partNames() []string {
	var names []string
	for _, r := range setup.Lock() {
		names = add(names, r.Name)
	}
	return names
}

// check refuses flags that contradict each other.
func (o setupFlags) check(names []string) error {
	count := 0
	for _, isSet := range []bool{o.list, o.path, o.remove, o.dry || o.yes || o.source != "" || o.from != ""} {
		if isSet {
			count++
		}
	}
	switch {
	case count > 1:
		return errors.New("--list, --path, --remove and an installation exclude each other")
	case o.all && !o.remove:
		return errors.New("--all is only for --remove; without names setup installs all parts that this machine lacks")
	case o.remove && o.all == (len(names) > 0):
		return errors.New("--remove needs names of parts, or --all")
	case o.list && len(names) > 0:
		return errors.New("--list takes no names")
	case o.source != "" && !slices.Contains(kindNames(), o.source):
		return fmt.Errorf("--source is %s, and not %q", strings.Join(kindNames(), ", "), o.source)
	case o.from != "" && o.source != "":
		return errors.New("--from and --source exclude each other")
	case o.dry && o.yes:
		return errors.New("--dry-run and --yes exclude each other")
	case !slices.Contains(setup.Architectures(), o.arch):
		return fmt.Errorf("no part is for the architecture %q; known are %s", o.arch, strings.Join(setup.Architectures(), ", "))
	case o.arch != runtime.GOARCH && len(names) == 0 && !o.path && !o.remove:
		return errors.New("--arch needs the names of parts: another machine may lack other parts than this one")
	}
	return nil
}

func (a *App) setup(ctx context.Context, names []string, o setupFlags) error {
	if err := o.check(names); err != nil {
		return usage(err)
	}
	root, err := parts.Root()
	if err != nil {
		return usage(err)
	}
	if o.from != "" {
		if o.from, err = filepath.Abs(o.from); err != nil {
			return err
		}
	}
	steps := &timedSteps{status: a.status}
	defer steps.end()
	s := &setup.Setup{
		Root: setup.Store(root, o.arch, runtime.GOARCH), Recipes: setup.Lock(), Arch: o.arch, Touchstone: tool().Version,
		Source: parts.Kind(o.source), From: o.from, Client: http.DefaultClient,
		Step: steps.begin, Wait: func() { a.line("waiting for another touchstone setup") }, Try: a.tryPart,
		System: func(program string, dirs []string) (string, bool) {
			return engine.FindIn(program, append(engine.ProgramDirs(parts.SystemPath()), dirs...))
		},
	}
	switch {
	case o.list:
		return a.listParts(root, o.format)
	case o.path:
		return a.printPath(s.Root, names)
	case o.remove:
		return a.removeParts(ctx, s, names)
	}
	return asUsage(a.install(ctx, s, names, o, steps))
}

// asUsage gives a wrong name the exit code of a usage error.
func asUsage(err error) error {
	if is[*setup.UsageError](err) {
		return usage(err)
	}
	return err
}

// install finds the sources of parts, shows them, asks, and installs.
func (a *App) install(ctx context.Context, s *setup.Setup, names []string, o setupFlags, steps *timedSteps) error {
	var items []setup.Item
	var err error
	if steps.begin("looking for sources"); len(names) > 0 {
		items, err = s.Plan(ctx, names)
	} else {
		items, err = s.Gaps(ctx)
	}
	if steps.end(); err != nil {
		return err
	}
	missing, err := a.showItems(items, len(names) > 0)
	if err != nil || o.dry {
		return err
	}
	if len(missing) == 0 {
		fmt.Fprintln(a.env.Stdout, "nothing to install")
		return nil
	}
	hasNew := slices.ContainsFunc(missing, func(i setup.Item) bool { return !i.IsInstalled })
	if err := a.confirm(ctx, o.yes || !hasNew); err != nil { // to choose an installed version needs no question
		return err
	}
	if hasNew && !o.beside {
		mine, err := turn.Await(ctx, a.env.RunID(), func(runs []turn.Other) { steps.begin("waiting for the end of " + turn.List(runs)) })
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%w; --allow-concurrent installs nevertheless", err)
		}
		defer mine.End()
		steps.end()
	}
	for _, item := range missing {
		if err := s.Install(ctx, []setup.Item{item}); err != nil {
			return err
		}
		steps.end()
		fmt.Fprintf(a.env.Stdout, "installed %s in %s\n", item.Title(), item.Destination)
	}
	return nil
}

// showItems prints each part with its source, and returns those to install. A named part without a source is an error; a gap of the machine
// without one is not.
func (a *App) showItems(items []setup.Item, isNamed bool) (missing []setup.Item, err error) {
	w, width := a.env.Stdout, a.env.Width
	for _, i := range items {
		switch {
		case i.Err != nil && isNamed:
			err = errors.Join(err, i.Err)
		case i.Err != nil:
			printWrapped(w, width, "", fmt.Sprintf("%s: not possible: %v", i.Name, i.Err))
		case i.System != "":
			printWrapped(w, width, "", fmt.Sprintf("%s: the system's %s is version %s, which is recent; %s@%s or --source installs another copy", i.Name, i.System, i.Version, i.Name, i.Recipe.Version))
		case i.IsInstalled:
			missing = append(missing, i)
			printWrapped(w, width, "", fmt.Sprintf("%s: installed in %s", i.Title(), i.Destination))
		default:
			missing = append(missing, i)
			fmt.Fprintf(w, "%s (%s), to %s\n", i.Title(), i.Licence, i.Destination)
			effort := ""
			if i.Minutes > 0 {
				effort = fmt.Sprintf(", about %s on two CPUs", wording.Counted(i.Minutes, "minute"))
			}
			printWrapped(w, width, hanging, fmt.Sprintf("%s of %s, %s%s", i.Origin.Kind, i.Origin.Source, megabytes(i.Size), effort))
			fmt.Fprintln(w, hanging+i.Origin.Digest)
		}
	}
	return missing, err
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// confirm asks once whether to install.
func (a *App) confirm(ctx context.Context, yes bool) error {
	if yes {
		return nil
	}
	if a.env.Stdin == nil {
		return usage(errors.New("setup asks before it installs, and this is no terminal; give --yes"))
	}
	fmt.Fprint(a.env.Stderr, "Install? [y/N] ")
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.env.Stdin).ReadString('\n') // no line is no
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return &exitError{ExitFailure, errors.New("nothing is installed")}
	}
}

// tryPart runs a container with a part that is not installed yet: with a runtime called directly, or with a private engine.
func (a *App) tryPart(ctx context.Context, part parts.Part) (err error) {
	if err := parts.Prepend(); err != nil { // the parts that this call has installed
		return err
	}
	p, err := quickPlan(plan.Overrides{})
	if err != nil {
		return err
	}
	p.Engines.Managed = true
	if p.Runtimes == nil {
		p.Runtimes = map[string]target.Runtime{}
	}
	p.Engines.Binaries = map[string]string{}
	for _, program := range part.Programs {
		p.Engines.Binaries[program.Name] = filepath.Join(part.Bin(), program.Name)
	}
	trial := target.Target{Engine: part.Name}
	if i := slices.IndexFunc(setup.Lock(), func(r setup.Recipe) bool { return r.Name == part.Name }); i >= 0 && !setup.Lock()[i].IsEngine {
		trial = target.Target{Engine: "oci", Runtime: part.Name}
		p.Runtimes[part.Name] = target.Runtime{Path: filepath.Join(part.Bin(), part.Name)}
	}
	s := execution.NewSession(a.env.RunID(), p)
	defer a.onAbandon(s.Abandon)()
	if _, err := s.Open(ctx, func(reason string) { a.line(reason) }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return tryOn(ctx, engines.All(fake.NewClock(), s.Sockets), trial, &s.Session)
}

// tryOn opens a target, which runs a container. An engine is tried with the first runtime of this machine that works.
func tryOn(ctx context.Context, drivers engines.Drivers, trial target.Target, s *engine.Session) error {
	trials := []target.Target{trial}
	var errs []error
	if trial.Runtime == "" {
		trials = nil
		for _, c := range drivers.Candidates(ctx, *s) {
			switch {
			case c.Target.Engine != trial.Engine || !c.Default:
			case c.Err != nil:
				errs = append(errs, c.Err)
			default:
				trials = append(trials, c.Target)
			}
		}
	}
	if len(trials)+len(errs) == 0 {
		return fmt.Errorf("no runtime is here to try %s with; install one first: touchstone setup runc %s", trial.Engine, trial.Engine)
	}
	s.Targets = trials
	for _, t := range trials {
		e, err := drivers.Open(ctx, t, *s)
		if err == nil {
			return e.Close()
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// listedPart is a part in the listing.
type listedPart struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Licence   string `json:"licence"`
	Installed bool   `json:"installed"`
	Current   bool   `json:"current"`
	ByHand    bool   `json:"by_hand"` // setup has no source of it
	Origin    string `json:"origin,omitempty"`
	Directory string `json:"directory,omitempty"`
}

func (a *App) listParts(root string, f format) error {
	list, err := parts.List(root)
	var rows []listedPart
	for _, p := range list {
		rows = append(rows, listedPart{Name: p.Name, Version: p.Version, Licence: p.Licence, Installed: true, Current: p.Current, Origin: p.Origin.Text(), Directory: p.Dir})
	}
	for _, r := range setup.Lock() {
		if !slices.ContainsFunc(rows, func(p listedPart) bool { return p.Name == r.Name && p.Version == r.Version }) {
			rows = append(rows, listedPart{Name: r.Name, Version: r.Version, Licence: r.Licence, ByHand: r.Manual != ""})
		}
	}
	header := []string{"NAME", "VERSION", "LICENCE", "STATE", "DIRECTORY"}
	return errors.Join(err, printList(a, f, rows, header, func(p listedPart) []string {
		state := "not installed"
		switch {
		case p.Current:
			state = "in use"
		case p.Installed:
			state = "installed"
		case p.ByHand:
			state = "only by hand"
		}
		return []string{p.Name, p.Version, p.Licence, state, dash(p.Directory)}
	}))
}

// printPath prints the directories of parts: of those in use, or of the named ones in the order of the names.
func (a *App) printPath(root string, names []string) error {
	list, err := parts.List(root)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		for _, p := range list {
			if p.Current {
				names = append(names, p.String())
			}
		}
	}
	var dirs []string
	for _, name := range names {
		i := slices.IndexFunc(list, func(p parts.Part) bool { return p.String() == name || p.Name == name && p.Current })
		if i < 0 {
			return fmt.Errorf("%s is not installed in %s; touchstone setup %s installs it", name, root, name)
		}
		dirs = append(dirs, list[i].Bin())
	}
	fmt.Fprintln(a.env.Stdout, strings.Join(dirs, string(filepath.ListSeparator)))
	return nil
}

func (a *App) removeParts(ctx context.Context, s *setup.Setup, names []string) error {
	removals, err := s.Remove(ctx, names)
	for _, name := range removals {
		fmt.Fprintf(a.env.Stdout, "removed %s\n", name)
	}
	if err == nil && len(removals) == 0 {
		fmt.Fprintln(a.env.Stdout, "nothing to remove")
	}
	return err
}

// stepInterval is the time between two lines about a long step where a line cannot be redrawn. A terminal gets the time each second.
const stepInterval = 30 * time.Second

// timedSteps shows the step under way with its time.
type timedSteps struct {
	status
	finish func()
}

// begin ends the step before, and shows a step.
func (t *timedSteps) begin(step string) {
	t.end()
	t.step(step)
	ctx, cancel := context.WithCancel(context.Background())
	exit := make(chan struct{})
	interval := stepInterval
	if t.env.Live {
		interval = time.Second
	}
	go func() {
		defer close(exit)
		for elapsed := interval; ; elapsed += interval {
			pause, stop := context.WithTimeout(ctx, interval)
			<-pause.Done()
			stop()
			if ctx.Err() != nil {
				return
			}
			line := fmt.Sprintf("%s, %.0f s so far", step, elapsed.Seconds())
			if t.env.Live {
				t.show(line)
			} else {
				t.line(line)
			}
		}
	}()
	t.finish = func() {
		cancel()
		<-exit
		t.clear()
	}
}

// end ends the step under way.
func (t *timedSteps) end() {
	if t.finish != nil {
		t.finish()
		t.finish = nil
	}
}
