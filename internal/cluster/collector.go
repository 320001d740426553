package cluster

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Limits of a collector.
const (
	// startLimit is the longest time from the creation of an agent's pod to the start of its program. A pull of the image is part of it.
	startLimit = 10 * time.Minute
	// pullLimit is the longest time without the agent's image, from the first pull that failed. An overloaded registry, or an image that is loaded late,
	// needs another attempt. A kubelet makes its first five within 150 s, the sixth after 310 s, and all later ones 300 s apart.
	pullLimit = 3 * time.Minute
	// silenceLimit is the longest time without a record in a log that is followed. Then the log is opened again, because the connection may be dead.
	// Records are taken once, so this costs only the time to read the log.
	silenceLimit = 2 * time.Minute
	// reopenPause is the least pause before a log is read again. Logs that are read in turns are read one in readInterval: an API server needs 10 ms for one.
	reopenPause  = time.Second
	readInterval = 30 * time.Millisecond
	// readLimit is the longest silence of a log that is not followed: others wait, and a kubelet may not answer.
	readLimit = 20 * time.Second
	// restLimit is the longest silence of the log of a program that has ended. The rest of its records may be on the way.
	restLimit = 2 * time.Second
	// readMargin is the time before the last reading that the next one repeats. The kubelet takes the time from the clock that stamps the lines, and the
	// request needs some time to get there.
	readMargin = 10 * time.Second
	// A node is given up after more than maxLosses lost pods, or after maxStarts starts of a program that writes no record.
	maxLosses = 5
	maxStarts = 3
	// maxEarlier is the largest size of the earlier part of a run, for the successor of a lost agent. A config map holds 1 MiB.
	maxEarlier = 900 << 10
)

// collector collects the records of one node.
type collector struct {
	*Coordinator
	node  Node
	runID string
	pod   string // the name of the agent's pod

	state    State
	sequence record.Sequence
	begun    *result.Run  // the run in the results file, without trials; nil before its first record
	recorded map[int]bool // the trials in the results file, by Seq
	complete bool         // the results file has the whole run from an earlier collection
	failure  string       // the reason why the agent ends without a run
	told     map[string]bool
	batch    []result.Trial // trials that are not recorded yet
	readTime time.Time      // the start of the last reading in turns; zero if it brought nothing, so that the next one reads the whole log
	place    int            // the number of the last record of this stream: a log that is read again begins with moments of the past
	asked    int            // the number of the last request for records
	hasPod   bool           // the agent's pod was there
	losses   int
	loss     string // the reason of the last loss
	last     string // the last line of the agent that is no record
	placed   bool   // the agent's pod exists, or has or may have existed
}

// run starts the agent in its turn, and collects its records until the node has ended. Only an error of the results file is an error of the whole
// run.
func (n *collector) run(ctx context.Context) error {
	n.change(State{Phase: Waiting})
	// An agent that exists already has its turn.
	if pod, _ := n.roster.pod(n.pod); pod == nil || !ended(pod) {
		if !n.turns.take(ctx) {
			return nil
		}
		defer n.turns.leave()
	}
	for ctx.Err() == nil {
		pod, change := n.roster.pod(n.pod)
		n.placed = n.placed || pod != nil
		var done bool
		var err error
		switch {
		case pod == nil && n.roster.isStopped():
			return n.giveUp(ctx, "the run was stopped while the node had no agent")
		case pod == nil && n.hasPod:
			done, err = n.lose(ctx)
		case pod == nil:
			if err := n.create(ctx); err != nil {
				n.placed = n.placed || !apierrors.IsForbidden(err)
				return n.giveUp(ctx, err.Error())
			}
			n.hasPod = true
		case !started(pod):
			n.hasPod = true
			done, err = n.awaitStart(ctx)
		default:
			n.hasPod = true
			done, err = n.collect(ctx, pod, change)
		}
		if done || err != nil {
			return err
		}
	}
	return nil
}

