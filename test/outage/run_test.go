package outage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/test/cluster"
)

// fleet is a cluster run.
type fleet struct {
	*site
	id, dir string
	// access is the kubeconfig file of the coordinator.
	access string
	// kept has the trials that were committed before a kill, by run.
	kept map[string]map[string]bool

	coordinator *coordinator
}

// coordinator is the program touchstone cluster run or collect.
type coordinator struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// Write implements io.Writer.
func (c *coordinator) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.Write(p)
}

// text returns the output so far.
func (c *coordinator) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}

// hasExited reports whether the program has ended.
func (c *coordinator) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// begun finds the ID of a run in the output of its program.
var begun = regexp.MustCompile(`(?m)^cluster run ([0-9a-z-]+): [0-9]+ nodes`)

// begin starts a cluster run on all nodes, and returns when it has an ID. A node that an earlier run has lost may come back after the end of that run.
func (s *site) begin(plan string, args ...string) *fleet {
	s.Helper()
	s.await("a node takes no pods", func() string {
		taints, err := s.kubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.taints}")
		if err != nil {
			return err.Error()
		}
		return taints
	})
	f := s.prepare(s.Kubeconfig)
	f.run(plan, args...)
	f.awaitID()
	return f
}

// prepare returns a run that is not started. Its coordinator uses a kubeconfig file.
func (s *site) prepare(access string) *fleet {
	s.Helper()
	f := &fleet{site: s, dir: s.TempDir(), access: access, kept: map[string]map[string]bool{}}
	return f
}

// run starts touchstone cluster run.
func (f *fleet) run(plan string, args ...string) {
	f.Helper()
	file := filepath.Join(f.dir, "plan.yaml")
	must.Do(f, os.WriteFile(file, []byte(plan), 0o600))
	f.start(append([]string{"run", "-f", file, "--image", agentImage}, args...)...)
}

// awaitID waits until the output names the run.
func (f *fleet) awaitID() {
	f.Helper()
	f.await("the run has no ID", func() string {
		if m := begun.FindStringSubmatch(f.coordinator.text()); m != nil {
			f.id = m[1]
			return ""
		}
		if f.coordinator.hasExited() {
			f.Fatalf("touchstone cluster run ended:\n%s", f.coordinator.text())
		}
		return "no line names it"
	})
}

// awaitOutput waits until the output matches a pattern.
func (f *fleet) awaitOutput(pattern string) {
	f.Helper()
	line := regexp.MustCompile(pattern)
	f.await("the output lacks "+pattern, func() string {
		switch {
		case line.MatchString(f.coordinator.text()):
			return ""
		case f.coordinator.hasExited():
			f.Fatalf("run %s ended without %q:\n%s", f.id, pattern, f.coordinator.text())
		}
		return f.coordinator.text() + "…"
	})
}

// mustEnd waits for the end of the coordinator, and checks its exit code and its output.
func (f *fleet) mustEnd(code int, patterns ...string) {
	f.Helper()
	got, text := f.ends(), f.coordinator.text()
	if got != code {
		f.Errorf("run %s ends with exit code %d, want %d:\n%s", f.id, got, code, text)
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(text) {
			f.Errorf("run %s: the output lacks %q:\n%s", f.id, pattern, text)
		}
	}
}

// start starts a verb of touchstone cluster with the results of the run.
func (f *fleet) start(args ...string) {
	f.Helper()
	c := &coordinator{exited: make(chan struct{})}
	c.cmd = cluster.Bind(exec.Command(f.program, append(append([]string{"cluster"}, args...), "--kubeconfig", f.access, "-d", filepath.Join(f.dir, "out"))...))
	c.cmd.Stdout, c.cmd.Stderr = c, c
	c.cmd.Env = append(os.Environ(), "TMPDIR="+f.dir, "XDG_CACHE_HOME="+f.dir)
	must.Do(f, c.cmd.Start())
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait() // the exit code is checked where it matters
	}()
	f.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it has ended if the test passed
		<-c.exited
	})
	f.coordinator = c
}

// ends waits for the end of the coordinator, and returns its exit code.
func (f *fleet) ends() int {
	f.Helper()
	select {
	case <-f.coordinator.exited:
	case <-time.After(patience):
		f.Fatalf("run %s did not end in %v:\n%s", f.id, patience, f.coordinator.text())
	}
	return f.coordinator.cmd.ProcessState.ExitCode()
}

// runID returns the ID of a node's run.
func (f *fleet) runID(node string) string { return f.id + "-" + node }

