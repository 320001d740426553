package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/kube/kubetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

const fleetID = "20261129-120000-abcd"

// fleet is a fleet of nodes n1, n2, ….
func fleet(nodes int) cluster.Fleet {
	f := cluster.Fleet{
		ID: fleetID, Namespace: "touchstone-" + fleetID, OwnNamespace: true, Name: "p", Plan: "version: 1\n", Seed: 7, Image: "i", Lease: time.Hour, Events: true,
		Caveats: []string{"a caveat of the fleet"},
	}
	for i := range nodes {
		n := cluster.Node{Node: result.Node{Fleet: fleetID, Name: fmt.Sprintf("n%d", i+1), Kind: "small"}, Arch: "amd64"}
		f.Nodes = append(f.Nodes, n)
	}
	return f
}

// run is the run of a node as its agent writes it.
func run(f *cluster.Fleet, node string) result.Run {
	return result.Run{
		ID: f.RunID(node), Name: "p", State: result.Running, Started: time.Unix(1_800_000_000, 0).UTC(), Seed: f.NodeSeed(node), Plan: "version: 1\n",
		Targets: []result.Target{{Name: "k8s"}},
		Bench:   []result.Benchmark{{Name: "b", Metrics: []result.Metric{{Name: "M", Unit: result.Seconds, Better: result.Lower}}}},
	}
}

func trial(seq int) result.Trial {
	return result.Trial{
		Seq: seq, Cell: result.Cell{Benchmark: "b", Target: "k8s"}, Block: seq, Status: result.OK, Started: time.Unix(1_800_000_000+int64(seq), 0).UTC(),
		Samples: []result.Sample{{Metric: "M", Value: 1}},
	}
}

// trials is the number of trials of each run.
const trials = 5

// write writes the records of a node from one number to another.
func write(t *testing.T, out io.Writer, f *cluster.Fleet, node string, first, last int) {
	t.Helper()
	w := record.NewWriter(out)
	for number := first; number <= last; number++ {
		var err error
		switch number {
		case 1:
			err = w.Write(1, record.Begin, run(f, node))
		case trials + 2:
			err = w.Write(number, record.Finish, record.End{State: result.Complete, Ended: time.Unix(1_800_000_100, 0).UTC(), Trials: trials})
		default:
			err = w.Write(number, record.Trial, trial(number-1))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// watcher is an observer of a coordinator.
type watcher struct {
	mu     sync.Mutex
	states map[string][]cluster.Phase
	notes  []string
	trials int
}

func (w *watcher) Changed(node string, s cluster.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.states == nil {
		w.states = map[string][]cluster.Phase{}
	}
	w.states[node] = append(w.states[node], s.Phase)
}

func (w *watcher) Trial(string, result.Trial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trials++
}

func (w *watcher) Note(node, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, node+": "+text)
}

// bench is a coordinator with an imitated API server and a results file.
type bench struct {
	*cluster.Coordinator
	server   *kubetest.Server
	db       *store.Store
	observer *watcher
}

func newBench(t *testing.T, f cluster.Fleet) *bench {
	t.Helper()
	b := &bench{server: kubetest.New(t), observer: &watcher{}}
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "touchstone.db"))
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, db.Close()) })
	b.db = db
	b.Coordinator = &cluster.Coordinator{Client: b.server.Client(t), Store: db, Fleet: f, Observer: b.observer, Now: func() time.Time { return time.Unix(1_900_000_000, 0) }}
	return b
}

// Create creates the objects of the fleet.
func (b *bench) Create(ctx context.Context) error {
	_, err := b.Fleet.Create(ctx, b.Client, nil)
	return err
}

func (b *bench) path(pod string) string {
	return "/api/v1/namespaces/" + b.Fleet.Namespace + "/pods/" + pod
}

// play changes a pod, as the kubelet does.
func (b *bench) play(t *testing.T, path string, change func(*corev1.Pod)) {
	t.Helper()
	var pod corev1.Pod
	if !b.server.Read(t, path, &pod) {
		t.Errorf("%s does not exist", path)
		return
	}
	change(&pod)
	b.server.Set(t, path, &pod)
}

func running(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
}

// starts lets each agent run as soon as its pod exists.
func (b *bench) starts(t *testing.T) {
	t.Helper()
	b.onStart(t, running)
}

// onStart changes the pod of each agent after its creation.
func (b *bench) onStart(t *testing.T, change func(*corev1.Pod)) {
	t.Helper()
	b.server.Created.Set(func(path string) {
		if strings.HasSuffix(path, "-agent") {
			b.play(t, path, change)
		}
	})
}

// recorded returns the run of a node in the results file.
func (b *bench) recorded(t *testing.T, node string) result.Run {
	t.Helper()
	r, err := b.db.Run(t.Context(), b.Fleet.RunID(node))
	must.Do(t, err)
	return r
}

