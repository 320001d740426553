package k8s_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// place is an agent's place on the first node of the shared cluster.
func place(t *testing.T) (*cluster.Cluster, k8s.Config) {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Runtimes: map[string]string{"only2": runc(t) + "@2"}})
	a := c.Agent(t, 1)
	return c, k8s.Config{
		Client: a.Client, Namespace: a.Namespace, Node: a.Node, Fleet: a.Fleet, Owner: a.Owner, Image: cluster.ProbeImage, KubeletVersion: "v1.37.2", Events: true,
	}
}

// runc is the path of runc.
func runc(t *testing.T) string {
	t.Helper()
	cluster.Require(t)
	file, err := exec.LookPath("runc")
	must.Do(t, err)
	return file
}

// open opens a target of the agent.
func open(t *testing.T, config k8s.Config, name string) (engine.Engine, error) {
	t.Helper()
	parsed, err := target.Parse(name)
	must.Do(t, err)
	e, err := k8s.NewDriver(config).Open(t.Context(), parsed, engine.Session{RunID: config.Fleet})
	if err == nil {
		t.Cleanup(func() { must.Do(t, e.Close()) })
	}
	return e, err
}

// marks keeps the stages of one pod.
type marks struct {
	mu    sync.Mutex
	times map[engine.Stage]time.Time
}

func (m *marks) Mark(s engine.Stage) { m.MarkAt(s, time.Now()) }

func (m *marks) MarkAt(s engine.Stage, real time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times == nil {
		m.times = map[engine.Stage]time.Time{}
	}
	if _, ok := m.times[s]; !ok {
		m.times[s] = real
	}
}

// text is a writer for a program's output.
type text struct {
	mu sync.Mutex
	strings.Builder
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

// A pod of any class reports its stages in order, and its log has all lines of its program.
func TestLifeOfAPod(t *testing.T) {
	_, config := place(t)
	for _, name := range []string{"k8s", "k8s/runc", "k8s/runsc"} {
		t.Run(name, func(t *testing.T) {
			e, err := open(t, config, name)
			must.Do(t, err)
			var m marks
			var out text
			ctx := engine.WithMarker(t.Context(), &m)
			m.Mark("begin")
			c, err := e.Create(ctx, engine.Spec{
				ID: engine.Prefix + config.Fleet + "-life-" + strings.ReplaceAll(name, "/", "-"), Image: config.Image,
				Process: engine.Process{Args: probe.ReadySignal(), Stdout: &out},
			})
			must.Do(t, err)
			must.Do(t, c.Start(ctx))
			if state, err := c.State(ctx); state != engine.Running || err != nil {
				t.Errorf("State() = %s, %v", state, err)
			}
			must.Do(t, c.Delete(ctx))
			must.Do(t, c.Delete(ctx))
			if out.String() != "ready\nsignal\n" {
				t.Errorf("the output is %q", out.String())
			}
			exit, err := c.Wait(context.WithoutCancel(ctx))
			if !exit.OK() || err != nil {
				t.Errorf("Wait() = %v, %v", exit, err)
			}
			last := m.times["begin"]
			for _, s := range []engine.Stage{
				engine.StageAccepted, engine.StageSandboxed, engine.StageFirstLine, engine.StageRunning, engine.StageReady, engine.StageLastLine, engine.StageTerminated, engine.StageDeleted,
			} {
				moment, ok := m.times[s]
				if !ok {
					t.Errorf("the stage %s is missing", s)
				}
				if moment.Before(last) && s != engine.StageReady {
					t.Errorf("the stage %s is %v before the one before it", s, last.Sub(moment))
				}
				last = moment
			}
			for s, moment := range m.times {
				t.Logf("%-12s %v", s, moment.Sub(m.times["begin"]))
			}
		})
	}
}

// A real cluster gives the reasons that the imitated one gives, and within seconds.
func TestFaultsOfARealCluster(t *testing.T) {
	c, config := place(t)
	kubectl := func(args ...string) { c.Kubectl(t, append(args, "--namespace", config.Namespace)...) }
	checkRefusal := func(name, text string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		parsed, err := target.Parse(name)
		must.Do(t, err)
		e, err := k8s.NewDriver(config).Open(ctx, parsed, engine.Session{RunID: config.Fleet})
		if e != nil || !engine.Unsupported(err) || !strings.Contains(err.Error(), text) {
			t.Errorf("Open(%s) = %v, want %q", name, err, text)
		}
	}
	checkRefusal("k8s/nosuch", `RuntimeClass "nosuch" not found`)
	checkRefusal("k8s/only2", `no runtime for "only2" is configured`)
	image := config.Image
	config.Image = "localhost/no-such-image:1"
	checkRefusal("k8s", "bring the image to the nodes")
	config.Image = image
	c.Kubectl(t, "cordon", config.Node)
	checkRefusal("k8s", "unschedulable")
	c.Kubectl(t, "uncordon", config.Node)
	kubectl("create", "quota", "q", "--hard=pods=1")
	checkRefusal("k8s", "exceeded quota")
	kubectl("delete", "quota", "q")

	e, err := open(t, config, "k8s")
	must.Do(t, err)
	pod, err := e.Create(t.Context(), engine.Spec{ID: engine.Prefix + config.Fleet + "-drained", Image: config.Image, Process: engine.Process{Args: probe.Ready()}})
	must.Do(t, err)
	must.Do(t, pod.Start(t.Context()))
	c.Kubectl(t, "drain", config.Node, "--pod-selector="+engine.Label+"="+config.Fleet, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
	c.Kubectl(t, "uncordon", config.Node)
	if exit, err := pod.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "EvictionByEvictionAPI") {
		t.Errorf("Wait() of a drained pod = %v, %v", exit, err)
	}
	must.Do(t, pod.Delete(t.Context()))
	if left := c.Kubectl(t, "get", "pods", "--namespace", config.Namespace, "--output", "name"); strings.TrimSpace(left) != "pod/agent" {
		t.Errorf("pods are left: %s", left)
	}
	// Another process of the agent removes the pods that the first one has left.
	leftover, err := e.Create(t.Context(), engine.Spec{ID: engine.Prefix + config.Fleet + "-leftover", Image: config.Image, Process: engine.Process{Args: probe.Ready()}})
	must.Do(t, err)
	must.Do(t, leftover.Start(t.Context()))
	_, err = open(t, config, "k8s/runc")
	must.Do(t, err)
	if left := c.Kubectl(t, "get", "pods", "--namespace", config.Namespace, "--output", "name"); strings.Contains(left, "leftover") {
		t.Errorf("a pod of the process before is left: %s", left)
	}
	must.Do(t, leftover.Delete(t.Context()))
}
