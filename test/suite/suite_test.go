package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
)

const checkout = "../.."

// newTest returns a suite whose steps run in an empty directory, and its output.
func newTest(t *testing.T) (*suite, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	s := &suite{root: t.TempDir(), log: newPrinter(&out)}
	s.out = filepath.Join(s.root, "out")
	must.Do(t, os.MkdirAll(s.out, 0o755))
	return s, &out
}

// sources returns the text of the tests of a package.
func sources(t *testing.T, dir string) (text []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(checkout, dir, "*_test.go"))
	must.Do(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		must.Do(t, err)
		text = append(text, source...)
	}
	return text
}

func shell(name, script string, predecessors ...string) step {
	return step{name: name, after: predecessors, args: []string{"sh", "-c", script}, limit: time.Minute}
}

// A package needs the machine if its tests make a session of a real engine, or need root. The list may not lack one: its tests would run
// beside the tests of other engines.
func TestMachinePackages(t *testing.T) {
	// The fake engine has no process, and the others start only processes of their own, in private directories.
	harmless := []string{
		"internal/engine/fake", "internal/engine/enginetest", "internal/image", "internal/parts", "internal/store", "internal/trust",
		"internal/turn", "internal/workload/probe", "internal/bench/catalogue", "test/lab", "test/pages",
	}
	uses, clusters := regexp.MustCompile(`enginetest\.(Session|Workload)\(|Gete?uid\(\) != 0`), regexp.MustCompile(`/test/cluster["]`)
	dirs := packages(checkout)
	for _, dir := range dirs {
		if clusters.Match(sources(t, dir)) && !slices.Contains(clusterPackages(), dir) {
			t.Errorf("the tests of %s start clusters, but clusterPackages lacks it", dir)
		}
		if uses.Match(sources(t, dir)) && !slices.Contains(slices.Concat(machinePackages(), clusterPackages(), harmless), dir) {
			t.Errorf("the tests of %s use the machine, but machinePackages lacks it", dir)
		}
	}
	for _, dir := range slices.Concat(machinePackages(), clusterPackages(), harmless) {
		if !slices.Contains(dirs, dir) {
			t.Errorf("%s is in a list, but has no tests", dir)
		}
	}
}

// Each measuring test exists, and no machine package has another test of its name: the step "engines" would skip that one too.
func TestMeasuringTests(t *testing.T) {
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	having := make(map[string][]string)
	for _, dir := range packages(checkout) {
		for _, match := range function.FindAllSubmatch(sources(t, dir), -1) {
			name := string(match[1])
			having[name] = append(having[name], dir)
		}
	}
	for dir, names := range measuring() {
		for _, name := range names {
			if !slices.Contains(having[name], dir) {
				t.Errorf("package %s has no test %s", dir, name)
			}
			for _, rival := range having[name] {
				if rival != dir && slices.Contains(slices.Concat(machinePackages(), clusterPackages()), rival) {
					t.Errorf("test %s of %s runs nowhere: %s measures in a test of the same name", name, rival, dir)
				}
			}
		}
	}
}

// Every package with tests is in exactly one of the steps of `make test`.
func TestEveryPackageRuns(t *testing.T) {
	s := &suite{root: checkout, clusters: true}
	var run []string
	for _, st := range s.steps() {
		if !st.tests || strings.HasPrefix(st.name, "measure-") && slices.Contains(st.args, "-run") {
			continue
		}
		for _, arg := range st.args {
			if dir, found := strings.CutPrefix(arg, "./"); found {
				run = append(run, dir)
			}
		}
	}
	slices.Sort(run)
	if want := packages(checkout); !slices.Equal(run, want) {
		t.Errorf("the steps run the packages\n%q, want\n%q", run, want)
	}
}

// A machine without Kubernetes builds it only for a cell whose tests need it.
func TestKubernetesWaits(t *testing.T) {
	for _, c := range cells.All() {
		quoted := []byte(`"` + c.Name + `"`)
		asks := c.Name == "cluster/brief" || c.Name == "lab/cluster"
		for _, dir := range clusterPackages() {
			asks = asks || bytes.Contains(sources(t, dir), quoted)
		}
		if cells.OfClusters(c.Name) != asks {
			t.Errorf("the tests of cell %s start clusters: %v, want %v", c.Name, !asks, asks)
		}
	}
	for _, clusters := range []bool{false, true} {
		s := &suite{root: checkout, clusters: clusters}
		var found []string
		for _, st := range s.steps() {
			if slices.Contains([]string{"kube", "cluster", "measure-pods"}, st.name) {
				found = append(found, st.name)
			}
			for _, predecessor := range st.after {
				if predecessor == "kube" && !clusters {
					t.Errorf("step %s waits for Kubernetes, which no step builds", st.name)
				}
			}
		}
		if want := map[bool]int{true: 3}[clusters]; len(found) != want {
			t.Errorf("with clusters %v, the steps with Kubernetes are %q, want %d", clusters, found, want)
		}
	}
}

