package reporttest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Fleet is the shape of a made-up cluster run: a run of one plan on each node. Its runs are made one at a time, because a thousand of them take much memory.
type Fleet struct {
	ID            string
	Nodes, Blocks int
	// Classes are further classes beside the baseline and FleetClasses.
	Classes int
	// Healthy is set for a fleet without odd nodes, lost trials, missing handlers and differences between kinds.
	Healthy bool
}

// The classes of a made-up fleet. The first one is the baseline.
const (
	fleetRunc   = "k8s/runc"
	fleetCrun   = "k8s/crun"
	FleetGvisor = "k8s/gvisor"
	FleetKata   = "k8s/kata"
)

// The nodes of [Cluster] with a fault.
const (
	// SickNode starts pods of gVisor slowly, SlowNode starts all pods slowly.
	SickNode, SlowNode = 4, 6
	// LossyNode loses trials of gVisor, and DeadNode has no trials.
	LossyNode, DeadNode = 9, 13
)

// FleetPlan is the plan of a made-up fleet.
const FleetPlan = "version: 1\nname: pods\nblocks: 12\n"

// Cluster is a made-up fleet of two kinds of nodes with most difficulties of a fleet: a node that is odd on one class, a node that is slow on all classes, a kernel
// that makes system calls of gVisor slow, a class that one kind of nodes lacks, lost trials, and a node without trials.
func Cluster() []result.Run {
	return Fleet{ID: "01K9Z0TOUCHSTONE0FLEET0000", Nodes: 14, Blocks: 12}.Runs()
}

// Runs are all runs of the fleet.
func (f Fleet) Runs() []result.Run {
	runs := make([]result.Run, f.Nodes)
	for i := range runs {
		runs[i] = f.Run(i)
	}
	return runs
}

// hasNewKernel is the half of each kind with a current kernel.
func (f Fleet) hasNewKernel(node int) bool { return node%2 == 0 }

// isArm is the smaller kind of nodes.
func (f Fleet) isArm(node int) bool { return node >= (f.Nodes+2)/2 }

// Run is the run of a node.
func (f Fleet) Run(node int) result.Run {
	s := &sampler{rand: rand.New(rand.NewPCG(20261129, uint64(node)))}
	load("run.json", &s.run)
	load("fleet.json", &s.run)
	r := &s.run
	r.ID, r.Plan, r.Seed = fmt.Sprintf("%s-%04d", f.ID, node), FleetPlan, uint64(node+1)
	r.Started = r.Started.Add(time.Duration(node) * time.Second)
	s.at, r.Ended = r.Started, r.Started.Add(5*time.Minute)
	h := &r.Host
	h.Hostname, h.Kernel = fmt.Sprintf("worker-%02d", node), "5.15.0-91-generic"
	h.Node = &result.Node{
		Fleet: f.ID, Name: h.Hostname, Kind: "m5.large", Kubelet: "v1.37.2", Engine: "containerd://2.4.2",
		Labels: map[string]string{"topology.kubernetes.io/zone": "eu-1" + string(rune('a'+node%3))},
	}
	if f.hasNewKernel(node) {
		h.Kernel = "6.8.0-31-generic"
	}
	if f.isArm(node) {
		h.Node.Kind, h.Arch, h.CPU = "c7g.large", "arm64", "Neoverse-V1"
	}
	for i := range f.Classes {
		r.Targets = append(r.Targets, result.Target{Name: fmt.Sprintf("k8s/class-%d", i), Kind: result.KindEngine, Runtime: fmt.Sprintf("class-%d", i)})
	}
	if !f.Healthy && f.isArm(node) {
		r.Targets[3].Unavailable = "node worker has no handler kata; install it there, or leave the node out of the plan"
	}
	if !f.Healthy && node == DeadNode {
		r.State = result.Killed
		return *r
	}
	for block := -1; block < f.Blocks; block++ {
		f.block(s, node, block)
	}
	return *r
}

// block adds the trials of a block on a node.
func (f Fleet) block(s *sampler, node, block int) {
	speed := map[string]float64{fleetRunc: 1, fleetCrun: 0.96, FleetGvisor: 1.2, FleetKata: 2.4}
	costs := map[string]float64{}
	spread := rand.New(rand.NewPCG(7, uint64(node)))
	for _, t := range s.run.Targets {
		costs[t.Name] = cmp.Or(speed[t.Name], 1.1) * (1 + 0.01*spread.NormFloat64())
	}
	for _, class := range s.order() {
		cost := costs[class]
		calls := 1.5e6 / cost
		if !f.Healthy {
			switch {
			case class == FleetGvisor && node == SickNode:
				cost *= 1.6
			case class == fleetCrun && f.isArm(node):
				cost *= 0.85
			}
			if node == SlowNode {
				cost *= 1.9
			}
			if class == FleetGvisor && !f.hasNewKernel(node) {
				calls *= 0.6
			}
		}
		t := s.trial("pods.start", "", class, block)
		if !f.Healthy && class == FleetGvisor && node == LossyNode && block%4 == 3 {
			t.Status, t.Reason = result.Timeout, "the pod did not start within 30 s"
		} else {
			request, scheduled, sandbox, program := s.noisy(0.004, 0.05), s.noisy(0.006, 0.05), s.noisy(0.21*cost, 0.03), s.noisy(0.09*cost, 0.03)
			record(t, "Start", request+scheduled+sandbox+program)
			for i, v := range []float64{request, scheduled, sandbox, program} {
				record(t, []string{"StageAccepted", "StageScheduled", "StageSandbox", "StageProgram"}[i], v)
			}
		}
		record(s.trial("pods.delete", "", class, block), "Delete", s.noisy(0.11*cost, 0.04))
		record(s.trial("performance.syscall.calls", "", class, block), "CallsPerSecond", s.noisy(calls, 0.02))
	}
}
