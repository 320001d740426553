package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/kube"
)

// pod is the agent's own pod as the API server describes it. The delegate of a privileged agent has no client: its node is measured without pods, also
// while the control plane has lost it.
type pod struct {
	pods  kube.Pods
	name  string
	lease time.Duration
	// sample is a pod for the node that does nothing.
	sample *corev1.Pod

	mu      sync.Mutex
	change  chan struct{} // closed at the next change
	renewal string        // the value of the lease's annotation
	replay  string        // the value of the last request for records, which missing has returned
	asked   string        // the value of the present request
	end     string
	lost    string // the reason why the control plane takes the node for lost; empty while it is there
	doubt   string // the reason to doubt that the node takes pods; empty after it has taken one
	expired bool
}

func newPod(pods kube.Pods, name string, lease time.Duration, sample *corev1.Pod) *pod {
	return &pod{pods: pods, name: name, lease: lease, sample: sample, change: make(chan struct{})}
}

// changes returns a channel that is closed at the next change.
func (p *pod) changes() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.change
}

// update changes the state and wakes all who wait for it.
func (p *pod) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.change)
	p.change = make(chan struct{})
}

func (p *pod) options() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + p.name}
}

// follow observes the pod and its lease until ctx ends.
func (p *pod) follow(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { p.expire(ctx) })
	for ctx.Err() == nil {
		// A refusal may be of the moment, as while a restarted API server reads the role. Without the watch the lease ends the run.
		if err := kube.Follow(ctx, p.pods, p.options(), p); err != nil && ctx.Err() == nil {
			p.suspect(fmt.Sprintf("the API server refuses to list the agent's pod: %v", err))
			_ = kube.Pause(ctx, refusalPause)
		}
	}
	group.Wait()
}

// refusalPause is the pause after a refused request.
const refusalPause = 5 * time.Second

// Seen implements kube.Observer.
func (p *pod) Seen(state *corev1.Pod) {
	p.update(func() {
		a := state.Annotations
		p.renewal, p.asked, p.end = a[cluster.LeaseAnnotation], a[cluster.ReplayAnnotation], a[cluster.EndAnnotation]
		p.lost = cluster.LostNode(state)
		p.doubt = cmp.Or(p.lost, p.doubt)
	})
}

// suspect notes a reason to doubt that the node takes pods.
func (p *pod) suspect(reason string) { p.update(func() { p.doubt = reason }) }

// hear reads wishes until they end.
func (p *pod) hear(wishes io.Reader) {
	for lines := json.NewDecoder(wishes); ; {
		var w wish
		if lines.Decode(&w) != nil {
			return
		}
		p.update(func() { p.renewal, p.asked, p.end = w.Renewal, w.Replay, w.End })
	}
}

// wish returns the present wishes.
func (p *pod) wish() wish {
	p.mu.Lock()
	defer p.mu.Unlock()
	return wish{p.renewal, p.asked, p.end}
}

// awaitRelease returns when the agent may exit.
func (p *pod) awaitRelease(ctx context.Context) error {
	for ctx.Err() == nil {
		change := p.changes()
		if p.released() {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
		}
	}
	return errTerminated
}

// Gone implements kube.Observer.
func (*pod) Gone(string) {}

// Listed implements kube.Observer.
func (*pod) Listed() {}

// Lost implements kube.Observer.
func (p *pod) Lost(err error) { p.suspect(unanswered(err)) }

// expire sets expired when the lease was not renewed in time.
func (p *pod) expire(ctx context.Context) {
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, p.lease)
		last := p.lastRenewal()
		for limit.Err() == nil && p.lastRenewal() == last {
			select {
			case <-p.changes():
			case <-limit.Done():
			}
		}
		isOver := limit.Err() != nil && p.lastRenewal() == last
		cancel()
		if isOver && ctx.Err() == nil {
			p.update(func() { p.expired = true })
			return
		}
	}
}

func (p *pod) lastRenewal() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.renewal
}

// untilEnd returns a context that ends with ctx, by a request of the coordinator, or with the lease.
func (p *pod) untilEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for run.Err() == nil {
			change := p.changes()
			if err := p.ending(); err != nil {
				cancel(err)
				return
			}
			select {
			case <-change:
			case <-ctx.Done():
				cancel(errTerminated)
			case <-run.Done():
			}
		}
	}()
	return run, func() {
		cancel(context.Canceled)
		<-done
	}
}

// ending is the reason why the run must end.
func (p *pod) ending() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.end != "":
		return errStopped
	case p.expired:
		return fmt.Errorf("no coordinator renewed the lease for %v", p.lease)
	}
	return nil
}

// released reports whether the agent may exit: the coordinator has all records, or it does not come back.
func (p *pod) released() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end == cluster.EndCollected || p.expired
}

// missing returns the number of the first record that the coordinator misses, once for each request; 0 without a request.
func (p *pod) missing() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == p.replay {
		return 0
	}
	p.replay = p.asked
	first, _, _ := strings.Cut(p.asked, "/")
	number, err := strconv.Atoi(first)
	if err != nil || number < 1 {
		return 0
	}
	return number
}