// limited bounds a test that would hang.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A run of two nodes ends with both runs in the results file, one node after the other, and each with its node.
func TestRun(t *testing.T) {
	f := fleet(2)
	f.Parallel = 1
	b := newBench(t, f)
	var counts []int // the number of nodes that have ended at the creation of each agent
	b.onStart(t, func(pod *corev1.Pod) {
		count := 0
		for _, n := range f.Nodes {
			if r, err := b.db.Run(t.Context(), f.RunID(n.Name)); err == nil && r.State == result.Complete {
				count++
			}
		}
		counts = append(counts, count)
		running(pod)
	})
	b.server.Log.Set(func(w io.Writer, pod string, _ *http.Request) {
		for _, n := range f.Nodes {
			if pod == f.AgentName(n.Name) {
				write(t, w, &f, n.Name, 1, trials+2)
			}
		}
	})
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err, b.Release(limited(t)))
	for i, o := range outcomes {
		r := b.recorded(t, o.Node)
		if o.Phase != cluster.Complete || !o.Recorded || r.State != result.Complete || len(r.Trials) != trials {
			t.Errorf("%+v with %d trials in state %s", o, len(r.Trials), r.State)
		}
		if node := r.Host.Node; node == nil || node.Name != f.Nodes[i].Name || node.Fleet != fleetID || r.Caveats[0] != "a caveat of the fleet" {
			t.Errorf("node %+v, caveats %q", node, r.Caveats)
		}
		var pod corev1.Pod
		if !b.server.Read(t, b.path(f.AgentName(o.Node)), &pod) || pod.Annotations[cluster.EndAnnotation] != cluster.EndCollected {
			t.Errorf("the agent of %s is not released: %v", o.Node, pod.Annotations)
		}
	}
	if !slices.Equal(counts, []int{0, 1}) || b.observer.trials != 2*trials {
		t.Errorf("agents began after %d nodes had ended, and %d trials are recorded, want 0 and 1, and %d", counts, b.observer.trials, 2*trials)
	}
	if f.NodeSeed("n1") == f.NodeSeed("n2") {
		t.Error("two nodes have the same order of trials")
	}
	removals, err := cluster.Clean(limited(t), b.Client, &f)
	if err != nil || len(b.server.Paths()) > 0 {
		t.Errorf("removed %v and left %v: %v", removals, b.server.Paths(), err)
	}
}

// A killed coordinator loses nothing: another one goes on where the results file ends, and records no trial twice.
func TestCollect(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	r := run(&f, "n1")
	node := f.Nodes[0].Node
	r.Host.Node = &node
	must.Do(t, b.db.Create(t.Context(), r), b.db.Append(t.Context(), r.ID, trial(1)), b.db.Append(t.Context(), r.ID, trial(2)))
	must.Do(t, b.Create(limited(t)))
	pod := f.Agent(f.Nodes[0])
	running(pod)
	b.server.Set(t, b.path(pod.Name), pod)
	b.server.Log.Set(func(w io.Writer, _ string, _ *http.Request) { write(t, w, &f, "n1", 1, trials+2) })
	found, err := cluster.Find(limited(t), b.Client, f.Namespace)
	must.Do(t, err)
	if len(found) != 1 || found[0].ID != f.ID || len(found[0].Nodes) != 1 || found[0].Nodes[0].Kind != "small" {
		t.Fatalf("found %+v", found)
	}
	b.Fleet = found[0]
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	if got := b.recorded(t, "n1"); outcomes[0].Phase != cluster.Complete || len(got.Trials) != trials || b.observer.trials != trials-2 {
		t.Errorf("%+v: %d trials, %d of them new", outcomes, len(got.Trials), b.observer.trials)
	}
	// A second collection changes nothing.
	if outcomes, err = b.Run(limited(t)); err != nil || outcomes[0].Phase != cluster.Complete {
		t.Errorf("again: %+v, %v", outcomes, err)
	}
}

// The coordinator notices a rotated log, and asks the agent for the missing records.
func TestGap(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	b.starts(t)
	b.server.Log.Set(func(w io.Writer, _ string, r *http.Request) {
		write(t, w, &f, "n1", 3, 4)
		for r.Context().Err() == nil {
			var pod corev1.Pod
			if b.server.Read(t, b.path(f.AgentName("n1")), &pod) && strings.HasPrefix(pod.Annotations[cluster.ReplayAnnotation], "1/") {
				write(t, w, &f, "n1", 1, trials+2)
				return
			}
		}
	})
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	if outcomes[0].Phase != cluster.Complete || len(b.recorded(t, "n1").Trials) != trials || !strings.Contains(fmt.Sprint(b.observer.notes), "records 1 to 2 are missing") {
		t.Errorf("%+v, notes %q", outcomes, b.observer.notes)
	}
}

// A kubelet that has just started knows no pod. The agent is not lost.
func TestForgetfulKubelet(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	b.starts(t)
	var requests atomic.Int64
	b.server.Fault.Set(func(_, path string) *metav1.Status {
		if strings.HasSuffix(path, "/log") && requests.Add(1) == 1 {
			return kubetest.Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		}
		return nil
	})
	b.server.Log.Set(func(w io.Writer, _ string, _ *http.Request) { write(t, w, &f, "n1", 1, trials+2) })
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	if notes := fmt.Sprint(b.observer.notes); outcomes[0].Phase != cluster.Complete || strings.Contains(notes, "its agent was lost") {
		t.Errorf("%+v, notes %s", outcomes, notes)
	}
}