// awaitStart waits for the start of the agent's program. It reports whether the node has ended without one.
func (n *collector) awaitStart(ctx context.Context) (done bool, err error) {
	limit, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var pullTime time.Time // the time of the first failed pull; zero without one
	for ctx.Err() == nil {
		pod, change := n.roster.pod(n.pod)
		if pod == nil || started(pod) {
			return false, nil
		}
		reason, final := startProblem(pod)
		n.change(State{Phase: Starting, Text: reason})
		pullRest := startLimit
		switch {
		case !strings.HasPrefix(reason, imageProblem):
			pullTime = time.Time{}
		case pullTime.IsZero():
			pullTime = n.Now()
			fallthrough
		default:
			pullRest = pullLimit - n.Now().Sub(pullTime)
		}
		switch {
		case n.roster.isStopped():
			return true, n.giveUp(ctx, "it was stopped before its agent started")
		case final:
			return true, n.giveUp(ctx, reason)
		case pullRest <= 0:
			return true, n.giveUp(ctx, fmt.Sprintf("no pull succeeded in %v: %s", pullLimit, reason))
		case limit.Err() != nil:
			hint := "no reason is known; kubectl describe pod " + pod.Name + " shows the events"
			return true, n.giveUp(ctx, fmt.Sprintf("its agent did not start in %v: %s", startLimit, cmp.Or(reason, hint)))
		}
		pause, stop := context.WithTimeout(limit, pullRest)
		await(pause, change)
		stop()
	}
	return false, nil
}

// await waits for a change, or for the end of ctx.
func await(ctx context.Context, change <-chan struct{}) {
	select {
	case <-change:
	case <-ctx.Done():
	}
}

// change reports a state of the node.
func (n *collector) change(s State) {
	if s != n.state {
		n.state = s
		n.Observer.Changed(n.node.Name, s)
	}
}

