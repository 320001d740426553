package execution

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/host/check"
	"github.com/touchstone-bench/touchstone/internal/host/supply"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// podEnvironment returns the environment of an agent: pods on its node, on the node's clock.
func podEnvironment(runID, folder string, p plan.Plan, config k8s.Config) (environment, error) {
	isRefused := func(t plan.Pattern) bool {
		_, isExact := t.Exact()
		return !isPod(t) || !isExact
	}
	if len(p.Targets) == 0 || slices.ContainsFunc(p.Targets, isRefused) {
		return environment{}, &UsageError{fmt.Errorf("an agent in a cluster measures pods: write targets such as %s/CLASS, or %s for the default class", target.Kubernetes, target.Kubernetes)}
	}
	if p.Pinning.Workload != "" || p.Pinning.Engines != "" || p.Pinning.Touchstone != "" {
		return environment{}, &UsageError{errors.New("pinning does not work in a cluster: the kubelet chooses the CPUs of a pod; leave it out")}
	}
	scratch, err := filepath.Abs(filepath.Join(folder, ".pods-"+runID))
	return environment{drivers: engines.Drivers{k8s.NewDriver(config)}, clock: meter.System{}, scratch: scratch}, err
}

// facts are the facts of the machine. In a pod, the host's name is the pod's, so the name of the node takes its place. The container of an agent that
// measures pods holds no target, and is no fact of the node.
func (e *Execution) facts() result.Host {
	facts := host.Facts("/")
	if e.Node != nil {
		facts.Node, facts.Hostname = e.Node, e.Node.Name
	}
	if e.Pods != nil {
		facts.Container = ""
		facts.Warnings = check.Warnings("/", facts)
	}
	return facts
}

// podSupply reads the resources of the node for pods. The agent's own cgroup, CPUs and directories do not limit other pods.
func podSupply() guard.Supply {
	s := guard.Supply{
		Memory: known(func() (guard.Amount, error) { return amount(supply.Memory("/")) }),
		Tasks:  known(func() (guard.Amount, error) { return amount(supply.Tasks("/")) }),
	}
	if online, err := cpuset.Online("/"); err == nil {
		s.CPUs = len(online)
	}
	return s
}

// noRegistry is the registry of an agent: the nodes reach none of this program's.
type noRegistry struct{}

func (noRegistry) lack() error {
	return &engine.UnsupportedError{What: "an image of the run's own", Reason: "the nodes of a cluster cannot pull from an agent", Advice: "measure it on a machine"}
}

func (r noRegistry) Fresh(context.Context, int64) (string, error) { return "", r.lack() }

func (r noRegistry) Minimal(context.Context, string, string) (string, []byte, error) {
	return "", nil, r.lack()
}

func (noRegistry) Served(string) (transfer, size int64) { return 0, 0 }

func (noRegistry) Forget(string) {}

// PodImage is the fact of the image of all pods. A run does without the digest if the API server refuses it.
func PodImage(ctx context.Context, pods *k8s.Config) (result.Image, error) {
	image := result.Image{Name: pods.Image}
	var err error
	if image.Digest, err = pods.ImageDigest(ctx); err != nil {
		image.Unavailable = result.ConditionText(fmt.Sprintf("its digest is not known: %v", err))
	}
	return image, ctx.Err()
}

// podImages are the images of benchmarks in a cluster: one image for all, which the nodes have.
func (e *Execution) podImages(images []bench.Image) map[bench.Image]runner.Image {
	files := map[bench.Image]runner.Image{bench.ProbeImage: {Ref: e.Pods.Image}}
	for _, name := range images {
		switch {
		case name != bench.WorkloadImage:
			files[name] = runner.Image{Err: &engine.UnsupportedError{
				What: "image " + string(name), Reason: "a file of the user's is not on the nodes", Advice: "measure it on a machine",
			}}
		case !e.Pods.Programs:
			files[name] = runner.Image{Err: &engine.UnsupportedError{
				What: "image " + string(name), Reason: "the image of this cluster run holds only the probe", Advice: "make it with touchstone cluster image, without --probe-only",
			}}
		default:
			files[name] = runner.Image{Ref: e.Pods.Image}
		}
	}
	return files
}