// Another pod gets the trials of a lost one and goes on.
func TestLostAgent(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	b.starts(t)
	var pods atomic.Int64
	b.server.Log.Set(func(w io.Writer, pod string, r *http.Request) {
		if pods.Add(1) > 1 {
			write(t, w, &f, "n1", 1, trials+2)
			return
		}
		write(t, w, &f, "n1", 1, 4)
		for b.observer.count() < 3 && r.Context().Err() == nil {
		}
		b.server.Remove(b.path(pod))
	})
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	if outcomes[0].Phase != cluster.Complete || len(b.recorded(t, "n1").Trials) != trials || !strings.Contains(fmt.Sprint(b.observer.notes), "goes on after 3 trials") {
		t.Errorf("%+v, notes %q", outcomes, b.observer.notes)
	}
	var part corev1.ConfigMap
	if path := "/api/v1/namespaces/" + f.Namespace + "/configmaps/touchstone-" + f.RunID("n1") + "-earlier"; !b.server.Read(t, path, &part) || len(part.BinaryData[cluster.EarlierFile]) == 0 {
		t.Errorf("the next agent gets nothing: %v", b.server.Paths())
	}
}

func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trials
}

// ^C ends the agents, and collects what they have.
func TestStop(t *testing.T) {
	f := fleet(2)
	f.Parallel = 1
	b := newBench(t, f)
	b.starts(t)
	ctx, cancel := context.WithCancel(limited(t))
	b.server.Log.Set(func(w io.Writer, pod string, r *http.Request) {
		node := f.Nodes[0].Name
		if pod != f.AgentName(node) {
			node = f.Nodes[1].Name
		}
		write(t, w, &f, node, 1, 3)
		cancel()
		for r.Context().Err() == nil {
			var p corev1.Pod
			if b.server.Read(t, b.path(pod), &p) && p.Annotations[cluster.EndAnnotation] == cluster.EndStop {
				must.Do(t, record.NewWriter(w).Write(4, record.Finish, record.End{State: result.Interrupted, Ended: time.Unix(1_800_000_100, 0).UTC(), Trials: 2}))
				return
			}
		}
	})
	must.Do(t, b.Create(ctx))
	outcomes, err := b.Run(ctx)
	must.Do(t, err)
	var phases []string
	for _, o := range outcomes {
		phases = append(phases, string(o.Phase))
	}
	if list := strings.Join(phases, " "); list != "ended failed" && list != "failed ended" {
		t.Errorf("%+v", outcomes)
	}
}

// A stop by another program ends the run: nodes that wait for their turn are not measured. The same holds for a program that takes the run over.
func TestStopOfWaitingNodes(t *testing.T) {
	for _, name := range []string{"run", "collect"} {
		t.Run(name, func(t *testing.T) {
			f := fleet(3)
			f.Parallel = 1
			b := newBench(t, f)
			b.starts(t)
			b.server.Log.Set(func(w io.Writer, pod string, r *http.Request) {
				node := f.Nodes[slices.IndexFunc(f.Nodes, func(n cluster.Node) bool { return f.AgentName(n.Name) == pod })].Name
				write(t, w, &f, node, 1, 3)
				if name == "run" {
					count, err := cluster.Stop(r.Context(), b.Client, &f)
					if err != nil || count > 1 {
						t.Errorf("stopped %d agents, %v; want one", count, err)
					}
				}
				must.Do(t, record.NewWriter(w).Write(4, record.Finish, record.End{State: result.Interrupted, Ended: time.Unix(1_800_000_100, 0).UTC(), Trials: 2}))
			})
			ctx := limited(t)
			must.Do(t, b.Create(ctx))
			if name == "collect" {
				pod := f.Agent(f.Nodes[0])
				running(pod)
				b.server.Set(t, b.path(pod.Name), pod)
				count, err := cluster.Stop(ctx, b.Client, &f)
				if err != nil || count != 1 {
					t.Fatalf("stopped %d agents, %v; want one", count, err)
				}
			}
			outcomes, err := b.Run(ctx)
			must.Do(t, err)
			phases := map[cluster.Phase]int{}
			for _, o := range outcomes {
				phases[o.Phase]++
			}
			if phases[cluster.Ended] != 1 || phases[cluster.Failed] != 2 {
				t.Errorf("the nodes ended as %v, want one ended, and two that failed without an agent: %+v", phases, outcomes)
			}
		})
	}
}

