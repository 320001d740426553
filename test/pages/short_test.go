package pages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// longVariable selects the short runs of all targets and scripts.
const longVariable = "TOUCHSTONE_PAGES"

// short is the short run of a make target or of a script.
type short struct {
	args []string
	env  []string
	// want is a pattern of the output of a run that worked.
	want string
	// judged accepts exit code 1: the run is too short for its judgement about the figures.
	judged bool
	// suite is the reason why there is no run here: make test-all runs the whole of it.
	suite string
}

const (
	wholeSuite = "it is a part of make test-all, or the whole of it"
	tagged     = "it needs a tag and a key; test/dist makes both"
	served     = "it needs the server of a release; test/ci has one"
	mirror     = "it changes the digests of the workload image; make test-all builds the image and compares it with them"
)

// shorts maps each make target ("make NAME") and each script to its short run. The names come from the pages, from make help and from the
// directory of scripts; this map shortens them only.
var shorts = map[string]short{
	"make help":           {want: `  build +Build`},
	"make build":          {},
	"make probes":         {want: "probe-riscv64"},
	"make bpf":            {want: "sha256sum kernel"},
	"make demo":           {args: []string{"ARGS=-t native,oci/crun --filter operations.container.lifecycle --runs 2"}, env: []string{"OUT=out/short"}, want: "The report, with the charts"},
	"make bench":          {args: []string{"ARGS=-benchtime=1x -run=^$"}, want: `Benchmark\S+\s+1\s`},
	"make bench-overhead": {args: []string{"ARGS=-b 6 -n 2"}, judged: true, want: `(?s)oci/crun: 6 batches, 12 lifecycles.*oci/runc: 6 batches, 12 lifecycles`},
	"make bench-million":  {args: []string{"ARGS=-divide 1000"}, want: `blocks, 1000 samples`},
	"make bench-page":     {args: []string{"ARGS=-bench=Page/9-targets -benchtime=1x"}, want: `BenchmarkPage/9-targets.* base-ms`},
	"make chaos-programs": {},
	"make dist":           {args: []string{"ARGS=amd64"}, want: `\d files of`},
	"make release":        {suite: tagged},
	"make fmt":            {},
	"make gen":            {},
	"make clean":          {},
	"make bench-stats":    {suite: wholeSuite},
	"make chaos":          {suite: wholeSuite},
	"make cross":          {suite: wholeSuite},
	"make fuzz":           {suite: wholeSuite},
	"make lint":           {suite: wholeSuite},
	"make pins":           {suite: mirror},
	"make race":           {suite: wholeSuite},
	"make test":           {suite: wholeSuite},
	"make test-all":       {suite: wholeSuite},
	"make test-lab":       {suite: wholeSuite},
	"make test-quick":     {suite: wholeSuite},

	"scripts/aa.sh":              {args: []string{"-k", "2", "-n", "6"}, judged: true, want: "crun against itself, 2 runs of 6 blocks"},
	"scripts/bench-engines.sh":   {args: []string{"-r", "1"}, judged: true, want: "(?s)critest ms.*containerd-stress pods/s.*load average after"},
	"scripts/bench-footprint.sh": {env: []string{"FOOTPRINT_COUNTS=50", "FOOTPRINT_FILTER=operations.container.lifecycle"}, judged: true, want: "quick plan: peak memory"},
	"scripts/bench-overhead.sh":  {args: []string{"-k", "-b", "6", "-n", "2", "runc"}, judged: true, want: "oci/runc: 6 batches"},
	"scripts/bench-programs.sh":  {args: []string{"-r", "6", "performance.cpu.sevenzip"}, judged: true, want: "(?s)performance.cpu.sevenzip.*load average after"},
	"scripts/build-probe.sh":     {want: "probe-"},
	"scripts/chaos.sh":           {suite: wholeSuite},
	"scripts/ci.sh":              {suite: served},
	"scripts/bench-fleet.sh":     {suite: wholeSuite},
	"scripts/cluster.sh":         {suite: wholeSuite},
	"scripts/demo.sh":            {args: []string{"-t", "native", "--filter", "operations.container.lifecycle", "--runs", "1"}, env: []string{"OUT=out/short-script"}, want: "The report, with the charts"},
	"scripts/dist.sh":            {args: []string{"amd64"}, env: []string{"VERSION=v0.0.1"}, want: `\d files of v0\.0\.1`},
	"scripts/fuzz.sh":            {suite: wholeSuite},
	"scripts/image.sh":           {want: `workload-\S+ sha256:`},
	"scripts/release.sh":         {suite: tagged},
	"scripts/reproductions.sh":   {args: []string{"wang"}, env: []string{"REPRODUCE_TARGETS=docker/runc", "REPRODUCE_TABLE=text 5.6 start-up"}, want: "page out/reproductions/wang/reproduction-wang-text"},
	"scripts/setup.sh":           {args: []string{"build", "runtimes"}},
	"scripts/test-lab.sh":        {suite: wholeSuite},
	"scripts/test.sh":            {suite: wholeSuite},
	"scripts/runtimes.sh":        {args: []string{"--cached", "runsc", "crun"}},
	"scripts/tools.sh":           {args: []string{"nfpm"}, want: "nfpm-"},
	"scripts/verdicts.sh":        {args: []string{"-k", "1", "-d", "1", "-c", "aa", "-c", "worse"}, env: []string{"BUDGET=10s", "AB_BUDGET=20s"}, judged: true, want: `worse +1`},
	"scripts/workload-matrix.sh": {args: []string{"performance.syscall.latency"}, want: `ok\s+\S+/internal/docgen`},
}

