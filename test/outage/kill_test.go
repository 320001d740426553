package outage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
)

const (
	killsVariable   = "FLEET_KILLS"
	seedVariable    = "FLEET_SEED"
	minutesVariable = "FLEET_MINUTES"
	fullVariable    = "FLEET_FULL"
)

// The full campaign has fullKills kills. A campaign that takes longer than minutes ends with fewer; one with another seed makes the rest.
const (
	fullKills = 200
	minutes   = 75
)

// killedPlan takes a minute on each node: a trial takes a second.
const killedPlan = `version: 1
name: kills
targets: [k8s/crun]
benchmarks: [pods.start]
blocks: %d
warmup: 0
`

// victim is a part of a cluster run that is killed. kill returns when the part is back, or will come back by itself.
type victim struct {
	name string
	kill func(k *kill)
}

// kill is the death of one victim.
type kill struct {
	*fleet
	victim
	node   int
	after  time.Duration // since the victim before was back
	outage time.Duration // of victims that do not come back by themselves
	// resumed is the time from the return of the node to the next trial; 0 if none was waited for.
	resumed time.Duration
}

func (k *kill) String() string {
	return fmt.Sprintf("%s of node%d after %v, away for %v", k.name, k.node, k.after.Round(time.Millisecond), k.outage.Round(time.Millisecond))
}

var victims = []victim{
	{"coordinator", (*kill).coordinatorProcess},
	{"agent", (*kill).agentProcess},
	{"agent's pod", (*kill).agentPod},
	{"kubelet", func(k *kill) { k.Kill(k, k.node, "kubelet") }},
	{"stopped kubelet", (*kill).stoppedKubelet},
	{"containerd", func(k *kill) { k.Kill(k, k.node, "containerd") }},
	{"kube-apiserver", func(k *kill) { k.KillControl(k, "kube-apiserver") }},
	{"power", (*kill).power},
}

// coordinatorProcess kills the coordinator. Another one collects later.
func (k *kill) coordinatorProcess() {
	must.Do(k, k.coordinator.cmd.Process.Signal(syscall.SIGKILL))
	<-k.coordinator.exited
	k.Logf("the killed coordinator of run %s printed:\n%s", k.id, k.coordinator.text())
	k.keep()
	pause(k.outage)
	k.start("collect", k.id)
}

// agentProcess kills the agent in its pod. Only the node's own processes are visible.
func (k *kill) agentProcess() {
	k.Node(k, k.node, "sh", "-c", `for pid in $(pgrep -f '^/touchstone agent'); do kill -KILL "$pid"; done`)
}

func (k *kill) agentPod() {
	// The pod may be gone, because an earlier one is being replaced.
	_, _ = k.kubectl("delete", "pod", "--namespace", k.namespace(), k.agent(nodeName(k.node)), "--wait=false", "--ignore-not-found")
}

func (k *kill) stoppedKubelet() {
	k.Freeze(k, k.node)
	pause(k.outage)
	k.Thaw(k, k.node)
	k.awaitReturn()
}

func (k *kill) power() {
	k.StopNode(k, k.node)
	pause(k.outage)
	k.StartNode(k, k.node)
	k.awaitReturn()
}

