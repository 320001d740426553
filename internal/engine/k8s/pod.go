package k8s

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The time limits of the first stages, which take a healthy cluster less than a second each. A cluster that needs more is at fault.
const (
	scheduleLimit = 30 * time.Second
	sandboxLimit  = 30 * time.Second
	// eventLimit is the wait for the event of a start, which may be dropped.
	eventLimit = time.Second
	// outputLimit is the wait for the end of the log of a pod that does not exist any more.
	outputLimit = 10 * time.Second
)

// pod is a pod with one container. It implements engine.Container.
type pod struct {
	watcher  *watcher
	manifest *corev1.Pod
	process  engine.Process

	mu       sync.Mutex
	changed  chan struct{} // closed at each change of the fields below
	marker   engine.Marker // receives the stages
	posted   bool          // the pod may exist
	uid      types.UID     // empty until the API server has named it
	status   *corev1.Pod   // as last seen; nil before
	blurred  bool          // changes may have arrived late
	deleting bool          // by this engine
	gone     bool
	events   map[string]bool // seen, by reason
	fault    error           // the first one
	output   *output         // nil before the start
}

var _ engine.Container = (*pod)(nil)

func newPod(ctx context.Context, w *watcher, manifest *corev1.Pod, process engine.Process) *pod {
	return &pod{
		watcher: w, manifest: manifest, process: process, changed: make(chan struct{}), marker: engine.MarkerOf(ctx), events: map[string]bool{},
	}
}

func (p *pod) ID() string { return p.manifest.Name }