// targetLine is a line of make help, or the definition of a target in the Makefile.
var targetLine = regexp.MustCompile(`(?m)^([a-z][a-z-]*):(?:[^=].*)?$`)

// makeTargets returns the targets of the Makefile, and those that make help lists.
func makeTargets(makefile string) (targets, helpTargets []string) {
	for _, line := range targetLine.FindAllStringSubmatch(makefile, -1) {
		if !slices.Contains(targets, line[1]) && !strings.Contains(line[0], "export ") {
			targets = append(targets, line[1])
		}
		if strings.Contains(line[0], ":") && strings.Contains(line[0], "## ") {
			helpTargets = append(helpTargets, line[1])
		}
	}
	return targets, helpTargets
}

// namesIn returns the names of make targets and scripts in a command: "make test", "scripts/aa.sh".
func namesIn(c command) (names []string) {
	if strings.HasPrefix(c.program(), "scripts/") {
		return []string{c.program()}
	}
	if c.program() != "make" {
		return nil
	}
	for _, word := range c.words[1:] {
		switch {
		case strings.HasPrefix(word, "-"): // make -C DIR is another project's
			return nil
		case !strings.Contains(word, "=") && !placeholder.MatchString(word):
			names = append(names, "make "+word)
		}
	}
	return names
}

// script is the path of a script in the Makefile.
var script = regexp.MustCompile(`scripts/[a-z-]+\.sh`)

// named returns the places of each target and script: pages, make help, or the Makefile for a script that a target calls.
func named(t *testing.T) map[string][]string {
	t.Helper()
	mentions := map[string][]string{}
	for _, c := range everything(t) {
		for _, name := range namesIn(c) {
			mentions[name] = append(mentions[name], c.at.String())
		}
	}
	makefile := read(t, "Makefile")
	_, helpTargets := makeTargets(makefile)
	for _, target := range helpTargets {
		mentions["make "+target] = append(mentions["make "+target], "make help")
	}
	for _, name := range script.FindAllString(makefile, -1) {
		mentions[name] = append(mentions[name], "Makefile")
	}
	return mentions
}

// existing returns the targets of the Makefile and the scripts.
func existing(t *testing.T) (names []string) {
	t.Helper()
	targets, _ := makeTargets(read(t, "Makefile"))
	for _, target := range targets {
		names = append(names, "make "+target)
	}
	scripts, err := filepath.Glob(filepath.Join(root, "scripts", "*.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		names = append(names, "scripts/"+filepath.Base(script))
	}
	return names
}

// Each target and script of a page exists, each one that exists is in a page or in make help, and each has a short run.
//
// Invariant page-commands: Each make target, script, verb and flag in a page exists, and has a short run.
func TestTargetsAndScripts(t *testing.T) {
	mentions, names := named(t), existing(t)
	for name, places := range mentions {
		if !slices.Contains(names, name) {
			t.Errorf("%s does not exist, but it is in %s", name, strings.Join(places, ", "))
		}
	}
	for _, name := range names {
		if len(mentions[name]) == 0 {
			t.Errorf("%s is in no page, and not in make help: describe it there, or remove it", name)
		}
		if _, ok := shorts[name]; !ok {
			t.Errorf("%s has no short run: add it to the map shorts of test/pages, with arguments or variables that make it short", name)
		}
	}
	for name := range shorts {
		if !slices.Contains(names, name) {
			t.Errorf("%s has a short run, but does not exist", name)
		}
	}
}

// safe are the verbs of touchstone that only print something about the project or this machine.
var safe = []string{"list", "paper", "version"}

// plainFlags are the flags of a command line on the fake engine that change nothing outside of its own directory.
var plainFlags = []string{"-t", "--targets", "--filter", "-n", "--runs"}

// runnable returns whether a command line of a page can run as it is: it is short, and changes nothing outside of its directory.
func runnable(args []string) bool {
	if slices.ContainsFunc(args, placeholder.MatchString) {
		return false
	}
	if slices.Contains(safe, args[0]) {
		return true
	}
	if args[0] != "benchmark" {
		return false
	}
	fake := false
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") && !slices.Contains(plainFlags, arg) {
			return false
		}
		if arg == "-t" || arg == "--targets" {
			fake = i+1 < len(args) && strings.HasPrefix(args[i+1], "fake/") && !strings.Contains(strings.ReplaceAll(args[i+1], "fake/", ""), "/")
		}
	}
	return fake
}

