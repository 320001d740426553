package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// Store records the runs of the nodes. *store.Store is one.
type Store interface {
	Create(ctx context.Context, run result.Run) error
	Resume(ctx context.Context, runID string) error
	AppendTrials(ctx context.Context, runID string, trials []result.Trial) error
	Stopping(ctx context.Context, runID string, rule *result.Stopping) error
	Finish(ctx context.Context, runID string, state result.State, end time.Time, caveats []string) error
	Recorded(ctx context.Context) ([]store.Recorded, error)
	Outline(ctx context.Context, ref string) (result.Run, error)
	Run(ctx context.Context, ref string) (result.Run, error)
}

// Observer receives the events of a cluster run. Its methods are called from several goroutines.
type Observer interface {
	// Changed reports the state of a node, and each change of it.
	Changed(node string, state State)
	// Trial reports a trial that is new in the results file.
	Trial(node string, trial result.Trial)
	// Note reports a fact that the user should know. The node is empty for the whole run.
	Note(node, text string)
}

// State is the state of a node in a cluster run.
type State struct {
	Phase Phase `json:"phase"`
	// Text is the trial under way, or the reason of the phase.
	Text string `json:"text,omitempty"`
	// Done and Total are numbers of trials, Left is the estimated time to the end of the node's run; 0 if it is not known.
	Done  int           `json:"done,omitempty"`
	Total int           `json:"total,omitempty"`
	Left  time.Duration `json:"left_ns,omitempty"`
}

// Phase is the phase of a node in a cluster run.
type Phase string

// The phases of a node. The last three are final.
const (
	Waiting   Phase = "waiting"   // for its turn
	Starting  Phase = "starting"  // the agent's pod exists and has not started
	Measuring Phase = "measuring" // the agent executes the plan
	Lost      Phase = "lost"      // the node, its agent or the API server is away; the run goes on when it comes back
	Complete  Phase = "complete"
	Ended     Phase = "ended"  // before the plan was complete
	Failed    Phase = "failed" // without a run
)

// Final reports whether a node is finished.
func (p Phase) Final() bool { return p == Complete || p == Ended || p == Failed }

// Coordinator executes a cluster run.
type Coordinator struct {
	Client   *kube.Client
	Store    Store
	Fleet    Fleet
	Observer Observer
	// Now returns the time of day, for the ends of runs that agents do not record.
	Now func() time.Time

	roster *roster
	// turns has a place for each node that measures at once, requests for each request that changes something, and readers for each log that is read.
	turns, requests, readers places
	// follows is set if each log is read to the end of its agent. Otherwise the logs are read in turns.
	follows bool
	// releases has the pods of agents that may exit. It has a place for each node.
	releases chan string
	// runs has the IDs of the runs that the results file had before this collection.
	runs map[string]bool
}

// The largest numbers of requests and of logs at the same time. A log that is read costs memory for its connection, its buffers and its trials, and the
// trials of all logs share a transaction. A further request at the same time costs memory on both sides, and saves no time.
const (
	maxRequests = 16
	maxReaders  = 32
	// maxFollowed is the largest number of nodes that measure at once and whose logs are followed.
	maxFollowed = 64
)

// places bounds how much is done at the same time. Those who wait get a place in the order of their arrival.
type places chan struct{}