// update changes the pod's fields, and wakes all waits.
func (p *pod) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until done, which is called with the mutex held.
func (p *pod) await(ctx context.Context, done func() (bool, error)) error {
	for {
		p.mu.Lock()
		isDone, err := done()
		change := p.changed
		p.mu.Unlock()
		if isDone || err != nil {
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fail ends all waits of the pod with an error, but for the wait for its end.
func (p *pod) fail(err error) {
	p.update(func() {
		if p.fault == nil {
			p.fault = err
		}
	})
}

// see takes a status of the pod.
func (p *pod) see(o *corev1.Pod) {
	p.update(func() {
		if p.gone || p.uid != "" && o.UID != p.uid || p.uid == "" && !p.watcher.config.isOurs(o) {
			return
		}
		p.uid, p.status = o.UID, o
		p.mark(o)
		if p.deleting || p.fault != nil {
			return
		}
		if fault := faultOf(o); fault != nil {
			p.fault = fault
		} else if o.DeletionTimestamp != nil {
			p.fault = errStolen
		}
	})
}

// errStolen is the fault of a pod that another client of the API server deletes.
var errStolen error = &FaultError{
	Reason: "the pod is deleted by another: a drain, a controller or a user", Advice: "keep others away from the namespace of the run", Transient: true,
}

// mark reports the stages that a status shows. A late status shows none. The event of the sandbox is sharper than its condition.
func (p *pod) mark(o *corev1.Pod) {
	if p.blurred {
		return
	}
	state, config := stateOf(o), p.watcher.config
	if p.deleting || o.DeletionTimestamp != nil {
		if state != nil && state.Terminated != nil && isPrompt(config.KubeletVersion) {
			p.marker.Mark(engine.StageTerminated)
		}
		return
	}
	if hasCondition(o, corev1.PodScheduled) {
		p.marker.Mark(engine.StageScheduled)
	}
	if hasCondition(o, corev1.PodReadyToStartContainers) && !config.Events && isPrompt(config.KubeletVersion) {
		p.marker.Mark(engine.StageSandboxed)
	}
	if state != nil && state.Running != nil {
		p.marker.Mark(engine.StageRunning)
	}
	if hasCondition(o, corev1.PodReady) {
		p.marker.Mark(engine.StageReady)
	}
}

// vanish takes the end of the pod.
func (p *pod) vanish(uid types.UID) {
	p.update(func() {
		if p.gone || uid != p.uid {
			return
		}
		p.gone = true
		if !p.blurred {
			p.marker.Mark(engine.StageDeleted)
		}
		if !p.deleting && p.fault == nil {
			p.fault = errStolen
		}
	})
}

// confirm finds out whether the pod still exists.
func (p *pod) confirm() {
	ctx, cancel := engine.WithUndoLimit(context.Background())
	defer cancel()
	p.mu.Lock()
	uid := p.uid
	p.mu.Unlock()
	if uid == "" { // its creation is under way
		return
	}
	if o, err := p.watcher.find(ctx, p.manifest.Name); err == nil && (o == nil || o.UID != uid) {
		p.vanish(uid)
	}
}

// note takes an event of the pod.
func (p *pod) note(ev *corev1.Event) {
	p.update(func() {
		if p.uid != "" && ev.InvolvedObject.UID != p.uid {
			return
		}
		p.events[ev.Reason] = true
		if real, ok := timeOf(ev); ok && ev.Source.Component == "kubelet" {
			switch {
			case ev.Reason == "Pulled" && !p.deleting: // the first event after the sandbox, also for an image that is there
				p.marker.MarkAt(engine.StageSandboxed, real)
			case ev.Reason == "Created" && !p.deleting:
				p.marker.MarkAt(engine.StagePrepared, real)
			case ev.Reason == "Killing" && p.deleting:
				p.marker.MarkAt(engine.StageStopping, real)
			}
		}
		if fault := eventFault(ev); fault != nil && p.fault == nil && !p.deleting {
			p.fault = fault
		}
	})
}

// adopt makes p the pod of an earlier process of this agent.
func (p *pod) adopt(o *corev1.Pod) {
	p.watcher.track(p)
	p.update(func() { p.posted, p.uid, p.status = true, o.UID, o })
}

// Start posts the pod, and returns when its program runs, or has run to its end.
func (p *pod) Start(ctx context.Context) error {
	p.mu.Lock()
	isPosted := p.posted
	p.posted, p.marker = true, engine.MarkerOf(ctx)
	p.mu.Unlock()
	if isPosted {
		return fmt.Errorf("start pod %q: it was started before", p.ID())
	}
	p.watcher.track(p)
	err := engine.Call(ctx, func() error {
		o, err := p.watcher.pods().Create(ctx, p.manifest, metav1.CreateOptions{})
		if err != nil {
			return p.refused(err)
		}
		engine.Mark(ctx, engine.StageAccepted)
		p.update(func() {
			p.uid = o.UID
			if p.status == nil { // the watch may have been faster, and then knows more
				p.status = o
			}
		})
		return p.awaitRun(ctx)
	})
	if err != nil {
		return fmt.Errorf("start pod %q: %w", p.ID(), err)
	}
	follower := p.follow(ctx)
	p.update(func() { p.output = follower })
	if p.watcher.config.Events {
		limitCtx, cancel := context.WithTimeout(ctx, eventLimit)
		defer cancel()
		_ = p.await(limitCtx, func() (bool, error) { return p.events["Started"], nil })
	}
	return nil
}

// refused is the error of the request that creates the pod. A request that the API server has refused has made none.
func (p *pod) refused(err error) error {
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
		p.update(func() { p.posted = false })
	}
	return explain(err)
}

// awaitRun waits until the program runs or has run.
func (p *pod) awaitRun(ctx context.Context) error {
	for _, step := range []struct {
		limit  time.Duration
		done   func(o *corev1.Pod) bool
		reason string
	}{
		{scheduleLimit, func(o *corev1.Pod) bool { return o.Spec.NodeName != "" }, "the scheduler has not placed the pod after %v: it does not run, or has too much work"},
		{sandboxLimit, hasSandbox, "the pod has no sandbox after %v: the container engine of the node has no handler for the class, or the kubelet does not answer"},
		{0, hasRun, ""},
	} {
		if err := p.awaitStep(ctx, step.limit, step.done, step.reason); err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) awaitStep(ctx context.Context, limit time.Duration, done func(*corev1.Pod) bool, reason string) error {
	if limit > 0 {
		fault := &FaultError{
			Reason: fmt.Sprintf(reason, limit), Advice: "kubectl describe pod shows the events, which the agent reads itself if its role has them", Transient: true,
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fault)
		defer cancel()
	}
	err := p.await(ctx, func() (bool, error) {
		return p.fault == nil && p.status != nil && done(p.status), p.fault
	})
	if err != nil && ctx.Err() != nil {
		if cause := p.watcher.broken(); cause != nil {
			return fmt.Errorf("%w (the watch of pods does not work: %w)", err, cause)
		}
	}
	return err
}

// hasSandbox reports whether the sandbox exists. Kubelets before 1.29 do not report it.
func hasSandbox(o *corev1.Pod) bool {
	return condition(o, corev1.PodReadyToStartContainers) == nil && stateOf(o) != nil || hasCondition(o, corev1.PodReadyToStartContainers) || hasRun(o)
}

// hasRun reports whether the program has been started, and the pod is ready unless the program has ended.
func hasRun(o *corev1.Pod) bool {
	state := stateOf(o)
	return state != nil && (state.Terminated != nil || state.Running != nil && hasCondition(o, corev1.PodReady))
}

// Kill deletes the pod, which is the only way to send a signal by the API of pods: SIGTERM, and SIGKILL after the grace period. SIGKILL shortens
// the grace period to the least one, 1 s.
func (p *pod) Kill(ctx context.Context, signal syscall.Signal) error {
	grace := int64(graceSeconds)
	if signal == syscall.SIGKILL {
		grace = 1
	}
	p.mu.Lock()
	hasEnded := !p.posted || p.gone || p.status != nil && exited(p.status)
	p.mu.Unlock()
	if hasEnded {
		return nil
	}
	if err := engine.Call(ctx, func() error { return p.remove(ctx, &grace) }); err != nil {
		return fmt.Errorf("kill pod %q: %w", p.ID(), err)
	}
	return nil
}

func exited(o *corev1.Pod) bool {
	state := stateOf(o)
	return state != nil && state.Terminated != nil
}

// Wait implements engine.Container.
func (p *pod) Wait(ctx context.Context) (engine.Exit, error) {
	var exit engine.Exit
	err := p.await(ctx, func() (bool, error) {
		switch {
		case p.fault != nil:
			return false, p.fault
		case p.status != nil && exited(p.status):
			exit = exitOf(stateOf(p.status).Terminated)
			return true, nil
		case p.gone:
			return false, errors.New("the pod is deleted, and the kubelet has not reported the exit of its program")
		}
		return false, nil
	})
	if err != nil {
		return engine.Exit{}, fmt.Errorf("wait for pod %q: %w", p.ID(), err)
	}
	return exit, nil
}

// exitOf translates the end of a container. Runtimes report a signal as 128 and its number.
func exitOf(t *corev1.ContainerStateTerminated) engine.Exit {
	const lastSignal = 128 + 64 // the signals of Linux
	switch {
	case t.Signal > 0:
		return engine.Exit{Signal: syscall.Signal(t.Signal)}
	case t.ExitCode > 128 && t.ExitCode <= lastSignal:
		return engine.Exit{Signal: syscall.Signal(t.ExitCode - 128)}
	}
	return engine.Exit{Code: int(t.ExitCode)}
}

// State implements engine.Container, from the last status.
func (p *pod) State(context.Context) (engine.State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		return "", fmt.Errorf("query the state of pod %q: it is deleted", p.ID())
	case p.status != nil && exited(p.status):
		return engine.Stopped, nil
	case p.status != nil && hasRun(p.status):
		return engine.Running, nil
	}
	return engine.Created, nil
}

// Delete deletes the pod, and returns when the API server has removed it and its log has ended.
func (p *pod) Delete(ctx context.Context) error {
	p.mu.Lock()
	isNeeded := p.posted && !p.gone
	p.mu.Unlock()
	if isNeeded {
		err := engine.Call(ctx, func() error {
			if err := p.remove(ctx, nil); err != nil {
				return err
			}
			return p.await(ctx, func() (bool, error) { return p.gone, nil })
		})
		if err != nil {
			return fmt.Errorf("delete pod %q: %w", p.ID(), p.stuck(err))
		}
	}
	p.watcher.untrack(p)
	if err := p.endOutput(ctx); err != nil {
		return fmt.Errorf("read the log of pod %q: %w", p.ID(), err)
	}
	return nil
}

// stuck adds the usual cause to the error of a pod that stays.
func (p *pod) stuck(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status != nil && p.status.DeletionTimestamp != nil {
		return fmt.Errorf("%w: it stays in the state Terminating, because the kubelet of its node does not answer", err)
	}
	return err
}

// remove sends the request to delete the pod, after a check that it is ours.
func (p *pod) remove(ctx context.Context, grace *int64) error {
	p.update(func() { p.deleting, p.marker = true, engine.MarkerOf(ctx) })
	p.mu.Lock()
	uid := p.uid
	p.mu.Unlock()
	if uid == "" { // the answer to the creation was lost
		o, err := p.watcher.find(ctx, p.manifest.Name)
		if err != nil {
			return err
		}
		if o == nil || !p.watcher.config.isOurs(o) {
			p.update(func() { p.gone = true })
			return nil
		}
		p.see(o)
		uid = o.UID
	}
	err := p.watcher.pods().Delete(ctx, p.manifest.Name, metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another pod has its name
		p.vanish(uid)
		return nil
	}
	return explain(err)
}

// tryLimit bounds the first pod of a target, which may pull the image.
const tryLimit = 5 * time.Minute

// try runs one pod of the class until its first line.
func (e *Engine) try(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tryLimit, &FaultError{
		Reason: fmt.Sprintf("the first pod has not run after %v, perhaps because the node pulls the image", tryLimit), Advice: "pull the image on the nodes before the run",
	})
	defer cancel()
	first := &lineSink{line: make(chan string, 1)}
	c, err := e.Create(ctx, engine.Spec{ID: name, Image: e.config.Image, Process: engine.Process{Args: probe.Ready(), Stdout: first}})
	if err != nil {
		return err
	}
	err = c.Start(ctx)
	if err == nil {
		select {
		case line := <-first.line:
			if line != probe.ReadyLine+"\n" {
				err = &FaultError{Reason: fmt.Sprintf("the first line of the program is %q instead of %q", excerpt(line), probe.ReadyLine), Advice: "give the nodes the image of this version of touchstone"}
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return errors.Join(err, engine.Undo(ctx, c))
}

// lineSink passes on the first line of an output, or an empty one at its end.
type lineSink struct {
	text []byte
	line chan string
	once sync.Once
}

func (s *lineSink) Write(text []byte) (int, error) {
	s.text = append(s.text, text...)
	if n := len(s.text); s.text[n-1] == '\n' {
		s.pass()
	}
	return len(text), nil
}

func (s *lineSink) Close() error {
	s.pass()
	return nil
}

func (s *lineSink) pass() { s.once.Do(func() { s.line <- string(s.text) }) }