// TestShortRuns runs every target and script, and the command lines of touchstone that are safe, in a copy of the project.
//
// Invariant page-commands.
func TestShortRuns(t *testing.T) {
	if os.Getenv(longVariable) == "" {
		t.Skipf("runs each target and script of the pages with real runtimes: set %s=1, as root, as make test-all does", longVariable)
	}
	if os.Geteuid() != 0 {
		t.Fatal("the runtimes need root")
	}
	clone := copyOfProject(t)
	execute(t, clone, short{}, "make", "build")
	names := existing(t)
	// A target that removes what others need comes last.
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(map[bool]string{true: "1"}[a == "make clean"], map[bool]string{true: "1"}[b == "make clean"])
	})
	t.Run("touchstone", func(t *testing.T) { runLines(t, clone) })
	for _, name := range names {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := shorts[name]
			if s.suite != "" {
				t.Skipf("%s: %s", name, s.suite)
			}
			execute(t, clone, s, append(strings.Fields(name), s.args...)...)
			clean(t, clone)
		})
	}
}

// runLines runs the command lines of touchstone in pages that can run as they are.
func runLines(t *testing.T, clone string) {
	ran := map[string]bool{}
	for _, c := range everything(t) {
		line := strings.Join(c.words, " ")
		if c.program() != "touchstone" || ran[line] || !runnable(c.words[1:]) {
			continue
		}
		ran[line] = true
		t.Run(fmt.Sprint(c.at), func(t *testing.T) {
			args := c.words[1:]
			if args[0] == "benchmark" {
				args = append(args, "-d", t.TempDir())
			}
			// The injected faults of an example make its trials fail.
			code, output := run(t, clone, nil, append([]string{"bin/touchstone"}, args...)...)
			if code != 0 && (code != 3 || !strings.Contains(line, "fail=")) {
				t.Errorf("%s: exit code %d\n%s", c, code, output)
			}
		})
	}
	if len(ran) < 5 {
		t.Errorf("%d command lines of the pages ran, want more than 5", len(ran))
	}
}

// copyOfProject returns a clone with the changes of the working tree that git knows, committed.
func copyOfProject(t *testing.T) string {
	t.Helper()
	git := func(dir string, args ...string) string {
		t.Helper()
		options := []string{"-c", "safe.directory=*", "-c", "user.name=test", "-c", "user.email=test@localhost", "-C", dir}
		out, err := exec.CommandContext(t.Context(), "git", append(options, args...)...).Output()
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	origin, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	commit := git(origin, "stash", "create")
	if commit == "" {
		commit = "HEAD"
	}
	dir := filepath.Join(t.TempDir(), "touchstone")
	git(origin, "clone", "--quiet", "--shared", "--no-checkout", origin, dir)
	git(dir, "checkout", "--quiet", "--detach", git(origin, "rev-parse", commit))
	return dir
}

// clean puts the pages of a copy back, which a run has written.
func clean(t *testing.T, clone string) {
	t.Helper()
	if code, output := run(t, clone, nil, "git", "checkout", "--quiet", "."); code != 0 {
		t.Fatalf("git checkout: %s", output)
	}
}

// runLimit bounds a short run.
const runLimit = 10 * time.Minute

// run runs a program in a directory, and returns its exit code and output. All its processes are killed after the limit.
func run(t *testing.T, dir string, env []string, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || !cmd.ProcessState.Exited() {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return cmd.ProcessState.ExitCode(), string(output)
}

// execute runs a short run, and checks its exit code and its output.
func execute(t *testing.T, dir string, s short, args ...string) {
	t.Helper()
	code, output := run(t, dir, s.env, args...)
	// make exits with code 2 if its program fails.
	if failed := code == 1 || code == 2 && args[0] == "make"; code != 0 && (!s.judged || !failed) {
		t.Errorf("%s: exit code %d\n%s", strings.Join(args, " "), code, output)
	} else if !regexp.MustCompile(s.want).MatchString(output) {
		t.Errorf("%s printed nothing like %q:\n%s", strings.Join(args, " "), s.want, output)
	}
}

func TestRunnable(t *testing.T) {
	for line, want := range map[string]bool{
		"list": true, "paper espe": true, "list NAME": false, "benchmark": false, "host tune": false, "image build": false,
		"benchmark -t fake/flaky@fail=create#3 --filter operations.container.lifecycle -n 6": true,
		"benchmark -t fake/a,oci/runc":      false,
		"benchmark -t fake/a -d out":        false,
		"benchmark -t fake/a@x=1,fake/b -n": true,
	} {
		if got := runnable(strings.Fields(line)); got != want {
			t.Errorf("runnable(%s) = %t", line, got)
		}
	}
}