// Records that make no run end their node alone, with the reason.
func TestHostileRecords(t *testing.T) {
	for reason, log := range map[string]func(w *record.Writer, f *cluster.Fleet) error{
		"its run is": func(w *record.Writer, _ *cluster.Fleet) error {
			return w.Write(1, record.Begin, result.Run{ID: "other"})
		},
		"has 9 trials, and 0 are recorded": func(w *record.Writer, f *cluster.Fleet) error {
			must.Do(t, w.Write(1, record.Begin, run(f, "n1")))
			return w.Write(2, record.Finish, record.End{State: result.Complete, Trials: 9})
		},
		"negative": func(w *record.Writer, f *cluster.Fleet) error {
			must.Do(t, w.Write(1, record.Begin, run(f, "n1")))
			bad := trial(1)
			bad.Block = -5
			return w.Write(2, record.Trial, bad)
		},
		"no class works": func(w *record.Writer, _ *cluster.Fleet) error { return w.Tell(record.Failure, "no class works") },
	} {
		f := fleet(1)
		b := newBench(t, f)
		b.starts(t)
		b.server.Log.Set(func(w io.Writer, _ string, _ *http.Request) { must.Do(t, log(record.NewWriter(w), &f)) })
		must.Do(t, b.Create(limited(t)))
		outcomes, err := b.Run(limited(t))
		if err != nil || outcomes[0].Phase != cluster.Failed && outcomes[0].Phase != cluster.Ended || reason != "negative" && !strings.Contains(outcomes[0].Text, reason) {
			t.Errorf("%s: %+v, %v", reason, outcomes, err)
		}
	}
}

// waiting lets the container of a pod wait for a reason.
func waiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		w := &corev1.ContainerStateWaiting{Reason: reason, Message: "by " + reason}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: "i", State: corev1.ContainerState{Waiting: w}}}
	}
}

// script is an observer that changes the agent's pod after each state of the node from the first with a text on.
type script struct {
	watcher
	texts []string
	step  func(number int)
}

func (s *script) Changed(_ string, state cluster.State) {
	if state.Text != "" || len(s.texts) > 0 {
		s.texts = append(s.texts, state.Text)
		s.step(len(s.texts))
	}
}

// A kubelet repeats a pull that has failed. The node ends after the limit, with the remedy. The time before a pull that began does not count.
func TestPullLimit(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	b.onStart(t, waiting("ErrImagePull"))
	var minutes atomic.Int64
	b.Now = func() time.Time { return time.Unix(1_900_000_000, 0).Add(time.Duration(minutes.Load()) * time.Minute) }
	reasons := []string{"ContainerCreating", "ErrImagePull", "ImagePullBackOff", "ErrImagePull"}
	observer := &script{}
	observer.step = func(number int) {
		minutes.Add(2)
		if number <= len(reasons) {
			b.play(t, b.path(f.AgentName("n1")), waiting(reasons[number-1]))
		}
	}
	b.Observer = observer
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	problem := func(reason string) string {
		return "its kubelet cannot pull the image i: by " + reason + "; push it with touchstone cluster image push, or load it on the node"
	}
	want := []string{problem("ErrImagePull"), "", problem("ErrImagePull"), problem("ImagePullBackOff"), problem("ErrImagePull"), "no pull succeeded in 3m0s: " + problem("ErrImagePull")}
	if outcomes[0].Phase != cluster.Failed || !slices.Equal(observer.texts, want) {
		t.Errorf("%+v after\n%s\nwant\n%s", outcomes, strings.Join(observer.texts, "\n"), strings.Join(want, "\n"))
	}
}

// A failed pull has one reason for its whole time, also while the kubelet waits before the next attempt.
func TestPullReason(t *testing.T) {
	f := fleet(2)
	b := newBench(t, f)
	for i, text := range []string{"failed to resolve image: x", `Back-off pulling image "i": ErrImagePull: failed to resolve image: x`} {
		pod := f.Agent(f.Nodes[i])
		waiting("ImagePullBackOff")(pod)
		pod.Status.ContainerStatuses[0].State.Waiting.Message = text
		b.server.Set(t, b.path(pod.Name), pod)
	}
	states, err := cluster.Status(t.Context(), b.Client, &f)
	must.Do(t, err)
	const want = "its kubelet cannot pull the image i: failed to resolve image: x; push it with touchstone cluster image push, or load it on the node"
	for _, s := range states {
		if s.Phase != cluster.Starting || s.Text != want {
			t.Errorf("the state is %+v, want %q", s, want)
		}
	}
}

// An agent that cannot start ends its node with the reason.
func TestStartProblems(t *testing.T) {
	for reason, play := range map[string]func(*corev1.Pod){
		"its node does not have the image i, and may not pull it: by ErrImageNeverPull; load it on the node": waiting("ErrImageNeverPull"),
		"the name of the image is not valid: by InvalidImageName; give another one to --image":               waiting("InvalidImageName"),
		"ended 3 times without a record: Error, exit code 1: exec format error": func(p *corev1.Pod) {
			running(p)
			end := &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, Message: "exec format error"}
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{RestartCount: 3, LastTerminationState: corev1.ContainerState{Terminated: end}}
		},
	} {
		f := fleet(1)
		b := newBench(t, f)
		b.onStart(t, play)
		must.Do(t, b.Create(limited(t)))
		outcomes, err := b.Run(limited(t))
		if err != nil || outcomes[0].Phase != cluster.Failed || outcomes[0].Recorded || !strings.Contains(outcomes[0].Text, reason) {
			t.Errorf("%s: %+v, %v", reason, outcomes, err)
		}
	}
}

