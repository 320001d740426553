package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const image = "localhost/touchstone:test"

// nodes is the number of measured nodes, which is the size of a cluster without options.
const nodes = 2

// build builds touchstone and the image of its agents, once for all tests, beside the test program: go test removes both, also after a kill.
var build = sync.OnceValues(func() (dir string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(filepath.Dir(program), "fleet-"); err != nil {
		return "", err
	}
	make := exec.Command("go", "build", "-trimpath", "-o", dir+"/touchstone", "github.com/touchstone-bench/touchstone/cmd/touchstone")
	make.Env = append(os.Environ(), "CGO_ENABLED=0")
	save := exec.Command(dir+"/touchstone", "cluster", "image", "save", dir+"/agent.tar", "--probe-only", "--name", image)
	for _, cmd := range []*exec.Cmd{make, save} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, &buildError{string(out), err}
		}
	}
	return dir, nil
})

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string { return e.err.Error() + ": " + e.output }

// place is a cluster with the program and an output folder.
type place struct {
	*cluster.Cluster
	program, dir string
}

func start(t *testing.T, harm bool) *place {
	t.Helper()
	cluster.Require(t)
	dir, err := build()
	must.Do(t, err)
	options := cluster.Options{Images: []string{dir + "/agent.tar"}}
	p := &place{program: dir + "/touchstone", dir: t.TempDir()}
	if harm {
		p.Cluster = cluster.New(t, options)
	} else {
		p.Cluster = cluster.Start(t, options)
	}
	return p
}

// checkLeftovers fails the test if the cluster has an object of a run.
func (p *place) checkLeftovers(t *testing.T) {
	t.Helper()
	if list := p.Kubectl(t, "get", "namespaces", "-l", "touchstone.run", "-o", "name"); strings.TrimSpace(list) != "" {
		t.Errorf("left in the cluster: %s", list)
	}
}

// command is a call of touchstone on the cluster.
func (p *place) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := cluster.Bind(exec.CommandContext(ctx, p.program, append(args, "--kubeconfig", p.Kubeconfig)...))
	cmd.Env = append(os.Environ(), "HOME="+p.dir)
	return cmd
}

// run is a cluster run under way.
type run struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	output bytes.Buffer
}

// begin starts a cluster run with a number of blocks.
func (p *place) begin(t *testing.T, args ...string) *run {
	t.Helper()
	r := &run{cmd: p.command(t, append([]string{"cluster", "run", "--image", image, "-d", p.dir, "--targets", "k8s/runc,k8s/crun", "--filter", "pods.start"}, args...)...)}
	pipe, err := r.cmd.StderrPipe()
	must.Do(t, err)
	r.lines = bufio.NewScanner(pipe)
	must.Do(t, r.cmd.Start())
	return r
}

// await reads the messages of the run until one has a text.
func (r *run) await(t *testing.T, text string) {
	t.Helper()
	for r.lines.Scan() {
		r.output.WriteString(r.lines.Text() + "\n")
		if strings.Contains(r.lines.Text(), text) {
			return
		}
	}
	t.Fatalf("the run ended without %q: %v\n%s", text, r.cmd.Wait(), r.output.String())
}

// end reads the rest, and returns the error of the process.
func (r *run) end() error {
	for r.lines.Scan() {
		r.output.WriteString(r.lines.Text() + "\n")
	}
	return r.cmd.Wait()
}

// trials counts the trials in the results file, of all nodes and of the node that has the fewest.
func (p *place) trials(t *testing.T) (sum, minimum int) {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), filepath.Join(p.dir, "touchstone.db"))
	must.Do(t, err)
	list, err := db.Runs(t.Context())
	must.Do(t, err, db.Close())
	var counts []int
	for _, r := range list {
		count := 0
		for _, n := range r.Trials {
			count += n
		}
		sum, counts = sum+count, append(counts, count)
	}
	if len(counts) < nodes {
		return sum, 0
	}
	return sum, slices.Min(counts)
}

// awaitTrials waits until each node has a number of trials in the results file. A node may begin long after another one. The file has no event.
func (p *place) awaitTrials(t *testing.T, number int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		sum, minimum := p.trials(t)
		if minimum >= number {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the results file has %d trials, %d of the node with the fewest, want %d of each node", sum, minimum, number)
		}
	}
}

