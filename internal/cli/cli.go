// Package cli is the command line, with one file for each verb. It reads flags, prints, and decides the exit code;
// no other package prints.
//
// A verb gets its streams and the properties of the terminal in one [Environment], so that tests can run a verb
// in their own process.
//
// Invariant printing: Only `cli` prints, only `main` exits.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/trust"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// Exit codes. The help repeats them.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
	ExitTrials  = 3
	// ExitWorse is the end of a comparison that shows a difference beyond its margin.
	ExitWorse    = 4
	ExitNoTarget = 5
	// ExitInconclusive is the end of a comparison that shows neither a difference beyond its margin nor a difference within it. A gate must
	// not take it for a pass.
	ExitInconclusive = 6
	ExitInterrupted  = 130
)

// ErrInterrupted is the cause of a context that a signal cancelled.
var ErrInterrupted = errors.New("interrupted")

// development is the version of a program that neither the linker nor go install has given one.
const development = "dev"

// version is set by the linker's -X flag.
var version = development

// Environment holds the streams of the program and the properties of its terminal.
type Environment struct {
	Stdout, Stderr io.Writer
	// Stdin has the answers to questions; nil if it is no terminal.
	Stdin io.Reader
	// Live is true if Stderr is a terminal that can redraw a line.
	Live bool
	// Width is the width of the terminal, 0 without a terminal.
	Width int
	// Color is true if Stdout is a terminal and NO_COLOR is not set.
	Color bool
	// RunID returns the ID of a new run.
	RunID func() string
	// PeerSecret is the value of the variable for the secret of two machines. The environment of the process has it no more, so that
	// no runtime, no program and no record gets it.
	PeerSecret string
	// Trace is the file for the calls of engines; empty without one.
	Trace string
	// Root is the root of the file system of the machine that touchstone host inspects and changes: "/" if empty, or a copy in tests.
	Root string
}

// System returns the environment of the process.
func System() Environment {
	env := Environment{
		Stdout: os.Stdout, Stderr: os.Stderr,
		Live:  term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
		Color: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		RunID: func() string { return workdir.NewRunID(time.Now()) },
		Trace: os.Getenv(traceVariable), Root: "/",
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		env.Stdin = os.Stdin
	}
	env.PeerSecret = os.Getenv(peer.SecretVariable)
	_ = os.Unsetenv(peer.SecretVariable) // never fails for a valid name
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		env.Width = width
	}
	return env
}

// App is the program.
type App struct {
	status

	mu      sync.Mutex
	abandon func() error // removes at once all that the run under way has on the host
}

// New returns the program in an environment. Everything that it prints passes a cleaner.
func New(env Environment) *App {
	terminal := env.Stderr
	env.Stdout, env.Stderr = cleanLog(env.Stdout), cleanLog(env.Stderr)
	env.Root = cmp.Or(env.Root, "/")
	return &App{status: status{env, terminal}}
}

// Abandon removes at once all that a run under way has on the host. The program must end right after.
func (a *App) Abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abandon == nil {
		return
	}
	if err := a.abandon(); err != nil {
		fmt.Fprintf(a.env.Stderr, "touchstone: %v\n", err)
	}
}

// onAbandon sets the function that Abandon calls, until the returned function is called.
func (a *App) onAbandon(f func() error) (reset func()) {
	set := func(f func() error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.abandon = f
	}
	set(f)
	return func() { set(nil) }
}

// Run executes the command line and returns the exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(store.WithNotice(ctx, patience, func(path string) {
		a.line("waiting for another process that is writing to results file " + path)
	}))
	if err == nil {
		return ExitOK
	}
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return exit.code
	}
	if errors.Is(err, unix.EPIPE) { // the reader of the output has closed the pipe
		return ExitFailure
	}
	fmt.Fprintf(a.env.Stderr, "touchstone: %s\n", indent(err.Error()))
	return codeOf(err)
}

// indent indents the second and further lines of a message.
func indent(message string) string {
	return strings.ReplaceAll(strings.TrimSpace(message), "\n", "\n  ")
}

// exitError is an error with an exit code. Without an inner error, the message is already printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// orExit joins err with the error that ends the program. If end is only an exit code, err replaces it: the code is
// about the trials, and err is about another failure.
func orExit(err, end error) error {
	if exit := (*exitError)(nil); err != nil && errors.As(end, &exit) && exit.err == nil {
		return err
	}
	return errors.Join(err, end)
}

func usage(err error) error { return &exitError{ExitUsage, err} }

