package outage

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/cluster"
)

// nodesVariable is the number of fake nodes of TestScale.
const nodesVariable = "FLEET_NODES"

// The limits of a cluster run with 1000 nodes. Only a run with this number judges them: scripts/bench-fleet.sh. The pages of the program's file do not
// count as memory: touchstone version has 36 MiB of them, and the kernel takes them back.
const (
	scaleNodes   = 1000
	scalePlace   = 30 * time.Second
	scaleCollect = 10 * time.Second
	scaleCPU     = 3 * time.Second
	scaleMemory  = 64 << 20
)

// logSize is the size of the log of each fake agent in bytes: 34 MB of 1000.
const logSize = 34_000

// TestScale measures a cluster run with many fake nodes: the time until all agents run, the time to collect all their records, and the coordinator's
// processor time and memory. kwok imitates the nodes. A proxy answers the requests for logs, because kwok has the same log for all
// pods. It holds the logs until all agents run, so the two times do not overlap.
func TestScale(t *testing.T) {
	cells.Need(t, "fleet/scale")
	count := number(t, nodesVariable, 60)
	s := &site{T: t, program: program(t), Cluster: cluster.New(t, cluster.Options{Nodes: 1})}
	s.AddFakeNodes(t, count, "")
	s.Kubectl(t, "taint", "nodes", "--selector", "type=kwok", "kwok.x-k8s.io/node-")

	config, _, err := kube.Place{Kubeconfig: s.Kubeconfig}.Load()
	must.Do(t, err)
	s.client, err = kube.New(config, "test")
	must.Do(t, err)
	s.measureScale(t, count)
}

// measureScale measures a cluster run on all fake nodes.
func (s *site) measureScale(t *testing.T, count int) {
	t.Helper()
	logs := &fakeLogs{count: count, running: map[string]bool{}, placed: make(chan struct{}), cleaned: make(chan struct{})}
	f := s.prepare(s.proxy(logs.handle))
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		agents := metav1.ListOptions{LabelSelector: "touchstone.role=agent", FieldSelector: "status.phase=Running"}
		if err := kube.Follow(ctx, s.client.Pods(metav1.NamespaceAll), agents, logs); ctx.Err() == nil {
			t.Errorf("watch the agents: %v", err)
		}
	})
	defer watch.Wait()
	defer cancel() // before the wait
	logs.coordinator = func() usage { return usageOf(t, f.coordinator.cmd.Process.Pid) }
	startTime := time.Now()
	f.run(faultPlan, "--selector", "type=kwok")
	for _, event := range []<-chan struct{}{logs.placed, logs.cleaned} {
		select {
		case <-event:
		case <-f.coordinator.exited:
		case <-time.After(patience):
			t.Errorf("the run waits:\n%s", f.coordinator.text())
		}
	}
	f.mustEnd(exitOK, fmt.Sprintf("%d of %d nodes complete", count, count))
	if t.Failed() {
		return
	}
	place, collect := logs.placedAt.Sub(startTime), logs.cleanedAt.Sub(logs.placedAt)
	costs, state := logs.costs, f.coordinator.cmd.ProcessState
	const mib = 1 << 20
	t.Logf("%d nodes: all agents run after %.1f s; %.1f MB of logs collected in %.1f s; coordinator until then %.2f s of CPU, %.1f MiB of memory and %.1f MiB of its file; with report and clean-up %.2f s and %.1f MiB in all",
		count, place.Seconds(), float64(logs.bytes)/1e6, collect.Seconds(), costs.cpu.Seconds(), float64(costs.memory)/mib, float64(costs.file)/mib,
		(state.UserTime() + state.SystemTime()).Seconds(), float64(state.SysUsage().(*syscall.Rusage).Maxrss<<10)/mib)
	if count != scaleNodes {
		return
	}
	if place > scalePlace || collect > scaleCollect || costs.cpu > scaleCPU || costs.memory > scaleMemory {
		t.Errorf("a limit is exceeded: agents run after %v, logs collected in %v, %v of CPU, %d MiB", scalePlace, scaleCollect, scaleCPU, scaleMemory/mib)
	}
}

// fakeLogs answers the requests for logs.
type fakeLogs struct {
	count int
	// coordinator returns the costs of the coordinator so far.
	coordinator func() usage
	// placed is closed when all agents run, cleaned when the coordinator removes the run.
	placed, cleaned chan struct{}

	mu                  sync.Mutex
	running             map[string]bool
	placedAt, cleanedAt time.Time
	bytes               int
	costs               usage
}

