// Command suite runs the tests of the project: `make test` and `make test-all` call it by scripts/test.sh, which installs what it needs.
//
// The tests are steps. A step begins when the steps before it have ended, so the builds of the tools, the pure tests and the lint run side
// by side, and the tests of real engines begin as soon as their tools are built. Locks keep tests apart. Tests that need a resource of the
// machine, such as a daemon, a port or a cgroup, run one package at a time, beside one package of Kubernetes. Tests that change the machine or
// compare its state have it alone; only the pure tests and the virtual machines run beside all of these. Tests that measure run at the end,
// when nothing else runs.
//
// The suite prints each failure when it happens, and at the end the ten slowest tests, the time of each step, and the repeats. The whole
// output of a step is in out/test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/touchstone-bench/touchstone/test/cells"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
		os.Exit(1)
	}
}

// options are the suite's flags.
type options struct {
	// all selects every cell, the full simulations, the race detector, fuzzing, the campaign and the commands of the pages.
	all bool
	// only has the names of the steps to run, after the steps before them; all steps if it is empty.
	only []string
	// without has the names of parts that cannot be built here.
	without []string
	// lab selects the virtual machines.
	lab bool
	// writeBudgets writes the times of the packages in a run of all tests as their budgets.
	writeBudgets bool
}

func run(ctx context.Context) error {
	var o options
	selection := flag.String("only", "", "run only these `steps`, separated by commas, and the steps before them")
	flag.BoolVar(&o.all, "all", false, "run every cell, the full simulations, the race detector, fuzzing, the campaign and the commands of the pages")
	exclusion := flag.String("without", "", "do not install these `parts`, separated by commas")
	flag.BoolVar(&o.lab, "lab", true, "boot the virtual machines")
	flag.BoolVar(&o.writeBudgets, "write-budgets", false, "with -all: write the times of the packages whose tests pass as their budgets")
	flag.Parse()
	if *selection != "" {
		o.only = strings.Split(*selection, ",")
	}
	if *exclusion != "" {
		o.without = strings.Split(*exclusion, ",")
	}
	if o.writeBudgets && (!o.all || o.only != nil) {
		return errors.New("-write-budgets needs -all without -only: a budget is the time of a package in all tests")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	s, err := newSuite(ctx, root, o)
	if err != nil {
		return err
	}
	s.log.printf("cells: %s", orNone(s.cells))
	if !s.clusters {
		s.log.printf("no test on a cluster runs: Kubernetes is not built on this machine, and no cell of this change needs it (scripts/tools.sh kube builds it)")
	}
	steps, err := choose(s.steps(), o.only)
	if err != nil {
		return err
	}
	outcomes := s.runAll(ctx, steps)
	failed := s.summarize(outcomes)
	if err := s.keepRecord(failed); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if failed > 0 {
		return fmt.Errorf("%d failures; the whole output is in %s", failed, s.out)
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}

// suite is one run of the tests.
type suite struct {
	options
	root, out string
	// cells are the cells of this change.
	cells []string
	// clusters means that the tests on clusters run.
	clusters bool
	// picked means that the user named the cells.
	picked bool
	// commit is the commit of the checkout, with its number; clean means that the files are exactly the commit's.
	commit cells.Run
	clean  bool
	log    *printer
	// record is the file for the repeats of tests.
	record string
}

func newSuite(ctx context.Context, root string, o options) (*suite, error) {
	s := &suite{options: o, root: root, out: filepath.Join(root, "out", "test"), log: newPrinter(os.Stdout)}
	s.record = filepath.Join(s.out, "repeats.tsv")
	if err := os.RemoveAll(s.out); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return nil, err
	}
	if err := s.chooseCells(ctx); err != nil {
		return nil, err
	}
	s.clusters = len(s.only) > 0 || slices.ContainsFunc(s.cells, cells.OfClusters) || s.built(ctx, "kube")
	return s, nil
}

// built reports whether tools of scripts/tools.sh are built on this machine.
func (s *suite) built(ctx context.Context, tools ...string) bool {
	return exec.CommandContext(ctx, filepath.Join(s.root, "scripts/tools.sh"), append([]string{"--cached"}, tools...)...).Run() == nil
}