// A right that is missing halfway is an error with the remedy, and the objects so far can be removed.
func TestDeniedHalfway(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	b.server.Fault.Set(func(method, path string) *metav1.Status {
		if method == http.MethodPost && strings.HasSuffix(path, "/rolebindings") {
			return kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}
		return nil
	})
	hasObjects, err := f.Create(limited(t), b.Client, nil)
	if err == nil || !hasObjects || !strings.Contains(err.Error(), `create role binding "touchstone-`) || !strings.Contains(err.Error(), "touchstone cluster check") {
		t.Errorf("created: %t, %v", hasObjects, err)
	}
	if _, err := cluster.Clean(limited(t), b.Client, &f); err != nil || len(b.server.Paths()) > 0 {
		t.Errorf("left %v: %v", b.server.Paths(), err)
	}
}

// An account that may make no namespace gets the remedy, and leaves nothing to remove. After a request without an answer an object may exist.
func TestDeniedNamespace(t *testing.T) {
	f := fleet(1)
	s := kubetest.New(t)
	requests, losses := 0, 0
	s.Fault.Set(func(string, string) *metav1.Status {
		if requests++; requests <= losses {
			return kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "busy")
		}
		return kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	})
	for _, losses = range []int{0, 1} {
		requests = 0
		hasObjects, err := f.Create(limited(t), s.Client(t), nil)
		if err == nil || hasObjects != (losses > 0) || !strings.Contains(err.Error(), "name an existing namespace with --namespace") {
			t.Errorf("after %d requests without an answer: %t, %v", losses, hasObjects, err)
		}
	}
}

// A clean-up keeps the objects of others, with and without a namespace of its own.
func TestCleanKeepsForeign(t *testing.T) {
	for _, isOwn := range []bool{true, false} {
		f := fleet(1)
		f.OwnNamespace = isOwn
		b := newBench(t, f)
		must.Do(t, b.Create(limited(t)))
		pod := f.Agent(f.Nodes[0])
		b.server.Set(t, b.path(pod.Name), pod)
		stranger := pod.DeepCopy()
		stranger.Name = "stranger" // with the label, but not the name
		b.server.Set(t, b.path("stranger"), stranger)
		_, err := cluster.Clean(limited(t), b.Client, &f)
		var paths []string
		for _, p := range b.server.Paths() {
			paths = append(paths, p[strings.LastIndexByte(p, '/')+1:])
		}
		want := "stranger"
		if isOwn {
			want = f.Namespace + " stranger"
		}
		if isOwn != (err != nil) || strings.Join(paths, " ") != want {
			t.Errorf("own namespace %t: left %v, %v; want %q", isOwn, paths, err, want)
		}
	}
}

// The manifest has exactly the objects that a run creates. Agents that wait for their turn are not in it: all would start at once.
func TestManifest(t *testing.T) {
	f := fleet(2)
	b := newBench(t, f)
	b.starts(t)
	b.server.Log.Set(func(w io.Writer, pod string, _ *http.Request) {
		for _, n := range f.Nodes {
			if pod == f.AgentName(n.Name) {
				write(t, w, &f, n.Name, 1, trials+2)
			}
		}
	})
	must.Do(t, b.Create(limited(t)))
	_, err := b.Run(limited(t))
	must.Do(t, err)
	text, err := f.Manifest()
	must.Do(t, err)
	count := strings.Count(string(text), "\n---\n") + 1
	if paths := b.server.Paths(); count != len(paths) {
		t.Errorf("the manifest has %d objects, and a run makes %v", count, paths)
	}
	for _, secret := range []string{"nodeName:", "hostPath", "privileged: true", "hostNetwork"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the manifest has %s", secret)
		}
	}
	f.Parallel = 1
	inTurns, err := f.Manifest()
	must.Do(t, err)
	if agents := strings.Count(string(inTurns), "kind: Pod\n"); agents != 0 || strings.Count(string(text), "kind: Pod\n") != 2 {
		t.Errorf("the manifest of nodes in turns has %d agents:\n%s", agents, inTurns)
	}
}

func node(name string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "blue"}}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.37.2"}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("16200000Ki")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if change != nil {
		change(n)
	}
	return n
}

// Nodes that take no pod are left out, each with its reason and the remedy.
func TestChoose(t *testing.T) {
	s := kubetest.New(t)
	for name, change := range map[string]func(*corev1.Node){
		"a": nil, "b": nil, "typed": func(n *corev1.Node) { n.Labels[corev1.LabelInstanceTypeStable] = "m7.large" },
		"cordoned": func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"tainted": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		},
		"young": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
		},
		"down":    func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"windows": func(n *corev1.Node) { n.Status.NodeInfo.OperatingSystem = "windows" },
		"green":   func(n *corev1.Node) { n.Labels["pool"] = "green" },
	} {
		s.Set(t, "/api/v1/nodes/"+name, node(name, change))
	}
	nodes, exclusions, err := cluster.Choose(t.Context(), s.Client(t), fleetID, cluster.Selection{Selector: "pool=blue"})
	must.Do(t, err)
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name+" "+n.Kind)
	}
	if got := strings.Join(names, "; "); got != "a amd64, 2 CPUs, 15 GiB; b amd64, 2 CPUs, 15 GiB; typed m7.large" {
		t.Errorf("chosen: %s", got)
	}
	for name, want := range map[string]string{"cordoned": "kubectl uncordon cordoned", "tainted": "gpu=yes:NoSchedule", "young": "goes when its cause has gone", "down": "not ready", "windows": "runs windows"} {
		found := false
		for _, e := range exclusions {
			found = found || e.Name == name && strings.Contains(e.Reason, want)
		}
		if !found {
			t.Errorf("%s: %v, want %q", name, exclusions, want)
		}
	}
	if nodes, _, err = cluster.Choose(t.Context(), s.Client(t), fleetID, cluster.Selection{PerKind: 1}); err != nil || len(nodes) != 2 {
		t.Errorf("one of each kind: %v, %v", nodes, err)
	}
	if _, _, err = cluster.Choose(t.Context(), s.Client(t), fleetID, cluster.Selection{Names: []string{"nosuch"}}); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("an unknown node: %v", err)
	}
}

