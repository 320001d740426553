package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Error is an error of a request with a remedy.
type Error struct {
	Err    error
	Advice string
}

func (e *Error) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Advice) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Explain adds the remedy to an error of a request. Other errors stay as they are.
func (c *Client) Explain(err error) error {
	var inner *Error
	if err == nil || errors.As(err, &inner) {
		return err
	}
	status := statusOf(err)
	switch {
	case status == http.StatusUnauthorized:
		return &Error{err, "the credentials are wrong or have expired: log in again, as for kubectl get pods"}
	case apierrors.IsForbidden(err) && status == http.StatusForbidden:
		return &Error{err, "touchstone cluster check lists the rights that are needed, and touchstone cluster run --manifest prints all objects for an administrator"}
	case unavailable(status):
		return &Error{err, "the API server is overloaded or restarts: try again"}
	case isUnreachable(err):
		return &Error{fmt.Errorf("no answer from the API server %s: %w", c.Host, err), "check the address with kubectl cluster-info, and the network"}
	}
	return err
}

// isUnreachable reports whether no server answered.
func isUnreachable(err error) bool {
	var network net.Error
	var request *url.Error
	return statusOf(err) == 0 && (errors.As(err, &network) || errors.As(err, &request))
}

// IsTransient reports whether the same request may succeed later: the server did not answer, is overloaded or restarts.
func IsTransient(err error) bool {
	return !errors.Is(err, context.Canceled) && (unavailable(statusOf(err)) || isUnreachable(err) || errors.Is(err, context.DeadlineExceeded))
}

// The pauses between attempts, and the time limit of one.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 3 * time.Second
	requestLimit = 30 * time.Second
)

// Retry makes a request until it succeeds, until its error is no state of the server that passes, or until ctx ends. It calls report with the first
// such error.
func Retry(ctx context.Context, report func(error), request func(context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		attempt, cancel := context.WithTimeout(ctx, requestLimit)
		err := request(attempt)
		cancel()
		if err == nil || ctx.Err() != nil || !IsTransient(err) {
			return err
		}
		if report != nil {
			report(err)
			report = nil
		}
		if Pause(ctx, pause) != nil {
			return err
		}
	}
}

// Pause waits for a time, or until ctx ends: then it returns the cause.
func Pause(ctx context.Context, pause time.Duration) error {
	timer, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	<-timer.Done()
	return context.Cause(ctx)
}