// take waits for a place. It reports false if ctx ends first.
func (p places) take(ctx context.Context) bool {
	select {
	case p <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave frees a place.
func (p places) leave() { <-p }

// Outcome is the result of a node.
type Outcome struct {
	Node  string
	RunID string
	State
	// Recorded is set if the results file has the run of the node.
	Recorded bool
	// Placed is set if the node may have had an agent.
	Placed bool
}

// Create creates the objects of the fleet, but no agent. After an error, hasObjects reports whether some of them may exist: Clean removes them. report
// receives the errors of requests that are repeated; it may be nil.
func (f *Fleet) Create(ctx context.Context, client *kube.Client, report func(error)) (hasObjects bool, err error) {
	for _, object := range f.Base() {
		attempts := 0
		err := kube.Retry(ctx, report, func(ctx context.Context) error {
			attempts++
			return create(ctx, client, object)
		})
		if err == nil {
			hasObjects = true
			continue
		}
		if _, isNamespace := object.(*corev1.Namespace); isNamespace && apierrors.IsForbidden(err) {
			err = &kube.Error{Err: err, Advice: "name an existing namespace with --namespace; touchstone cluster check lists the rights that are needed in it"}
		}
		isRefusal := attempts == 1 && !kube.IsTransient(err) && ctx.Err() == nil
		return hasObjects || !isRefusal, client.Explain(err)
	}
	return hasObjects, nil
}

func (c *Coordinator) note(err error) { c.Observer.Note("", err.Error()) }

// create creates an object. An object that exists already is an error, unless an earlier attempt of this run has made it.
func create(ctx context.Context, client *kube.Client, object any) error {
	var err error
	var meta metav1.ObjectMeta
	options := metav1.CreateOptions{}
	kind := ""
	switch o := object.(type) {
	case *corev1.Namespace:
		kind, meta = "namespace", o.ObjectMeta
		_, err = client.Namespaces().Create(ctx, o, options)
	case *corev1.ServiceAccount:
		kind, meta = "service account", o.ObjectMeta
		_, err = client.ServiceAccounts(o.Namespace).Create(ctx, o, options)
	case *rbacv1.Role:
		kind, meta = "role", o.ObjectMeta
		_, err = client.Roles(o.Namespace).Create(ctx, o, options)
	case *rbacv1.RoleBinding:
		kind, meta = "role binding", o.ObjectMeta
		_, err = client.RoleBindings(o.Namespace).Create(ctx, o, options)
	case *corev1.ConfigMap:
		kind, meta = "config map", o.ObjectMeta
		_, err = client.ConfigMaps(o.Namespace).Create(ctx, o, options)
	case *corev1.Pod:
		kind, meta = "pod", o.ObjectMeta
		_, err = client.Pods(o.Namespace).Create(ctx, o, options)
	default:
		return fmt.Errorf("create a %T: no fleet has one", object)
	}
	// A request that failed may have created the object. Its name has the ID of this run.
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create %s %q: %w", kind, meta.Name, err)
}

// The interval between renewals of a lease is this part of it.
const renewals = 4

// Run starts the agents as their turn comes, collects their records, and returns when each node has ended. It takes over agents that exist already. When ctx
// ends, or another program has asked an agent to stop, agents end the trial under way, which does not count, no other node begins, and Run collects the
// rest. An error of the results file ends it; the agents go on. Agents whose records are recorded are released, the last ones perhaps only by Release.
func (c *Coordinator) Run(ctx context.Context) ([]Outcome, error) {
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	pods := c.Client.Pods(c.Fleet.Namespace)
	var services sync.WaitGroup
	services.Go(func() {
		if err := kube.Follow(work, pods, metav1.ListOptions{LabelSelector: c.Fleet.selector()}, c.roster); err != nil && work.Err() == nil {
			abort(fmt.Errorf("watch the agents: %w", c.Client.Explain(err)))
		}
	})
	services.Go(func() { c.renew(work) })
	services.Go(func() { c.stopAgents(work) })
	services.Go(func() { c.releaseInTurn(work) })
	defer services.Wait()
	defer abort(nil) // before the wait
	select {
	case <-c.roster.listed:
	case <-work.Done():
		return nil, context.Cause(work)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer context.AfterFunc(ctx, c.roster.stop)()
	outcomes := make([]Outcome, len(c.Fleet.Nodes))
	var nodes sync.WaitGroup
	for i, node := range c.Fleet.Nodes {
		n := &collector{Coordinator: c, node: node, runID: c.Fleet.RunID(node.Name), pod: c.Fleet.AgentName(node.Name), told: map[string]bool{}}
		nodes.Go(func() {
			err := n.run(work)
			if err != nil {
				abort(fmt.Errorf("node %s: %w", node.Name, err))
			}
			outcomes[i] = Outcome{Node: node.Name, RunID: n.runID, State: n.state, Recorded: n.begun != nil, Placed: n.placed || n.begun != nil}
		})
	}
	nodes.Wait()
	if err := context.Cause(work); err != nil {
		return outcomes, err
	}
	return outcomes, nil
}

// prepare sets the state of a collection at its beginning.
func (c *Coordinator) prepare(ctx context.Context) error {
	c.roster = newRoster(c.note)
	parallel := c.Fleet.AtOnce()
	c.turns, c.requests = make(places, parallel), make(places, maxRequests)
	c.follows, c.readers = parallel <= maxFollowed, make(places, maxReaders)
	if c.follows {
		c.readers = make(places, maxFollowed+maxReaders) // agents that have ended do not wait for others
	}
	c.releases = make(chan string, len(c.Fleet.Nodes))
	runs, err := c.Store.Recorded(ctx)
	c.runs = map[string]bool{}
	for _, r := range runs {
		c.runs[r.ID] = true
	}
	return err
}

// releaseInTurn releases agents until ctx ends. A release waits like the reading of a log, so that records come first.
func (c *Coordinator) releaseInTurn(ctx context.Context) {
	for {
		select {
		case pod := <-c.releases:
			if err := c.releaseNext(ctx, pod); ctx.Err() != nil {
				c.releases <- pod
			} else if err != nil {
				c.note(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *Coordinator) releaseNext(ctx context.Context, pod string) error {
	if !c.readers.take(ctx) {
		return context.Cause(ctx)
	}
	defer c.readers.leave()
	return c.annotate(ctx, pod, EndAnnotation, EndCollected)
}

// Release releases the agents that Run has not released before its end. A removal of the objects of the run makes it unnecessary.
func (c *Coordinator) Release(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(maxRequests)
	for len(c.releases) > 0 {
		pod := <-c.releases
		group.Go(func() error { return c.annotate(ctx, pod, EndAnnotation, EndCollected) })
	}
	return group.Wait()
}

// selector selects the agents of a fleet.
func (f *Fleet) selector() string {
	return fmt.Sprintf("%s=%s,%s=%s", engine.Label, f.ID, RoleLabel, RoleAgent)
}

// stopAgents waits for the request that the run ends, and ends all agents and the trials under way.
func (c *Coordinator) stopAgents(ctx context.Context) {
	select {
	case <-c.roster.stopped:
	case <-ctx.Done():
		return
	}
	for _, name := range c.roster.working() {
		if err := c.annotate(ctx, name, EndAnnotation, EndStop); err != nil {
			c.note(err)
		}
	}
	c.roster.wakeAll() // collectors may wait for a change of their pods
}

func (c *Coordinator) annotate(ctx context.Context, pod, key, value string) error {
	return c.Fleet.annotate(ctx, c.Client, c.request, pod, key, value)
}

// request is kube.Retry, with a place for each attempt.
func (c *Coordinator) request(ctx context.Context, report func(error), request func(context.Context) error) error {
	return kube.Retry(ctx, report, func(ctx context.Context) error {
		if !c.requests.take(ctx) {
			return context.Cause(ctx)
		}
		defer c.requests.leave()
		return request(ctx)
	})
}

// retrier is kube.Retry, or like it.
type retrier func(ctx context.Context, report func(error), request func(context.Context) error) error

// annotate sets an annotation of an agent's pod. A pod that is gone is no error.
func (f *Fleet) annotate(ctx context.Context, client *kube.Client, retry retrier, pod, key, value string) error {
	patch := marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	err := retry(ctx, nil, func(ctx context.Context) error {
		_, err := client.Pods(f.Namespace).Patch(ctx, pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("set %s of pod %q: %w", key, pod, client.Explain(err))
}

// renew renews the leases of all agents until ctx ends, and first at once.
func (c *Coordinator) renew(ctx context.Context) {
	for count := 0; ctx.Err() == nil; count++ {
		value := fmt.Sprintf("%s/%d", c.Now().UTC().Format(time.RFC3339), count)
		c.renewAll(ctx, value)
		_ = kube.Pause(ctx, c.Fleet.Lease/renewals)
	}
}

// renewAll renews the lease of each agent.
func (c *Coordinator) renewAll(ctx context.Context, value string) {
	var group errgroup.Group
	group.SetLimit(maxRequests / 2) // the other requests go on
	for _, name := range c.roster.names() {
		if pod, _ := c.roster.pod(name); pod == nil || ended(pod) {
			continue
		}
		group.Go(func() error {
			if err := c.annotate(ctx, name, LeaseAnnotation, value); err != nil && ctx.Err() == nil {
				c.note(err)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are noted
}

// ended reports whether all containers of a pod have ended for good.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