// The names of nodes become parts of names that the API and the results file accept, and stay distinct.
func TestNames(t *testing.T) {
	f := fleet(0)
	names := map[string]string{}
	for _, name := range []string{
		"n1", "node-1", "ip-10-0-12-34.eu-west-1.compute.internal", "ip-10-0-12-35.eu-west-1.compute.internal", "a.b", "a-b", "-", strings.Repeat("x", 253), strings.Repeat("x", 252) + "y", "ä/../",
	} {
		id := f.RunID(name)
		if twin, isTaken := names[id]; isTaken {
			t.Errorf("%q and %q are both %s", name, twin, id)
		}
		names[id] = name
		if len("touchstone-"+id+"-t100000-00001") > 63 || strings.ContainsAny(id, "./ ä_") || strings.HasSuffix(id, "-") {
			t.Errorf("%q becomes %q", name, id)
		}
	}
}

// The report of a fleet names the nodes that it does not have, and counts them if there are many.
func TestAbsences(t *testing.T) {
	exclusions := make([]cluster.Excluded, 9)
	for i := range exclusions {
		exclusions[i] = cluster.Excluded{Name: fmt.Sprint("n", i), Reason: "it is cordoned"}
	}
	for count, want := range map[int]string{0: "", 1: "node n0 is not measured: it is cordoned", 4: "node n3 is not measured: it is cordoned", 5: "2 more nodes are not measured", 9: "6 more nodes are not measured"} {
		caveats := cluster.Absences(exclusions[:count])
		if last := slices.Concat([]string{""}, caveats)[len(caveats)]; len(caveats) != min(count, 4) || last != want {
			t.Errorf("the caveats about %d nodes are %q, the last one should be %q", count, caveats, want)
		}
	}
}

// A check finds each obstacle, with a remedy, and creates nothing.
func TestCheck(t *testing.T) {
	s := kubetest.New(t)
	s.Allowed.Set(func(right string) bool { return right != "patch pods" })
	s.Set(t, "/api/v1/nodes/n1", node("n1", func(n *corev1.Node) { n.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: "runc"}} }))
	s.Set(t, "/apis/node.k8s.io/v1/runtimeclasses/gvisor", &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"})
	f := fleet(1)
	f.OwnNamespace, f.Namespace, f.Handlers = false, "mine", map[string]string{"gvisor": "runsc"}
	s.Set(t, "/api/v1/namespaces/mine", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
	s.Set(t, "/api/v1/namespaces/mine/resourcequotas/q", &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "mine"},
		Status:     corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}, Used: corev1.ResourceList{"pods": resource.MustParse("0")}},
	})
	count := len(s.Paths())
	var findings []string
	c := cluster.Checker{Client: s.Client(t), Fleet: f, Excluded: []cluster.Excluded{{Name: "old", Reason: "it is cordoned"}}, Report: func(x cluster.Finding) {
		findings = append(findings, string(x.Level)+" "+x.String())
	}, Step: func(string) {}}
	must.Do(t, c.Run(t.Context()))
	report := strings.Join(findings, "\n")
	for _, want := range []string{
		"ok cluster: Kubernetes v1.37.2", "obstacle rights: no right in namespace \"mine\" to patch pods; an administrator", "note node old: not measured: it is cordoned",
		`obstacle class gvisor: no chosen node has its handler "runsc"`, "obstacle quota q: it leaves room for pods: 1, and a run has 2 at once; raise it", "ok admission",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("no finding %q in\n%s", want, report)
		}
	}
	if c.Passed() || len(s.Paths()) != count {
		t.Errorf("passed %t, and the objects are %v", c.Passed(), s.Paths())
	}
}

