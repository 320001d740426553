// Package k8s measures pods of a Kubernetes cluster, from an agent that runs in a pod on the measured node.
//
// A target is k8s/CLASS, the RuntimeClass CLASS, or k8s, the default class of the cluster. A container is a pod with one container. The engine
// pins it to the node of the agent by affinity, so that the scheduler is a part of the path, and so that all times are of one machine: the
// monotonic clock of the agent, and the real-time clock of the node for the program's lines. The engine keeps no time; it reports stages
// (engine.Mark).
//
// A pod cannot be created without a start. So Create makes nothing, Start posts the pod and returns when its program runs or has run, and
// the target lacks engine.DirectCalls. The output of the program is the log of the pod, which is followed from then on.
//
// All pods pass the restricted level of Pod Security, mount no token and no volume that the Spec does not name, and belong to the agent's pod.
// The engine needs the rights to create, delete, list and watch pods and to read their logs, in its own namespace. With the right to list and
// watch events it knows the reasons of a failed sandbox at once, and one stage more.
//
// Rejected: nodeName in the pod, which bypasses the scheduler and hides why a node takes no pod; a connection from the program to the agent,
// which costs 4 ms in the network stack of gVisor and fails under a NetworkPolicy; the state "running" as the time of the first instruction,
// which lags by 28 ms for runc and by 80 ms for gVisor.
package k8s

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Config describes the place of the measured pods.
type Config struct {
	Client Client
	// Namespace is the agent's namespace, Node the name of its node. All pods are there.
	Namespace, Node string
	// Fleet is the ID of the cluster run. It is the label of all pods, and the names of all pods begin with engine.Prefix and it.
	Fleet string
	// Image holds the probe, and the programs of the workload image too if Programs is set. PullSecrets are the names of secrets for it.
	Image       string
	Programs    bool
	PullSecrets []string
	// Owner is the agent's pod. The cluster removes all measured pods with it.
	Owner metav1.OwnerReference
	// Labels are further labels of all pods.
	Labels map[string]string
	// Tolerations let the pods on a node that only the agent tolerates.
	Tolerations []corev1.Toleration
	// KubeletVersion is the version of the node's kubelet, such as v1.37.2.
	KubeletVersion string
	// Handlers are the handlers of RuntimeClasses, by class, as far as they are known.
	Handlers map[string]string
	// Events is set if the agent may list and watch events.
	Events bool
}

// The labels of measured pods, apart from engine.Label.
const (
	NodeLabel  = "touchstone.node"
	ClassLabel = "touchstone.class"
)

// Client makes the requests of the engine. *kube.Client is one.
type Client interface {
	Pods(namespace string) kube.Pods
	Events(namespace string) kube.Events
}

// Driver opens the RuntimeClasses of a cluster. Its targets share the watch of pods.
type Driver struct {
	config Config

	mu      sync.Mutex
	watcher *watcher // nil while no target is open
	users   int      // of the watcher
	tests   atomic.Int64
}

var _ engine.Driver = (*Driver)(nil)

// NewDriver returns a driver for the pods of one agent.
func NewDriver(config Config) engine.Driver { return &Driver{config: config} }

// Describe implements engine.Driver.
func (*Driver) Describe() engine.Description {
	return engine.Description{Name: target.Kubernetes, Kind: engine.FullEngine}
}

// Candidates is empty: the plan names the classes, and an agent has no right to list them.
func (*Driver) Candidates(context.Context, engine.Session) []engine.Candidate { return nil }

// Open opens a target after one pod of its class has run on the node.
func (d *Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	e := &Engine{Missing: missing(), driver: d, target: t, config: d.config}
	refuse := func(reason, advice string) error {
		return &engine.OpenError{Info: e.Info(), Err: &engine.UnsupportedError{What: t.String(), Reason: reason, Advice: advice}}
	}
	switch {
	case len(t.Options) > 0:
		return nil, refuse("a RuntimeClass has no options in a target", "configure the handler on the nodes, and give it a class of its own")
	case s.Seccomp == engine.Unconfined:
		return nil, refuse("the restricted level of Pod Security needs a seccomp filter", "leave out seccomp in the plan")
	}
	var err error
	if e.watcher, err = d.acquire(ctx); err != nil {
		return nil, openError(ctx, e, err)
	}
	if err := e.try(ctx, fmt.Sprintf("%s%s-open-%d", engine.Prefix, s.RunID, d.tests.Add(1))); err != nil {
		_ = e.Close()
		return nil, openError(ctx, e, err)
	}
	return e, nil
}

// openError is the error of a target that does not work now.
func openError(ctx context.Context, e *Engine, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var fault *FaultError
	if !errors.As(err, &fault) {
		fault = &FaultError{Reason: err.Error(), Transient: true}
	}
	unsupported := &engine.UnsupportedError{What: e.target.String(), Reason: fault.Reason, Advice: fault.Advice}
	return &engine.OpenError{Info: e.Info(), Transient: fault.Transient, Err: unsupported}
}

// acquire returns the watcher of pods for one more target. The first call removes the pods that an earlier process of this agent has left.
func (d *Driver) acquire(ctx context.Context) (*watcher, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watcher == nil {
		w, err := newWatcher(ctx, d.config)
		if err != nil {
			return nil, err
		}
		if err := w.sweep(ctx); err != nil {
			w.close()
			return nil, err
		}
		d.watcher = w
	}
	d.users++
	return d.watcher, nil
}

// release ends the use of the watcher by one target.
func (d *Driver) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users--; d.users == 0 {
		d.watcher.close()
		d.watcher = nil
	}
}

// promptKubelet is the first minor version of Kubernetes 1 whose kubelet reports a sandbox at once, and lists a pod right after its change.
const promptKubelet = 36

// isPrompt reports whether a kubelet reports the states of pods at once. It is false for an unknown version.
func isPrompt(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || major == 1 && minor >= promptKubelet
}