// is reports whether an error of type T is in err.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func codeOf(err error) int {
	exit, ok := errors.AsType[*exitError](err)
	switch {
	case ok && exit.code != ExitUsage:
		return exit.code
	case is[*experiment.UnavailableError](err):
		return ExitNoTarget
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return ExitInterrupted
	case ofMachine(err):
		return ExitFailure
	case ok, is[*plan.Error](err), is[*bench.ParamError](err), is[*target.SyntaxError](err), is[*store.IDError](err), is[*execution.UsageError](err):
		return ExitUsage
	default:
		return ExitFailure
	}
}

// wrongName are the errors of the system for a name that cannot be right. Only these can be the fault of a call.
var wrongName = []unix.Errno{unix.ENOENT, unix.ENOTDIR, unix.EISDIR, unix.ENAMETOOLONG, unix.ELOOP, unix.EINVAL}

// ofMachine reports whether an error comes from the state of the machine: from a call of the system, a results file, or a file that another user
// can change. Another call would not help, so the exit code is not 2.
func ofMachine(err error) bool {
	if is[*store.FileError](err) || is[*trust.Error](err) || is[*execution.MachineError](err) {
		return true
	}
	errno, ok := errors.AsType[unix.Errno](err)
	return ok && !slices.Contains(wrongName, errno)
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "touchstone",
		Short: "Measure the cost of container runtimes on this machine",
		Long: `Touchstone measures the cost of container runtimes on this machine: the speed,
the weight and the predictability of each engine × runtime, compared with bare
metal and with each other.

  touchstone benchmark        measure every runtime on this machine with the quick plan
  touchstone targets          show the targets of this machine, and why others do not work
  touchstone report           show the newest results again
  touchstone compare A B      compare runs, and fail on a regression
  touchstone reproduce espe   repeat a study, and see which of its claims hold here

A target is an engine and a runtime with its options: native, oci/runc,
oci/runsc@platform=systrap.`,
		Example: `  touchstone benchmark
  touchstone benchmark -f plan.yaml -d out/
  touchstone benchmark --targets oci/runc,oci/crun --filter operations --runs 20`,
		Version:       programVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Flags().Bool("version", false, "show the version of this program alone")
	root.SetOut(a.env.Stdout) // before addCobra: the commands of completions keep this stream
	root.SetErr(a.env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	})
	addVerbs(
		root,
		a.profiled(a.benchmarkCommand()), a.profiled(a.abCommand()), a.profiled(a.reproduceCommand()), a.profiled(a.selfcheckCommand()), a.profiled(a.reportCommand()),
		a.targetsCommand(), a.setupCommand(), a.doctorCommand(), a.hostCommand(), a.listCommand(), a.paperCommand(), a.compareCommand(), a.countsCommand(), a.commentCommand(), a.adviseCommand(), a.explainCommand(),
		a.baselineCommand(), a.historyCommand(), a.uiCommand(), a.runsCommand(), a.indexCommand(), a.exportCommand(), a.importCommand(), a.imageCommand(), a.clusterCommand(), a.peerCommand(), a.cleanupCommand(), a.versionCommand(),
		a.delayCommand(), a.agentCommand(),
	)
	limitArgs(root)
	addCobra(root)
	fitHelp(root, a.env.Width)
	return root
}

// addVerbs makes cmd a group of verbs.
func addVerbs(cmd *cobra.Command, verbs ...*cobra.Command) {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("no command is named %q", args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, v := range verbs {
		limitArgs(v)
		cmd.AddCommand(v)
	}
}

// addCobra adds cobra's own commands, help and completion. Without the checks here they accept an unknown name and
// exit with 0.
func addCobra(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return usage(fmt.Errorf("no command is named %q; see touchstone --help", strings.Join(args, " ")))
				}
				return nil
			}
		case "completion":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usage(fmt.Errorf("no completion exists for %q; see touchstone completion --help", args[0]))
				}
				return nil
			}
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = atMost(0)
			}
		}
	}
}

// limitArgs turns a wrong number of arguments into a usage error.
func limitArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = atMost(0)
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
		}
		return nil
	}
}

// atMost refuses more than n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage(fmt.Errorf("%s: %q is one argument too many", cmd.Name(), args[n]))
		}
		return nil
	}
}

// tool returns the version of this program.
func tool() result.Tool {
	t := result.Tool{Version: version}
	if info, ok := debug.ReadBuildInfo(); ok {
		t.Go = info.GoVersion
		if release := info.Main.Version; version == development && release != "" && release != "(devel)" {
			t.Version = release
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				t.Commit = s.Value
			}
		}
	}
	return t
}