// awaitReturn waits until the API server has the node as ready, and then for the node's next trial. A run that ends meanwhile has none.
func (k *kill) awaitReturn() {
	node := nodeName(k.node)
	k.await(node+" is not ready", func() string {
		text, err := k.kubectl("get", "node", node, "--output", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err != nil {
			return err.Error()
		}
		if text != "True" {
			return "Ready is " + text
		}
		return ""
	})
	returnTime := time.Now()
	k.await(node+" does not go on", func() string {
		if k.coordinator.hasExited() {
			return ""
		}
		for _, m := range k.log(node) {
			var progress record.Moment
			switch {
			case m.Kind == record.Finish:
				return ""
			case m.Kind == record.Progress && m.time.After(returnTime) && m.Decode(&progress) == nil && progress.Paused == "":
				k.resumed = m.time.Sub(returnTime)
				return ""
			}
		}
		return "its log has no trial since the return"
	})
}

// TestKills kills the parts of cluster runs at random moments, beside objects of others. All trials that were committed must be in the results file at
// the end, once; each node has a complete run or a reason; no object, process, volume or mount of a run is left, and nothing of others is touched.
//
// Invariant cluster-kills: A cluster run whose parts are killed loses no committed trial, and leaves no object behind.
func TestKills(t *testing.T) {
	cells.Need(t, "fleet/kills")
	isFull := os.Getenv(fullVariable) != ""
	blocks, kills := 20, len(victims)
	if isFull {
		blocks, kills = 60, fullKills
	}
	kills = number(t, killsVariable, kills)
	seed := number(t, seedVariable, int(time.Now().UnixNano()>>20))
	t.Logf("%s=%d %s=%d", killsVariable, kills, seedVariable, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	limit := time.Now().Add(time.Duration(number(t, minutesVariable, minutes)) * time.Minute)

	s := newSite(t, 3)
	s.plant()
	baseline, err := s.state()
	must.Do(t, err)
	var deaths []*kill
	losses := 0
	// A victim is chosen from a shuffled list, so that each dies equally often.
	var order []victim
	for len(deaths) < kills && time.Now().Before(limit) && !t.Failed() {
		f := s.begin(fmt.Sprintf(killedPlan, blocks))
		f.claim()
		f.await("no trial is recorded", func() string {
			if f.trials() == 0 && !f.coordinator.hasExited() {
				return "the results file is empty"
			}
			return ""
		})
		for len(deaths) < kills && time.Now().Before(limit) && !f.coordinator.hasExited() {
			if len(order) == 0 {
				order = slices.Clone(victims)
				random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			}
			k := &kill{
				fleet: f, victim: order[0], node: 1 + random.IntN(s.nodes),
				after: time.Duration(random.Int64N(int64(3 * time.Second))), outage: time.Duration(random.Int64N(int64(8 * time.Second))),
			}
			if isFull && random.IntN(10) == 0 {
				k.outage += time.Minute // the control plane notices the loss of a node after 50 s
			}
			pause(k.after)
			f.keep()
			if f.coordinator.hasExited() {
				break
			}
			order = order[1:]
			startTime := time.Now()
			k.kill(k)
			deaths = append(deaths, k)
			t.Logf("kill %d, run %s: %v; resumed after %v; took %v", len(deaths), f.id, k, k.resumed.Round(time.Millisecond), time.Since(startTime).Round(time.Millisecond))
		}
		code := f.ends()
		losses += f.check()
		f.explained()
		f.failures()
		t.Logf("run %s ends with %d after %d trials, kept %d", f.id, code, f.trials(), f.keptTrials())
		s.clean(f, baseline)
	}
	s.figures(deaths, losses, isFull)
}

// clean removes a run whose coordinator could not, and compares the state of the cluster with the one before the campaign.
func (s *site) clean(f *fleet, baseline []string) {
	s.Helper()
	output, err := s.touchstone("cluster", "cleanup", f.id)
	if err != nil && !strings.Contains(output, "no cluster run") {
		s.Errorf("clean up run %s: %v: %s\n%s", f.id, err, output, f.coordinator.text())
	}
	s.unchanged(baseline)
	if entries, err := os.ReadDir(f.dir); err != nil || len(entries) != 2 {
		s.Errorf("run %s leaves %v in its directory, want plan.yaml and out; %v", f.id, entries, err)
	}
}

// unchanged compares the state of the cluster with an earlier one.
func (s *site) unchanged(baseline []string) {
	s.Helper()
	if s.Failed() {
		return // the wait would hide the first error for minutes
	}
	s.await("the cluster differs from its state before the run", func() string {
		state, err := s.state()
		if err != nil {
			return err.Error()
		}
		if absences, additions := difference(baseline, state); len(absences)+len(additions) > 0 {
			return fmt.Sprintf("gone:\n%s\nleft:\n%s", strings.Join(absences, "\n"), strings.Join(additions, "\n"))
		}
		return ""
	})
}

// resumeLimit is the longest time from the return of a node to its next trial. Only the full campaign judges it: it has the machine for itself.
const resumeLimit = 10 * time.Second

// figures logs the figures of the campaign.
func (s *site) figures(deaths []*kill, losses int, judge bool) {
	s.Helper()
	count := map[string]int{}
	var resumed []time.Duration
	for _, k := range deaths {
		count[k.name]++
		if k.resumed > 0 {
			resumed = append(resumed, k.resumed.Round(time.Millisecond))
		}
		if judge && k.resumed > resumeLimit {
			s.Errorf("%v: the node resumed %v after its return, want at most %v", k, k.resumed, resumeLimit)
		}
	}
	slices.Sort(resumed)
	s.Logf("%d kills: %v; %d committed trials lost; nodes resumed after %v", len(deaths), count, losses, resumed)
}