// Missing rights with the same remedy are one finding, and hide no refusal of another rule: the pod is not tried without the right to create it.
func TestCheckRights(t *testing.T) {
	s := kubetest.New(t)
	s.Allowed.Set(func(right string) bool { return strings.HasPrefix(right, "list ") })
	s.Set(t, "/api/v1/nodes/n1", node("n1", nil))
	s.Fault.Set(func(method, path string) *metav1.Status {
		if method == http.MethodPost && strings.HasSuffix(path, "/pods") {
			return kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, `pods is forbidden: User "u" cannot create resource "pods" in API group ""`)
		}
		return nil
	})
	f := fleet(1)
	f.OwnNamespace, f.Events = true, true
	var findings []string
	c := cluster.Checker{Client: s.Client(t), Fleet: f, Report: func(x cluster.Finding) { findings = append(findings, string(x.Level)+" "+x.String()) }, Step: func(string) {}}
	must.Do(t, c.Run(t.Context()))
	obstacles := slices.DeleteFunc(slices.Clone(findings), func(text string) bool { return !strings.HasPrefix(text, "obstacle") })
	if len(obstacles) != 3 {
		t.Fatalf("the obstacles are %q", obstacles)
	}
	for i, want := range []string{
		"to create, delete serviceaccounts; to create, update, delete configmaps; to create, delete roles; to create, delete rolebindings; to create, get, watch, patch, delete pods; to get pods/log",
		"to watch events; --no-events does without", "no right in the whole cluster to create, get, delete namespaces; --namespace names an existing namespace",
	} {
		if !strings.Contains(obstacles[i], want) {
			t.Errorf("the obstacle %q lacks %q", obstacles[i], want)
		}
	}
	if !slices.ContainsFunc(findings, func(text string) bool { return strings.HasPrefix(text, "note admission: not checked") }) {
		t.Errorf("the findings are %q", findings)
	}
}

// Two runs on one node are noticed.
func TestBusy(t *testing.T) {
	f := fleet(2)
	b := newBench(t, f)
	pod := f.Agent(f.Nodes[0])
	pod.Spec.NodeName = "n1"
	b.server.Set(t, b.path(pod.Name), pod)
	for name, want := range map[string]bool{"n1": true, "n2": false} {
		text, err := cluster.Busy(t.Context(), b.Client, []cluster.Node{{Node: result.Node{Name: name}}})
		if err != nil || strings.Contains(text, fleetID) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// A run whose program was killed while it made the objects has nothing to collect, unless an agent runs.
func TestIncomplete(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	must.Do(t, b.Create(limited(t)), f.Incomplete(limited(t), b.Client))
	for _, object := range []string{"configmaps", "serviceaccounts", "rbac/roles", "rbac/rolebindings"} {
		kind := strings.TrimPrefix(object, "rbac/")
		root := "/api/v1"
		if kind != object {
			root = "/apis/rbac.authorization.k8s.io/v1"
		}
		path := root + "/namespaces/" + f.Namespace + "/" + kind + "/touchstone-" + f.ID
		var content map[string]any
		if !b.server.Read(t, path, &content) {
			t.Fatalf("%s does not exist among %q", path, b.server.Paths())
		}
		b.server.Remove(path)
		if err := f.Incomplete(limited(t), b.Client); err == nil || !strings.Contains(err.Error(), "touchstone cluster cleanup "+f.ID) {
			t.Errorf("without %s: %v", object, err)
		}
		b.server.Set(t, path, content)
	}
	if bare := (cluster.Fleet{ID: f.ID, Namespace: f.Namespace}); bare.Incomplete(limited(t), b.Client) == nil {
		t.Error("a run that has only a namespace can be collected")
	}
	b.server.Fault.Set(func(method, path string) *metav1.Status {
		if method == http.MethodGet && strings.Contains(path, "/roles/") {
			return kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "no right")
		}
		return nil
	})
	must.Do(t, f.Incomplete(limited(t), b.Client))
	b.server.Remove("/api/v1/namespaces/" + f.Namespace + "/serviceaccounts/touchstone-" + f.ID)
	pod := f.Agent(f.Nodes[0])
	b.server.Set(t, b.path(pod.Name), pod)
	must.Do(t, f.Incomplete(limited(t), b.Client))
}

// A name of a class that no plan can hold is refused before an agent reads it.
func TestLongClass(t *testing.T) {
	class := func(length int) []nodev1.RuntimeClass {
		return []nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a.", length/2)}}}
	}
	const limit = 124 // the prefix has four more
	if p, _, err := cluster.Resolve(plan.Cluster(), class(limit)); err != nil || len(p.Targets) != 2 {
		t.Errorf("Resolve() = %v, %v", p.Targets, err)
	}
	if _, _, err := cluster.Resolve(plan.Cluster(), class(limit+2)); err == nil || !strings.Contains(err.Error(), "is too long or not printable; name the other classes") {
		t.Errorf("Resolve() = %v", err)
	}
}

// The clean-up repeats each request that an overloaded API server has not answered.
func TestCleanRetries(t *testing.T) {
	for _, isOwn := range []bool{true, false} {
		f := fleet(1)
		f.OwnNamespace = isOwn
		b := newBench(t, f)
		must.Do(t, b.Create(limited(t)))
		var mu sync.Mutex
		failed := map[string]bool{}
		b.server.Fault.Set(func(method, path string) *metav1.Status {
			mu.Lock()
			defer mu.Unlock()
			if failed[method+path] {
				return nil
			}
			failed[method+path] = true
			return kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "busy")
		})
		if removals, err := cluster.Clean(limited(t), b.Client, &f); err != nil || len(b.server.Paths()) > 0 {
			t.Errorf("removed %v and left %v: %v", removals, b.server.Paths(), err)
		}
	}
}