// check compares the recorded runs with a plan of two targets and a number of blocks, with a warm-up. No trial has failed.
func (p *place) check(t *testing.T, blocks int) {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), filepath.Join(p.dir, "touchstone.db"))
	must.Do(t, err)
	heads, err := db.Heads(t.Context())
	must.Do(t, err)
	if len(heads) != nodes {
		t.Errorf("%d runs, want %d", len(heads), nodes)
	}
	for _, head := range heads {
		r, err := db.Run(t.Context(), head.ID)
		must.Do(t, err)
		failed, seqs := 0, map[int]bool{}
		for _, trial := range r.Trials {
			seqs[trial.Seq] = true
			if trial.Status != result.OK {
				failed++
				t.Logf("trial %d of %s: %s", trial.Seq, r.ID, trial.Reason)
			}
		}
		if want := 2 * (blocks + 1); r.State != result.Complete || len(r.Trials) != want || len(seqs) != want || failed > 0 || r.Host.Node == nil {
			t.Errorf("run %s is %s with %d trials, %d of them failed, on %+v; want %d trials", r.ID, r.State, len(r.Trials), failed, r.Host.Node, want)
		}
	}
	must.Do(t, db.Close())
}

// caveats are the caveats of all runs.
func (p *place) caveats(t *testing.T) string {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), filepath.Join(p.dir, "touchstone.db"))
	must.Do(t, err)
	heads, err := db.Heads(t.Context())
	must.Do(t, err)
	var caveats []string
	for _, head := range heads {
		r, err := db.Run(t.Context(), head.ID)
		must.Do(t, err)
		caveats = append(caveats, r.Caveats...)
	}
	must.Do(t, db.Close())
	return strings.Join(caveats, "\n")
}

// A run without privileges works with exactly the printed role, and a check finds no obstacle.
func TestRun(t *testing.T) {
	p := start(t, false)
	defer p.checkLeftovers(t)
	var findings []struct{ Level string }
	out, err := p.command(t, "cluster", "check", "--image", image, "-o", "json").Output()
	must.Do(t, err, json.Unmarshal(out, &findings))
	for _, f := range findings {
		if f.Level != "ok" {
			t.Errorf("the check found %s", out)
		}
	}
	r := p.begin(t, "-n", "2", "--parallel", "1")
	must.Do(t, r.end())
	p.check(t, 2)
}

// A killed coordinator loses no trial, and collect continues the run.
func TestKilledCoordinator(t *testing.T) {
	p := start(t, false)
	defer p.checkLeftovers(t)
	r := p.begin(t, "-n", "5")
	r.await(t, "measuring")
	p.awaitTrials(t, 2)
	must.Do(t, r.cmd.Process.Kill())
	_ = r.end() // killed
	count, _ := p.trials(t)
	if out, err := p.command(t, "cluster", "collect", "-d", p.dir).CombinedOutput(); err != nil {
		t.Fatalf("collect: %v\n%s", err, out)
	}
	if count >= 24 {
		t.Errorf("the coordinator was killed after %d trials", count)
	}
	p.check(t, 5)
}

// A killed agent and a deleted agent go on where their records end.
func TestLostAgents(t *testing.T) {
	p := start(t, false)
	defer p.checkLeftovers(t)
	r := p.begin(t, "-n", "6")
	r.await(t, "measuring")
	p.awaitTrials(t, 2)
	p.Node(t, 1, "pkill", "-KILL", "-f", "^/touchstone agent")
	namespace := strings.TrimPrefix(strings.TrimSpace(p.Kubectl(t, "get", "namespaces", "-l", "touchstone.run", "-o", "name")), "namespace/")
	p.Kubectl(t, "-n", namespace, "delete", "pod", "-l", "touchstone.role=agent,touchstone.node=node2", "--wait=false")
	r.await(t, "another one goes on after")
	if err := r.end(); err != nil {
		t.Errorf("%v\n%s", err, r.output.String())
	}
	p.check(t, 6)
}

// ^C ends the run in order.
func TestInterrupt(t *testing.T) {
	p := start(t, false)
	defer p.checkLeftovers(t)
	r := p.begin(t, "-n", "200")
	r.await(t, "measuring")
	p.awaitTrials(t, 1)
	must.Do(t, r.cmd.Process.Signal(os.Interrupt))
	_ = r.end()
	if code := r.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("the exit code is %d, want 130\n%s", code, r.output.String())
	}
}

// An agent waits for its lost node, goes on after its return, and repeats the trial that was under way.
//
// Invariant outage-trials.
func TestLostNode(t *testing.T) {
	p := start(t, true)
	defer p.checkLeftovers(t)
	r := p.begin(t, "-n", "12")
	r.await(t, "measuring")
	p.awaitTrials(t, 2)
	p.Freeze(t, 1)
	r.await(t, "the control plane has lost the node")
	p.Thaw(t, 1)
	if err := r.end(); err != nil {
		t.Errorf("%v\n%s", err, r.output.String())
	}
	p.check(t, 12)
	if caveats := p.caveats(t); !strings.Contains(caveats, "which were repeated") {
		t.Errorf("no caveat has the outage: %s", caveats)
	}
}