// outages waits while the node of a pod or the API server is away. It implements runner.Outages.
type outages struct {
	*pod
	// tell gets the reason of a wait, and an empty one at its end.
	tell func(reason string)
}

// Begin implements runner.Outages. A failure without other evidence makes it try a pod: the watch may be late, and an agent may not read its node.
func (o outages) Begin(ctx context.Context) (explain func(context.Context, error) string) {
	if o.doubts() != "" {
		o.awaitReturn(ctx)
	}
	return func(ctx context.Context, failure error) string {
		reason := o.doubts()
		if fault, ok := errors.AsType[*k8s.FaultError](failure); reason == "" && ok && fault.Outage {
			reason = fault.Reason
		}
		if reason == "" {
			reason, _ = o.place(ctx, promptLimit) // the failure has the reason of a refusal, such as a quota
			reason = cmp.Or(reason, o.doubts())   // a node that has just come back takes the pod late
		}
		if reason != "" {
			o.awaitReturn(ctx)
		}
		return reason
	}
}

// awaitReturn returns when the node takes a pod, or when the run must end.
func (o outages) awaitReturn(ctx context.Context) {
	last := ""
	defer func() {
		if last != "" {
			o.tell("")
		}
	}()
	limit := firstLimit
	for refusals := 0; ctx.Err() == nil && refusals < refusalsAllowed; {
		change := o.changes()
		reason, refusal := o.lostReason(), error(nil)
		if reason == "" {
			reason, refusal = o.place(ctx, limit)
			limit = min(2*limit, placeLimit)
		}
		switch {
		case refusal != nil:
			refusals++
			reason = fmt.Sprintf("the API server refuses to create a pod: %v", refusal)
		case reason == "":
			o.trust()
			return
		default:
			refusals = 0
		}
		if reason != last {
			o.tell(reason)
			last = reason
		}
		pause, cancel := context.WithTimeout(ctx, nodePause)
		select {
		case <-change:
		case <-pause.Done():
		}
		cancel()
	}
	o.trust() // the trial shows the reason of a refusal that stays
}

// nodePause is the longest time between two attempts to place a pod.
const nodePause = 2 * time.Second

// refusalsAllowed is the number of consecutive refusals that an outage can have. An API server that has restarted knows no role for some seconds.
const refusalsAllowed = 15

func (p *pod) lostReason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *pod) doubts() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt
}

// trust ends the doubt about a node that has taken a pod.
func (p *pod) trust() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubt = p.lost
}

// Time limits of an attempt to run a pod. A busy node takes a second: one that needs more than promptLimit after a failure was away. During a wait the
// limit grows from firstLimit to placeLimit: a pod that the container engine has refused waits for the next attempt of the kubelet, and another pod does not.
const (
	promptLimit = 10 * time.Second
	firstLimit  = 5 * time.Second
	placeLimit  = 40 * time.Second
)

// place runs a pod on the node. It returns the reason if the node or the API server is away, or the refusal of the API server. The pod is removed at
// once.
func (p *pod) place(ctx context.Context, limit time.Duration) (reason string, refusal error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	object, err := p.pods.Create(ctx, p.sample, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // which an attempt without an answer made
	case kube.IsTransient(err):
		return unanswered(err), nil
	default:
		return "", err
	}
	defer p.remove(ctx, object)
	for {
		reason, isPlaced := p.placed(ctx)
		switch {
		case isPlaced:
			return "", nil
		case reason != "":
			return reason, nil
		case kube.Pause(ctx, placePause) != nil:
			return "the scheduler, the kubelet or the container engine of the node does not answer", nil
		}
	}
}

// unanswered is the reason of a request without an answer.
func unanswered(err error) string { return fmt.Sprintf("the API server does not answer: %v", err) }

// placePause is the time between two looks at a pod that the scheduler places.
const placePause = 100 * time.Millisecond

// fullNode is the scheduler's reason for a node that is there, and holds no more pods.
const fullNode = "Too many pods"

// placed reports whether the sample runs or has run, or the reason why it has no node. The scheduler alone is no evidence: it trusts a silent kubelet for
// 40 s. A full node is not away.
func (p *pod) placed(ctx context.Context) (reason string, isPlaced bool) {
	list, err := p.pods.List(ctx, metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + p.sample.Name})
	if err != nil || len(list.Items) != 1 {
		return "", false
	}
	status := &list.Items[0].Status
	for _, c := range status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return c.Message, strings.Contains(c.Message, fullNode)
		}
	}
	return "", status.Phase == corev1.PodRunning || status.Phase == corev1.PodSucceeded
}

// remove removes the sample, which nothing needs any more.
func (p *pod) remove(ctx context.Context, object *corev1.Pod) {
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if object != nil && object.UID != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(object.UID))
	}
	_ = kube.Retry(context.WithoutCancel(ctx), nil, func(ctx context.Context) error { return p.pods.Delete(ctx, p.sample.Name, options) })
}