func TestStepsWaitForOthers(t *testing.T) {
	s, _ := newTest(t)
	steps := []step{
		shell("third", "cat first second >third", "first", "second"),
		shell("first", "echo 1 >first"),
		shell("second", "test -e first && echo 2 >second", "first"),
	}
	for _, o := range s.runAll(t.Context(), steps) {
		if o.err != nil {
			t.Errorf("step %s: %v", o.step.name, o.err)
		}
		if o.cpu <= 0 {
			t.Errorf("step %s took no time of CPU", o.step.name)
		}
	}
	if text, err := os.ReadFile(filepath.Join(s.root, "third")); err != nil || string(text) != "1\n2\n" {
		t.Errorf("the last step wrote %q, %v", text, err)
	}
}

// A failed step stops those that need it, and no other, and shows the end of its output.
func TestFailedStep(t *testing.T) {
	s, out := newTest(t)
	outcomes := s.runAll(t.Context(), []step{
		shell("bad", "echo the reason; exit 7"), shell("needs", "touch needs", "bad"), shell("later", "touch later", "~bad", "~needs"),
	})
	var got []string
	for _, o := range outcomes {
		got = append(got, fmt.Sprint(o.step.name, ": ", o.err))
	}
	want := []string{"bad: exit status 7", "needs: not run, because step bad failed", "later: <nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("the outcomes are %q, want %q", got, want)
	}
	if !strings.Contains(out.String(), "the reason\n") {
		t.Errorf("the output lacks the reason:\n%s", out)
	}
	if failed := s.summarize(outcomes); failed != 2 {
		t.Errorf("%d steps failed, want 2", failed)
	}
}

// The end of a step ends all its processes.
func TestInterruptedStep(t *testing.T) {
	s, _ := newTest(t)
	fifo := filepath.Join(s.root, "fifo")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	must.Do(t, syscall.Mkfifo(fifo, 0o600))
	go func() {
		// The open returns when the step has started its child.
		f, err := os.OpenFile(fifo, os.O_RDONLY, 0)
		if err == nil {
			_ = f.Close()
		}
		cancel(errors.New("enough"))
	}()
	o := s.runAll(ctx, []step{shell("long", "sleep 1000 & echo go >fifo; wait")})[0]
	if o.err == nil || !strings.Contains(o.err.Error(), "enough") {
		t.Errorf("the step ended with %v, want the cause of the cancellation", o.err)
	}
	if o := s.runAll(ctx, []step{shell("late", "true")})[0]; o.err == nil {
		t.Error("a step began after the cancellation")
	}
}