// A fleet in a config map is read as it was written, and no other config map is taken for one.
func TestFind(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	must.Do(t, b.Create(limited(t)))
	forged := f.ConfigMaps()[1].DeepCopy()
	forged.Name = "forged"
	b.server.Set(t, "/api/v1/namespaces/"+f.Namespace+"/configmaps/forged", forged)
	found, err := cluster.Find(t.Context(), b.Client, "")
	must.Do(t, err)
	f.Plan = "" // the other config map has it
	if len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	got, _ := json.Marshal(found[0])
	want, _ := json.Marshal(f)
	if string(got) != string(want) {
		t.Errorf("found %s, want %s", got, want)
	}
}

// A handler that no chosen node has is an obstacle, as a run without any trial of its class fails. A handler that some nodes have is a note.
func TestMissingHandler(t *testing.T) {
	for gaps, want := range map[int]string{1: "note class gvisor on n1", 2: "obstacle class gvisor on n1, class gvisor on n2"} {
		f := fleet(2)
		f.Plan = "version: 1\ntargets: [k8s, k8s/gvisor]\nbenchmarks: [pods.start]\n"
		s := kubetest.New(t)
		s.Created.Set(func(path string) {
			var pod corev1.Pod
			if !s.Read(t, path, &pod) || pod.Kind != "Pod" {
				return
			}
			node := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
			if pod.Spec.RuntimeClassName == nil || gaps == 1 && node == "n2" {
				pod.Status.Phase = corev1.PodSucceeded
				s.Set(t, path, &pod)
				return
			}
			s.Set(t, "/api/v1/namespaces/"+f.Namespace+"/events/"+pod.Name, &corev1.Event{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: f.Namespace}, InvolvedObject: corev1.ObjectReference{Name: pod.Name},
				Reason: "FailedCreatePodSandBox", Message: "sandbox of " + pod.Name + `: no runtime for "runsc" is configured`,
			})
		})
		var findings []string
		c := cluster.Checker{Client: s.Client(t), Fleet: f, Report: func(x cluster.Finding) { findings = append(findings, string(x.Level)+" "+x.String()) }, Step: func(string) {}}
		hasObjects, err := c.Try(limited(t))
		must.Do(t, err)
		if want += `: no runtime for "runsc" is configured; configure the handler of the class`; !hasObjects || len(findings) != 1 || !strings.HasPrefix(findings[0], want) || c.Passed() != (gaps == 1) {
			t.Errorf("%d nodes without the handler: passed %t, findings %q, want %q", gaps, c.Passed(), findings, want)
		}
	}
}

// A node that reports its handlers gets no pod of a class without one: the gap is a finding already.
func TestReportedGap(t *testing.T) {
	f := fleet(2)
	f.Plan, f.Handlers = "version: 1\ntargets: [k8s/gvisor]\nbenchmarks: [pods.start]\n", map[string]string{"gvisor": "runsc"}
	s := kubetest.New(t)
	for name, handler := range map[string]string{"n1": "runc", "n2": "runsc"} {
		s.Set(t, "/api/v1/nodes/"+name, node(name, func(n *corev1.Node) { n.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: handler}} }))
	}
	s.Set(t, "/apis/node.k8s.io/v1/runtimeclasses/gvisor", &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"})
	s.Allowed.Set(func(string) bool { return true })
	s.Created.Set(func(path string) {
		var pod corev1.Pod
		if strings.Contains(path, "-try-") && s.Read(t, path, &pod) {
			pod.Status.Phase = corev1.PodSucceeded
			s.Set(t, path, &pod)
		}
	})
	var findings []string
	c := cluster.Checker{Client: s.Client(t), Fleet: f, Report: func(x cluster.Finding) { findings = append(findings, string(x.Level)+" "+x.String()) }, Step: func(string) {}}
	must.Do(t, c.Run(limited(t)))
	count := len(findings)
	_, err := c.Try(limited(t))
	must.Do(t, err)
	if last := findings[count:]; len(last) != 1 || !strings.HasPrefix(last[0], "ok pods: all 3 ran") || !strings.Contains(strings.Join(findings, "\n"), `note class gvisor: 1 of 2 nodes do not have its handler "runsc": n1`) {
		t.Errorf("the findings are %q", findings)
	}
}

// TestJoined: an image that no node can pull is one obstacle, and not one for each class and node.
func TestJoined(t *testing.T) {
	got := cluster.Joined([]cluster.Finding{
		{Level: cluster.Obstacle, What: "class runsc on b", Text: "no image", Remedy: "push it"},
		{Level: cluster.Obstacle, What: "class runc on b", Text: "no handler"},
		{Level: cluster.Obstacle, What: "class crun on a", Text: "no image", Remedy: "push it"},
	})
	want := []cluster.Finding{
		{Level: cluster.Obstacle, What: "class crun on a, class runsc on b", Text: "no image", Remedy: "push it"},
		{Level: cluster.Obstacle, What: "class runc on b", Text: "no handler"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
