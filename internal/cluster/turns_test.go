package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// many is a number of nodes whose logs are read in turns.
const many = 70

// reading is the number of a request for the log of an agent, from 1 on.
type reading struct {
	number int
	*http.Request
}

// onRead lets each agent run as soon as its pod exists, and answers the requests for its log.
func (b *bench) onRead(t *testing.T, log func(w io.Writer, node string, r reading)) {
	t.Helper()
	b.starts(t)
	nodes := map[string]string{}
	for _, n := range b.Fleet.Nodes {
		nodes[b.Fleet.AgentName(n.Name)] = n.Name
	}
	var mu sync.Mutex
	counts := map[string]int{}
	b.server.Log.Set(func(w io.Writer, pod string, r *http.Request) {
		mu.Lock()
		counts[pod]++
		count := counts[pod]
		mu.Unlock()
		log(w, nodes[pod], reading{count, r})
	})
}

// complete checks that all nodes have complete runs.
func (b *bench) complete(t *testing.T, outcomes []cluster.Outcome) {
	t.Helper()
	for _, o := range outcomes {
		if r := b.recorded(t, o.Node); o.Phase != cluster.Complete || r.State != result.Complete || len(r.Trials) != trials {
			t.Errorf("%+v with %d trials in state %s", o, len(r.Trials), r.State)
		}
	}
	if len(outcomes) != len(b.Fleet.Nodes) || b.observer.count() != trials*len(outcomes) {
		t.Errorf("%d nodes with %d trials", len(outcomes), b.observer.count())
	}
}

// The logs of many agents are read in turns: few at the same time, without a wait for more, and the second time from the end of the first.
func TestTurns(t *testing.T) {
	f := fleet(many)
	b := newBench(t, f)
	var readers, maximum atomic.Int64
	two := make(chan struct{}) // is closed soon after two logs are read at the same time, so that more may come
	meet := sync.OnceFunc(func() { time.AfterFunc(50*time.Millisecond, func() { close(two) }) })
	b.onRead(t, func(w io.Writer, node string, r reading) {
		count := readers.Add(1)
		if count > 1 {
			meet()
		}
		select {
		case <-two:
		case <-r.Context().Done():
		}
		for {
			if peak := maximum.Load(); count <= peak || maximum.CompareAndSwap(peak, count) {
				break
			}
		}
		readers.Add(-1) // before the text, because the reader may be at the next log when this handler returns
		seconds := r.URL.Query().Get("sinceSeconds")
		if r.URL.Query().Get("follow") != "" || (seconds == "") != (r.number == 1) {
			t.Errorf("reading %d of %s: %s", r.number, node, r.URL.RawQuery)
		}
		if r.number == 1 {
			write(t, w, &f, node, 1, 3)
			b.play(t, b.path(f.AgentName(node)), func(p *corev1.Pod) { p.Status.Reason = "wakes the collector" })
			return
		}
		write(t, w, &f, node, 3, trials+2)
	})
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	b.complete(t, outcomes)
	if peak := maximum.Load(); peak > 32 {
		t.Errorf("%d logs are read at the same time, want at most 32", peak)
	}
}

// keeper is an observer that restores the pod of a lost node.
type keeper struct {
	*watcher
	lost func(node string)
}

func (k keeper) Changed(node string, s cluster.State) {
	k.watcher.Changed(node, s)
	if s.Phase == cluster.Lost {
		k.lost(node)
	}
}

// A log that is read in turns is read to its end when its agent ends: n1 is deleted, n2 exits, and n3 fails. The log of n4 is not read while its node is
// lost.
func TestTurnsToTheEnd(t *testing.T) {
	f := fleet(many)
	b := newBench(t, f)
	var isLost atomic.Bool
	ready := func(status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		}
	}
	b.Observer = keeper{b.observer, func(node string) {
		if node == "n4" {
			isLost.Store(false)
			b.play(t, b.path(f.AgentName(node)), ready(corev1.ConditionTrue))
		}
	}}
	ends := map[string]func(*corev1.Pod){
		"n1": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_800_000_000, 0)} },
		"n2": func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"n3": func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"n4": ready(corev1.ConditionFalse),
	}
	b.onRead(t, func(w io.Writer, node string, r reading) {
		path := b.path(f.AgentName(node))
		switch {
		case ends[node] == nil:
			write(t, w, &f, node, 1, trials+2)
		case node == "n4" && isLost.Load():
			t.Error("the log of a lost node is read")
		case r.number == 1:
			write(t, w, &f, node, 1, 3)
			isLost.Store(isLost.Load() || node == "n4")
			b.play(t, path, ends[node])
		case r.number == 2 && (node == "n1" || node == "n3"):
			if follow := r.URL.Query().Get("follow") != ""; follow != (node == "n1") {
				t.Errorf("the log of %s is followed: %t", node, follow)
			}
			write(t, w, &f, node, 1, 5)
			if node == "n1" {
				b.server.Remove(path)
			}
		default:
			write(t, w, &f, node, 1, trials+2)
		}
	})
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	b.complete(t, outcomes)
	if notes := fmt.Sprint(b.observer.notes); strings.Count(notes, "goes on after 4 trials") != 2 {
		t.Errorf("the successors of n1 and n3 repeat trials: %s", notes)
	}
}

// Agents that Run has not released at its end are released by Release.
func TestRelease(t *testing.T) {
	f := fleet(3)
	b := newBench(t, f)
	done := make(chan struct{})
	b.server.Fault.Set(func(method, _ string) *metav1.Status {
		if method == http.MethodPatch {
			<-done
		}
		return nil
	})
	b.onRead(t, func(w io.Writer, node string, _ reading) { write(t, w, &f, node, 1, trials+2) })
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	b.complete(t, outcomes)
	close(done)
	must.Do(t, b.Release(limited(t)))
	for _, n := range f.Nodes {
		var pod corev1.Pod
		if !b.server.Read(t, b.path(f.AgentName(n.Name)), &pod) || pod.Annotations[cluster.EndAnnotation] != cluster.EndCollected {
			t.Errorf("the agent of %s is not released: %v", n.Name, pod.Annotations)
		}
	}
}

// A trial that the results file refuses ends its node. The trials before it are recorded.
func TestRefusedTrial(t *testing.T) {
	f := fleet(1)
	b := newBench(t, f)
	b.onRead(t, func(w io.Writer, node string, _ reading) {
		var text strings.Builder
		write(t, &text, &f, node, 1, 3)
		bad := trial(3)
		bad.Block = -5
		must.Do(t, record.NewWriter(&text).Write(4, record.Trial, bad))
		_, err := io.WriteString(w, text.String())
		must.Do(t, err)
	})
	must.Do(t, b.Create(limited(t)))
	outcomes, err := b.Run(limited(t))
	must.Do(t, err)
	if got := b.recorded(t, "n1"); outcomes[0].Phase != cluster.Ended || len(got.Trials) != 2 || !strings.Contains(outcomes[0].Text, "block -5") {
		t.Errorf("%+v with %d trials", outcomes[0], len(got.Trials))
	}
}