// create creates the agent's pod. If an earlier agent has begun the run, the pod gets what was collected of it.
func (n *collector) create(ctx context.Context) error {
	if err := n.keepEarlier(ctx); err != nil {
		return err
	}
	n.change(State{Phase: Starting})
	pod := n.Fleet.Agent(n.node)
	err := n.request(ctx, func(err error) { n.Observer.Note(n.node.Name, err.Error()) }, func(ctx context.Context) error {
		object, err := n.Client.Pods(n.Fleet.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			object, err = n.Client.Pods(n.Fleet.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		}
		if err == nil {
			n.roster.add(object)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create the agent's pod: %w", n.Client.Explain(err))
	}
	if n.roster.isStopped() { // meanwhile
		return n.annotate(ctx, n.pod, EndAnnotation, EndStop)
	}
	return nil
}

// keepEarlier writes the collected part of a run to the config map for the next agent.
func (n *collector) keepEarlier(ctx context.Context) error {
	if n.begun == nil && !n.runs[n.runID] {
		return nil
	}
	run, err := n.Store.Run(ctx, n.runID)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w := gzip.NewWriter(&archive)
	if err := errors.Join(json.NewEncoder(w).Encode(run), w.Close()); err != nil {
		return err
	}
	if archive.Len() > maxEarlier {
		return fmt.Errorf("its agent was lost, and the %d collected trials are too large for the next agent (%d bytes, the limit is %d): start a new run for the node",
			len(run.Trials), archive.Len(), maxEarlier)
	}
	part := &corev1.ConfigMap{ObjectMeta: n.Fleet.meta(n.Fleet.earlierName(n.node.Name)), BinaryData: map[string][]byte{EarlierFile: archive.Bytes()}}
	maps := n.Client.ConfigMaps(n.Fleet.Namespace)
	err = kube.Retry(ctx, nil, func(ctx context.Context) error {
		_, err := maps.Create(ctx, part, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = maps.Update(ctx, part, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the collected trials for the next agent: %w", n.Client.Explain(err))
	}
	return nil
}

// collect reads the log of a pod whose program has started, until the log ends or must be opened again. It reports whether the node has ended.
func (n *collector) collect(ctx context.Context, pod *corev1.Pod, change <-chan struct{}) (done bool, err error) {
	reason := n.lostReason(pod)
	if reason != "" {
		if n.roster.isStopped() {
			return true, n.giveUp(ctx, "it was lost when the run was stopped: "+reason)
		}
		n.change(State{Phase: Lost, Text: reason})
	}
	if !n.follows && LostNode(pod) != "" { // others wait, and its kubelet does not answer
		await(ctx, change)
		return false, nil
	}
	err = n.read(ctx, pod)
	var fault *recordError
	switch {
	case ctx.Err() != nil:
		return false, nil
	case errors.As(err, &fault):
		return true, n.giveUp(ctx, fault.Error())
	case errors.Is(err, errStore):
		return true, err
	case n.sequence.Ended:
		n.Observer.Changed(n.node.Name, n.state)
		n.releases <- n.pod
		return true, nil
	case n.failure != "":
		return true, n.giveUp(ctx, n.failure)
	}
	current, _ := n.roster.pod(n.pod)
	switch {
	case current != nil && isEnding(current) && !n.follows && !isEnding(pod):
		return false, nil // the log has more
	case current == nil || current.DeletionTimestamp != nil, current.Status.Phase == corev1.PodFailed:
		return n.replace(ctx, pod, current)
	case current.Status.Phase == corev1.PodSucceeded && err == nil:
		return true, n.giveUp(ctx, "its agent ended, and its log lacks the rest of its records")
	case restarts(current) >= maxStarts && n.begun == nil:
		return true, n.giveUp(ctx, fmt.Sprintf("its agent ended %d times without a record: %s", restarts(current), n.exitReason(current)))
	}
	if err != nil {
		n.change(State{Phase: Lost, Text: cmp.Or(reason, "its log is not readable: "+err.Error())})
	}
	pause, cancel := context.WithTimeout(ctx, n.pause())
	defer cancel()
	await(pause, change)
	return false, nil
}

// pause is the pause before the log is read again.
func (n *collector) pause() time.Duration {
	if n.readTime.IsZero() {
		return reopenPause
	}
	return max(reopenPause, time.Duration(cap(n.turns))*readInterval)
}

// isEnding reports whether a pod has ended, or ends.
func isEnding(pod *corev1.Pod) bool { return ended(pod) || pod.DeletionTimestamp != nil }

// replace waits until a lost pod is gone, and removes it if nothing else does.
func (n *collector) replace(ctx context.Context, pod, current *corev1.Pod) (done bool, err error) {
	reason := disruption(cmp.Or(current, pod))
	if current != nil && current.DeletionTimestamp == nil { // Failed: nothing else removes it
		if err := n.remove(ctx, current); err != nil {
			return true, n.giveUp(ctx, fmt.Sprintf("its agent ended (%s) and cannot be removed: %v", reason, err))
		}
	}
	n.loss = reason
	n.change(State{Phase: Lost, Text: "its agent was lost: " + reason})
	for current != nil && current.UID == pod.UID && ctx.Err() == nil {
		if n.roster.isStopped() {
			return true, n.giveUp(ctx, "its agent was lost when the run was stopped: "+reason)
		}
		var change <-chan struct{}
		current, change = n.roster.pod(n.pod)
		if current != nil && current.UID == pod.UID {
			await(ctx, change)
		}
	}
	return false, nil
}

// lose counts a lost pod, so that the next one is created.
func (n *collector) lose(ctx context.Context) (done bool, err error) {
	if n.losses++; n.losses > maxLosses {
		return true, n.giveUp(ctx, fmt.Sprintf("its agent was lost %d times, last: %s", n.losses, n.loss))
	}
	n.Observer.Note(n.node.Name, fmt.Sprintf("its agent was lost (%s); another one goes on after %s", cmp.Or(n.loss, "its pod is gone"), wording.Counted(len(n.recorded), "trial")))
	n.hasPod, n.loss = false, ""
	return false, nil
}

func (n *collector) remove(ctx context.Context, pod *corev1.Pod) error {
	err := kube.Retry(ctx, nil, func(ctx context.Context) error {
		return n.Client.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return n.Client.Explain(err)
}

// errStore marks an error of the results file.
var errStore = errors.New("record the trials")

// recordError reports records that do not make a run.
type recordError struct{ err error }

func (e *recordError) Error() string {
	return fmt.Sprintf("the records of its agent make no run: %v", e.err)
}

func (e *recordError) Unwrap() error { return e.err }

// read takes the records of a log until it ends. The stream also ends when the program starts again or the node returns: the connection may be of
// its earlier life. A log that is read in turns ends with its present last line, unless its pod is being deleted.
func (n *collector) read(ctx context.Context, pod *corev1.Pod) (err error) {
	if !n.readers.take(ctx) {
		return nil
	}
	defer n.readers.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if _, fault := errors.AsType[*recordError](err); ctx.Err() != nil && !fault && !errors.Is(err, errStore) {
			err = nil // the guard has ended the stream
		}
		cancel()
	}()
	startTime := n.Now()
	options := n.logOptions(pod, startTime)
	silence := readLimit
	if options.Follow {
		silence = silenceLimit
	}
	var count atomic.Int64
	go n.guard(ctx, cancel, pod, &count, silence)
	stream, err := n.Client.Pods(n.Fleet.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if apierrors.IsNotFound(err) { // a kubelet that has just started knows no pod either
		if _, failure := n.Client.Pods(n.Fleet.Namespace).Get(ctx, pod.Name, metav1.GetOptions{}); apierrors.IsNotFound(failure) {
			n.roster.Gone(pod.Name) // between its creation and the watch
		}
	}
	if err != nil {
		return n.Client.Explain(err)
	}
	defer func() { _ = stream.Close() }() // it is only read from
	err = n.takeAll(ctx, stream, &count)
	n.readTime = time.Time{}
	if !n.follows && err == nil && count.Load() > 0 {
		n.readTime = startTime
	}
	return err
}

// logOptions are the options for the next reading of a log.
func (n *collector) logOptions(pod *corev1.Pod, startTime time.Time) *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: agentContainer, Follow: !ended(pod) && (n.follows || pod.DeletionTimestamp != nil)}
	n.place = 0
	if !isEnding(pod) && !n.readTime.IsZero() {
		seconds := int64(math.Ceil((startTime.Sub(n.readTime) + readMargin).Seconds()))
		options.SinceSeconds = &seconds
		n.place = n.sequence.Last
	}
	return options
}

// takeAll takes the records of a stream, and counts them.
func (n *collector) takeAll(ctx context.Context, stream io.Reader, count *atomic.Int64) (err error) {
	reader := record.NewReader(stream)
	reader.Pause = func() error { return n.keep(ctx) }
	defer func() {
		n.last = cmp.Or(reader.Last, n.last)
		if fault := n.keep(ctx); err == nil {
			err = fault
		}
	}()
	gap := 0
	for {
		r, err := reader.Next()
		if _, fault := errors.AsType[*recordError](err); fault || errors.Is(err, errStore) {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		count.Add(1)
		if err := n.take(ctx, r, &gap); err != nil {
			return err
		}
		if n.sequence.Ended || n.failure != "" {
			return nil
		}
	}
}

// guard ends a stream that is silent for too long, or whose pod has changed. count is the number of its records.
func (n *collector) guard(ctx context.Context, cancel context.CancelFunc, pod *corev1.Pod, count *atomic.Int64, silence time.Duration) {
	defer cancel()
	for {
		current, change := n.roster.pod(n.pod)
		if current == nil || current.UID != pod.UID || restarts(current) != restarts(pod) {
			silence, change = restLimit, nil
		} else if reason := LostNode(current); reason != LostNode(pod) || reason != "" && n.roster.isStopped() {
			return
		}
		mark := count.Load()
		limit, stop := context.WithTimeout(ctx, silence)
		await(limit, change)
		isOver := limit.Err() != nil
		stop()
		if ctx.Err() != nil || isOver && count.Load() == mark {
			return
		}
	}
}

// take takes a record. gap is the first missing number that the agent was asked for in this stream.
func (n *collector) take(ctx context.Context, r record.Record, gap *int) error {
	isNew, err := n.sequence.Take(r)
	if missing, ok := errors.AsType[*record.GapError](err); ok {
		if *gap == missing.Next {
			return nil
		}
		*gap = missing.Next
		n.asked++
		n.Observer.Note(n.node.Name, missing.Error()+", and the agent writes them again")
		return n.annotate(ctx, n.pod, ReplayAnnotation, fmt.Sprintf("%d/%s/%d", missing.Next, n.Now().UTC().Format(time.RFC3339), n.asked))
	}
	n.place = max(n.place, r.Number)
	if isPast := n.place < n.sequence.Last; err == nil && r.Number == 0 && !isPast {
		err = n.takeMoment(ctx, r)
	}
	if err == nil && isNew {
		switch r.Kind {
		case record.Begin:
			err = n.begin(ctx, r)
		case record.Trial:
			err = n.trial(r)
		case record.Finish:
			err = n.end(ctx, r)
		default: // of the moment
		}
	}
	return faultOf(err)
}

// faultOf marks an error that is no error of the results file as one of the records.
func faultOf(err error) error {
	if _, fault := errors.AsType[*recordError](err); err == nil || fault || errors.Is(err, errStore) {
		return err
	}
	return &recordError{err}
}

// takeMoment takes a record of the moment.
func (n *collector) takeMoment(ctx context.Context, r record.Record) error {
	switch r.Kind {
	case record.Progress:
		var m record.Moment
		if err := r.Decode(&m); err != nil {
			return err
		}
		s := State{Phase: Measuring, Text: m.Trial, Done: m.Done, Total: m.Total, Left: m.Left}
		if m.Paused != "" {
			s = State{Phase: Lost, Text: m.Paused, Done: n.state.Done, Total: n.state.Total}
		}
		n.change(s)
	case record.Note:
		var text string
		if err := r.Decode(&text); err != nil {
			return err
		}
		if !n.told[text] {
			n.told[text] = true
			n.Observer.Note(n.node.Name, text)
		}
	case record.Failure:
		return r.Decode(&n.failure)
	case record.Stopping:
		var rule result.Stopping
		if err := r.Decode(&rule); err != nil || n.begun == nil || n.complete {
			return err
		}
		return stored(n.Store.Stopping(context.WithoutCancel(ctx), n.runID, &rule))
	default: // of the run
	}
	return nil
}

// stored marks an error of the results file. The content of a run that the store refuses is the agent's fault, and no error of the file.
func stored(err error) error {
	if _, ok := errors.AsType[*store.FileError](err); ok || errors.Is(err, store.ErrUnderWay) {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return err
}

// begin records the beginning of the run, or goes on with the part that an earlier collection recorded.
func (n *collector) begin(ctx context.Context, r record.Record) error {
	var run result.Run
	if err := r.Decode(&run); err != nil {
		return err
	}
	if run.ID != n.runID {
		return fmt.Errorf("the agent writes run %q, and its run is %q", run.ID, n.runID)
	}
	run.Trials, run.State, run.Ended = nil, result.Running, time.Time{}
	node := n.node.Node
	run.Host.Node = &node
	run.Caveats = n.caveats(run.Caveats)
	ctx = context.WithoutCancel(ctx)
	n.recorded = map[int]bool{}
	if !n.runs[n.runID] {
		if err := n.Store.Create(ctx, run); err != nil {
			return stored(err)
		}
		n.begun = &run
		return nil
	}
	part, err := n.Store.Outline(ctx, n.runID)
	if err != nil {
		return stored(err)
	}
	if !part.Started.Equal(run.Started) || part.Seed != run.Seed {
		return fmt.Errorf("the results file has another run %s, from %v: collect this one into another folder with -d", n.runID, part.Started)
	}
	if n.complete = part.State == result.Complete; !n.complete {
		if err := n.Store.Resume(ctx, n.runID); err != nil {
			return stored(err)
		}
	}
	for _, t := range part.Trials {
		n.recorded[t.Seq] = true
	}
	n.begun = &run
	return nil
}

// trial takes a trial. It is recorded together with the trials that the log has after it.
func (n *collector) trial(r record.Record) error {
	last := len(n.batch)
	n.batch = append(n.batch, result.Trial{})
	if err := r.Decode(&n.batch[last]); err != nil || n.recorded[n.batch[last].Seq] {
		n.batch = n.batch[:last]
		return err
	}
	return nil
}

// keep records the trials that were taken.
func (n *collector) keep(ctx context.Context) error {
	batch := n.batch
	if len(batch) == 0 {
		return nil
	}
	n.batch = batch[:0]
	err := n.append(ctx, batch)
	if err != nil && !errors.Is(err, errStore) {
		// One of them is no trial of the run. The trials before it are.
		for i := range batch {
			if err = n.append(ctx, batch[i:i+1]); err != nil {
				break
			}
		}
	}
	return faultOf(err)
}

func (n *collector) append(ctx context.Context, trials []result.Trial) error {
	if err := n.Store.AppendTrials(context.WithoutCancel(ctx), n.runID, trials); err != nil {
		return stored(err)
	}
	for _, t := range trials {
		n.recorded[t.Seq] = true
		n.Observer.Trial(n.node.Name, t)
	}
	return nil
}

// end records the end of the run.
func (n *collector) end(ctx context.Context, r record.Record) error {
	var end record.End
	if err := cmp.Or(n.keep(ctx), r.Decode(&end)); err != nil {
		return err
	}
	if end.Trials != len(n.recorded) {
		return fmt.Errorf("the run has %d trials, and %d are recorded", end.Trials, len(n.recorded))
	}
	n.state = State{Phase: Complete, Done: end.Trials, Total: end.Trials}
	if end.State != result.Complete {
		n.state.Phase = Ended
		if last := len(end.Caveats) - 1; last >= 0 {
			n.state.Text = end.Caveats[last] // the agent adds the cause
		}
		n.obey(ctx)
	}
	if n.complete {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if end.Stopping != nil {
		if err := n.Store.Stopping(ctx, n.runID, end.Stopping); err != nil {
			return stored(err)
		}
	}
	return stored(n.Store.Finish(ctx, n.runID, end.State, end.Ended, n.caveats(end.Caveats)))
}

// obey looks at the agent for a request to stop, before another node has its turn. The watch may be later than the log.
func (n *collector) obey(ctx context.Context) {
	var pod *corev1.Pod
	err := n.request(ctx, nil, func(ctx context.Context) (err error) {
		pod, err = n.Client.Pods(n.Fleet.Namespace).Get(ctx, n.pod, metav1.GetOptions{})
		return err
	})
	switch {
	case err == nil:
		n.roster.obey(pod)
	case !apierrors.IsNotFound(err):
		n.note(n.Client.Explain(err))
	}
}

// caveats are the caveats of the fleet before those that the node's run has.
func (n *collector) caveats(list []string) []string {
	return append(slices.Clone(n.Fleet.Caveats), list...)
}

// giveUp ends a node without the end of its run.
func (n *collector) giveUp(ctx context.Context, reason string) error {
	s := State{Phase: Failed, Text: reason}
	var err error
	if n.begun == nil && n.sequence.Last == 0 && n.runs[n.runID] {
		// An earlier collection has recorded a part.
		if run, failure := n.Store.Outline(context.WithoutCancel(ctx), n.runID); failure == nil {
			run.Trials = nil
			n.begun = &run
		}
	}
	if n.begun != nil {
		s.Phase, s.Done = Ended, len(n.recorded)
		if !n.complete && n.begun.State == result.Running {
			caveats := append(slices.Clone(n.begun.Caveats), "the run ended early: "+reason)
			err = stored(n.Store.Finish(context.WithoutCancel(ctx), n.runID, result.Interrupted, n.Now().UTC(), caveats))
		}
	}
	n.change(s)
	n.releases <- n.pod
	return err
}

// lostReason is the reason why no records come from a pod that has started; empty if they do.
func (n *collector) lostReason(pod *corev1.Pod) string {
	if reason := LostNode(pod); reason != "" {
		return reason
	}
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			return fmt.Sprintf("its agent ended and starts again: %s", n.exitReason(pod))
		}
	}
	return ""
}

// exitReason is the reason for the last end of a pod's program.
func (n *collector) exitReason(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if t != nil {
				return fmt.Sprintf("%s, exit code %d%s", cmp.Or(t.Reason, "ended"), t.ExitCode, prefixed(": ", cmp.Or(t.Message, n.last)))
			}
		}
	}
	return cmp.Or(n.last, "no reason is known")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