// runs reads the runs of all nodes from the results file.
func (f *fleet) runs() map[string]result.Run {
	f.Helper()
	runs := map[string]result.Run{}
	db, err := store.OpenReadOnly(f.Context(), filepath.Join(f.dir, "out", "touchstone.db"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, store.ErrEmpty) {
		return runs
	}
	if err != nil {
		f.Fatalf("read the results of run %s: %v", f.id, err)
	}
	defer func() { _ = db.Close() }() // it is only read from
	for n := range f.nodes {
		node := nodeName(n + 1)
		run, err := db.Run(f.Context(), f.runID(node))
		if _, isUnknown := errors.AsType[*store.IDError](err); isUnknown {
			continue
		}
		if err != nil {
			f.Fatalf("read the results of node %s: %v", node, err)
		}
		runs[node] = run
	}
	return runs
}

// trials is the number of trials in the results file.
func (f *fleet) trials() int {
	f.Helper()
	count := 0
	for _, run := range f.runs() {
		count += len(run.Trials)
	}
	return count
}

// failures logs the trials without success.
func (f *fleet) failures() {
	f.Helper()
	for node, run := range f.runs() {
		for i := range run.Trials {
			if t := &run.Trials[i]; t.Status != result.OK {
				f.Logf("%s: trial %d is %s: %s", node, t.Seq, t.Status, t.Reason)
			}
		}
	}
}

// key identifies a trial with its outcome.
func key(t *result.Trial) string {
	return fmt.Sprintf("trial %d: %s %s block %d, %s, %d samples, started %s", t.Seq, t.Benchmark, t.Target, t.Block, t.Status, len(t.Samples), t.Started.UTC().Format(time.RFC3339Nano))
}

// keep notes the trials that are committed at this moment: in the results file, and in the logs of the agents that can be read.
func (f *fleet) keep() {
	f.Helper()
	for node, run := range f.runs() {
		for i := range run.Trials {
			f.note(node, &run.Trials[i])
		}
	}
	for n := range f.nodes {
		node := nodeName(n + 1)
		for _, r := range f.log(node) {
			var t result.Trial
			if r.Kind == record.Trial && r.Decode(&t) == nil {
				f.note(node, &t)
			}
		}
	}
}

// keptTrials is the number of trials that were committed before a kill.
func (f *fleet) keptTrials() int {
	count := 0
	for _, keys := range f.kept {
		count += len(keys)
	}
	return count
}

func (f *fleet) note(node string, t *result.Trial) {
	if f.kept[node] == nil {
		f.kept[node] = map[string]bool{}
	}
	f.kept[node][key(t)] = true
}

// moment is a record of a log with its time.
type moment struct {
	record.Record
	time time.Time
}

// logLimit bounds the wait for a log: the kubelet of the node may be stopped.
const logLimit = 5 * time.Second

// log reads the records in the log of a node's agent; none if it cannot be read.
func (f *fleet) log(node string) []moment {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), logLimit)
	defer cancel()
	stream, err := f.client.Pods(f.namespace()).GetLogs(f.agent(node), &corev1.PodLogOptions{Timestamps: true}).Stream(ctx)
	if err != nil {
		return nil
	}
	defer func() { _ = stream.Close() }() // it is only read from
	var moments []moment
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		stamp, text, _ := strings.Cut(line, " ")
		if r, e := record.NewReader(strings.NewReader(text)).Next(); e == nil {
			writeTime, e := time.Parse(time.RFC3339Nano, stamp)
			if e != nil {
				f.Fatalf("read the time of a line in the log of %s: %v", node, e)
			}
			moments = append(moments, moment{r, writeTime})
		}
		if err != nil { // the end, or the time limit
			return moments
		}
	}
}

func (f *fleet) namespace() string        { return "touchstone-" + f.id }
func (f *fleet) agent(node string) string { return "touchstone-" + f.runID(node) + "-agent" }

// check compares the results with the trials that were committed before kills, and returns the number of lost ones.
func (f *fleet) check() (losses int) {
	f.Helper()
	runs := f.runs()
	for node, keys := range f.kept {
		run := runs[node]
		found, numbers := map[string]bool{}, map[int]bool{}
		for i := range run.Trials {
			t := &run.Trials[i]
			if numbers[t.Seq] {
				f.Errorf("run %s: trial %d is recorded twice", run.ID, t.Seq)
			}
			found[key(t)], numbers[t.Seq] = true, true
		}
		for k := range keys {
			if !found[k] {
				losses++
				f.Errorf("run %s of %s has lost %s", f.id, node, k)
			}
		}
	}
	return losses
}

// explained checks that each node has a complete run, or that the output has the reason.
func (f *fleet) explained() {
	f.Helper()
	runs := f.runs()
	for n := range f.nodes {
		node := nodeName(n + 1)
		if run, ok := runs[node]; ok && run.State == result.Complete {
			continue
		}
		if !regexp.MustCompile(`(?m)^node ` + node + `: (ended|failed|lost).*: .+`).MatchString(f.coordinator.text()) {
			f.Errorf("run %s: node %s is %q, and the output has no reason:\n%s", f.id, node, runs[node].State, f.coordinator.text())
		}
	}
}
