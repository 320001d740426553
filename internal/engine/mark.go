package engine

import (
	"context"
	"time"
)

// Stage is a moment in the life of a container that others than the caller of its engine observe: the API server, the node, or the program.
type Stage string

// The stages of a pod, in order. StagePrepared may be known after StageFirstLine, and StageRunning after the program's exit.
const (
	StageAccepted   Stage = "Accepted"   // the API server has stored the pod
	StageScheduled  Stage = "Scheduled"  // the scheduler has bound it to the node
	StageSandboxed  Stage = "Sandboxed"  // its sandbox exists, with the network
	StagePrepared   Stage = "Prepared"   // its container is created
	StageFirstLine  Stage = "FirstLine"  // the program has written its first line
	StageRunning    Stage = "Running"    // the API server reports that the program runs
	StageReady      Stage = "Ready"      // the API server reports that the pod is ready
	StageStopping   Stage = "Stopping"   // the kubelet begins to stop the container
	StageLastLine   Stage = "LastLine"   // the program has written its last line
	StageTerminated Stage = "Terminated" // the API server reports that the program and the sandbox have ended
	StageDeleted    Stage = "Deleted"    // the API server has removed the pod
)

// Stager is an Engine that reports the stages of its containers with Mark and MarkAt. It sends its requests to a server.
type Stager interface {
	Pinger
	// Stages lists the stages that the engine may report here. A single report may be lost.
	Stages() []Stage
}

// Marker receives the stages of one container. Its methods may be called from several goroutines. The first report of a stage counts.
type Marker interface {
	// Mark reports a stage that is reached now.
	Mark(s Stage)
	// MarkAt reports a stage with its time on the real-time clock of this machine.
	MarkAt(s Stage, real time.Time)
}

type markerKey struct{}

// WithMarker gives engines a receiver for the stages of one container.
func WithMarker(ctx context.Context, m Marker) context.Context {
	return context.WithValue(ctx, markerKey{}, m)
}

// MarkerOf is the receiver of a context, for stages that an engine learns of after the call. Engines keep no time themselves: without a receiver
// in the context, the reports have no effect.
func MarkerOf(ctx context.Context) Marker {
	if m, ok := ctx.Value(markerKey{}).(Marker); ok {
		return m
	}
	return unmarked{}
}

// unmarked receives the stages of a container that is not observed.
type unmarked struct{}

func (unmarked) Mark(Stage)              {}
func (unmarked) MarkAt(Stage, time.Time) {}

// Mark reports a stage that the container of a call reaches now. An engine calls it right after the event.
func Mark(ctx context.Context, s Stage) { MarkerOf(ctx).Mark(s) }

// MarkAt reports a stage whose time another program of this machine has taken, on the machine's real-time clock.
func MarkAt(ctx context.Context, s Stage, real time.Time) { MarkerOf(ctx).MarkAt(s, real) }