func TestChooseSteps(t *testing.T) {
	steps := []step{{name: "a"}, {name: "b", after: []string{"a"}}, {name: "c", after: []string{"~b", "a"}}}
	for _, tt := range []struct{ only, want string }{{"b", "a b"}, {"c", "a c"}, {"", "a b c"}} {
		var names []string
		if tt.only != "" {
			names = []string{tt.only}
		}
		list, err := choose(steps, names)
		must.Do(t, err)
		var got []string
		for _, st := range list {
			got = append(got, st.name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("-only %q runs %q, want %q", tt.only, got, tt.want)
		}
	}
	if _, err := choose(steps, []string{"x"}); err == nil || !strings.Contains(err.Error(), "a, b, c") {
		t.Errorf("an unknown step: %v", err)
	}
}

const events = `{"Action":"start","Package":"m/p"}
{"Action":"run","Package":"m/p","Test":"TestA"}
{"Action":"output","Package":"m/p","Test":"TestA/sub","Output":"    a_test.go:1: broken\n"}
{"Action":"fail","Package":"m/p","Test":"TestA/sub","Elapsed":1}
{"Action":"output","Package":"m/p","Test":"TestA","Output":"--- FAIL: TestA\n"}
{"Action":"fail","Package":"m/p","Test":"TestA","Elapsed":2}
{"Action":"output","Package":"m/p","Test":"TestB","Output":"    b_test.go:1: no root\n"}
{"Action":"skip","Package":"m/p","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"m/p","Test":"TestC","Elapsed":0.5}
{"Action":"fail","Package":"m/p","Elapsed":3}
no event
{"Action":"output","Package":"m/q","Test":"TestHangs","Output":"panic: test timed out\n"}
{"Action":"output","Package":"m/q","Output":"FAIL m/q\n"}
{"Action":"fail","Package":"m/q","Elapsed":4}
{"ImportPath":"m/r","Action":"build-output","Output":"r.go:1: undefined: x\n"}
{"ImportPath":"m/r","Action":"build-fail"}
{"Action":"output","Package":"m/r","Output":"FAIL m/r [build failed]\n"}
{"Action":"fail","Package":"m/r","Elapsed":0,"FailedBuild":"m/r"}
`

func TestReadEvents(t *testing.T) {
	var log bytes.Buffer
	var failures []string
	r := readEvents(strings.NewReader(events), &log, func(f failure) { failures = append(failures, f.pkg+" "+f.test+" "+strings.TrimSpace(f.output)) })
	if r.passed != 1 || r.skipped != 1 || len(r.failures) != 3 {
		t.Errorf("%d passed, %d skipped, failures %v; want 1, 1 and 3 failures", r.passed, r.skipped, r.failures)
	}
	want := []string{
		"m/p TestA/sub a_test.go:1: broken", "m/p TestA --- FAIL: TestA", "m/q TestHangs panic: test timed out",
		"m/r does not compile r.go:1: undefined: x", "m/r  FAIL m/r [build failed]",
	}
	if !slices.Equal(failures, want) {
		t.Errorf("told %q, want %q", failures, want)
	}
	if len(r.tests) != 3 {
		t.Errorf("the times of the tests %v, want three", r.tests)
	}
	if !strings.Contains(log.String(), "no event\n") || !strings.Contains(log.String(), "undefined: x\n") {
		t.Errorf("the log lacks lines:\n%s", &log)
	}
	if reason(r.skips[0].output) != "b_test.go:1: no root" {
		t.Errorf("the reason of the skip is %q", reason(r.skips[0].output))
	}
}

// The summary ends with the line of the counts, which runners of CI read.
func TestSummary(t *testing.T) {
	s, out := newTest(t)
	must.Do(t, os.MkdirAll(filepath.Join(s.root, "test/suite"), 0o755))
	must.Do(t, os.WriteFile(filepath.Join(s.root, budgetFile), []byte("fast\t1\nslow\t10\n"), 0o644))
	o := outcome{step: step{name: "pure"}, tests: results{
		passed: 3, skipped: 1,
		tests: []testTime{{"m/p", "TestA", time.Second}, {module + "/fast", "TestB", 2 * time.Second}, {module + "/slow", "TestC", 40 * time.Second}},
	}}
	if failed := s.summarize([]outcome{o}); failed != 0 {
		t.Errorf("%d steps failed, want none: budgets fail only the whole tests", failed)
	}
	if text := out.String(); !strings.HasSuffix(text, "\n3 passed, 0 failed, 1 skipped\n") || !strings.Contains(text, "slow took 40 s, and its budget is 10 s") ||
		strings.Contains(text, "fast took") {
		t.Errorf("the summary is\n%s", text)
	}
	s.all = true
	if failed := s.summarize([]outcome{o}); failed != 1 {
		t.Errorf("%d failures beyond the budget in the whole tests, want 1", failed)
	}
	must.Do(t, os.WriteFile(filepath.Join(s.root, budgetFile), []byte("fast\t1\nslow 10\n"), 0o644))
	if _, err := s.checkBudgets(results{}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a bad file of budgets: %v", err)
	}
	// A package that failed keeps its budget, or has none. So does one that did not run. A package that no longer exists loses it.
	s.writeBudgets = true
	for _, pkg := range []string{"fast", "slow", "unrun"} {
		must.Do(t, os.Mkdir(filepath.Join(s.root, pkg), 0o755), os.WriteFile(filepath.Join(s.root, pkg, "a_test.go"), nil, 0o644))
	}
	must.Do(t, os.WriteFile(filepath.Join(s.root, budgetFile), []byte("fast\t1\nremoved\t3\nslow\t10\nunrun\t7\n"), 0o644))
	o.tests.failures = []failure{{module + "/slow", "TestC", ""}, {"m/p", "TestA", ""}}
	if _, err := s.checkBudgets(o.tests); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.root, budgetFile)); err != nil || string(text) != "fast\t2\nslow\t10\nunrun\t7\n" {
		t.Errorf("the written budgets are %q, %v", text, err)
	}
}