// logPath finds the fleet and the node in the path of a request for the log of an agent.
var logPath = regexp.MustCompile(`/pods/touchstone-([0-9]{8}-[0-9]{6}-[a-z2-7]{4})-([a-z0-9-]+)-agent/log$`)

func (l *fakeLogs) handle(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	m := logPath.FindStringSubmatch(r.URL.Path)
	switch {
	case m != nil:
		select {
		case <-l.placed:
		case <-r.Context().Done():
			return
		}
		log := fakeLog(m[1] + "-" + m[2])
		l.mu.Lock()
		l.bytes += len(log)
		l.mu.Unlock()
		_, _ = w.Write(log) // the coordinator may have gone
		return
	case r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"):
		l.clean()
	}
	pass.ServeHTTP(w, r)
}

// Seen implements kube.Observer.
func (l *fakeLogs) Seen(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[pod.Name] = true
	if len(l.running) == l.count && l.placedAt.IsZero() {
		l.placedAt = time.Now()
		close(l.placed)
	}
}

// Gone implements kube.Observer.
func (*fakeLogs) Gone(string) {}

// Listed implements kube.Observer.
func (*fakeLogs) Listed() {}

// Lost implements kube.Observer.
func (*fakeLogs) Lost(error) {}

// clean notes that all records are collected.
func (l *fakeLogs) clean() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cleanedAt.IsZero() {
		l.cleanedAt = time.Now()
		l.costs = l.coordinator()
		close(l.cleaned)
	}
}

// fakeLog is the log of an agent that has measured a run.
func fakeLog(id string) []byte {
	var log bytes.Buffer
	w := record.NewWriter(&log)
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	run := result.Run{
		ID: id, Name: "faults", State: result.Running, Started: epoch, Targets: []result.Target{{Name: "k8s/runc"}}, Baseline: "k8s/runc",
		Bench: []result.Benchmark{{Name: "pods.start", Metrics: []result.Metric{{Name: "FirstInstruction", Unit: result.Seconds, Better: result.Lower}}}},
	}
	errs := []error{w.Write(1, record.Begin, run)}
	trials := 0
	for ; log.Len() < logSize; trials++ {
		trial := result.Trial{
			Seq: trials + 1, Cell: result.Cell{Benchmark: "pods.start", Target: "k8s/runc"}, Block: trials, Status: result.OK,
			Started: epoch.Add(time.Duration(trials) * time.Second), Elapsed: time.Second,
			Samples: []result.Sample{{Metric: "FirstInstruction", Value: 0.4 + float64(trials%7)/100}},
		}
		for phase := range 4 {
			trial.Phases = append(trial.Phases, result.Phase{Name: fmt.Sprint("stage ", phase), Start: time.Duration(phase) * time.Millisecond, Duration: time.Millisecond})
		}
		errs = append(errs, w.Write(trials+2, record.Trial, trial))
	}
	errs = append(errs, w.Write(trials+2, record.Finish, record.End{State: result.Complete, Ended: epoch.Add(time.Hour), Trials: trials}))
	for _, err := range errs {
		if err != nil {
			panic(fmt.Sprintf("a buffer refuses a record: %v", err))
		}
	}
	return log.Bytes()
}

// usage has the costs of a process.
type usage struct {
	cpu time.Duration
	// memory is the largest resident memory in bytes, without file: the pages of the program's file.
	memory, file int
}

// usageOf returns the costs of a process so far.
func usageOf(t *testing.T, pid int) (u usage) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must.Do(t, err)
	// The fields follow the name, which may contain any character: the 14th and the 15th of all are the times in user and kernel mode.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const tick = 10 * time.Millisecond
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(string(field))
		must.Do(t, err)
		u.cpu += time.Duration(ticks) * tick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must.Do(t, err)
	size := func(name string) int {
		m := regexp.MustCompile(name + `:\s+([0-9]+) kB`).FindSubmatch(status)
		if m == nil {
			t.Fatalf("the kernel reports no %s of the coordinator", name)
		}
		kib, err := strconv.Atoi(string(m[1]))
		must.Do(t, err)
		return kib << 10
	}
	u.file = size("RssFile")
	u.memory = size("VmHWM") - u.file
	return u
}
