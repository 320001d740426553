package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Observer receives the states of pods, one call at a time.
type Observer interface {
	// Seen receives the present state of a pod. A state may come twice.
	Seen(pod *corev1.Pod)
	// Gone receives the name of a pod that no longer exists.
	Gone(name string)
	// Listed is called after the present states: each pod is known. It is called again after an interruption.
	Listed()
	// Lost receives the error that interrupts the observation.
	Lost(err error)
}

// Follow reports the states of the pods that options select, from the present ones on, until ctx ends or the server refuses the request. It makes
// a list, watches from there, and begins again after each end of the watch: servers end watches after minutes, when they restart,
// and when they have forgotten the place (410).
//
// client-go's informers do the same. They wait up to 30 s between attempts, and a restarted API server would be missed for as long.
func Follow(ctx context.Context, pods Pods, options metav1.ListOptions, observer Observer) error {
	names := map[string]bool{}
	pause, isLost := firstPause, false
	for {
		items, err := list(ctx, pods, options)
		if err == nil {
			pause, isLost = firstPause, false
			found := map[string]bool{}
			for i := range items.Items {
				found[items.Items[i].Name] = true
				observer.Seen(&items.Items[i])
			}
			for name := range names {
				if !found[name] {
					observer.Gone(name)
				}
			}
			names = found
			observer.Listed()
			err = watchOnce(ctx, pods, options, items.ResourceVersion, names, observer)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			pause = firstPause // a server that ends each watch at once gets few requests
		case !IsTransient(err):
			return err
		case !isLost:
			isLost = true
			observer.Lost(err)
		}
		if err := Pause(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

func list(ctx context.Context, pods Pods, options metav1.ListOptions) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	return pods.List(ctx, options)
}

// watchTime is the longest time of a watch. A watch on a dead connection ends by then.
const watchTime = 5 * time.Minute

// watchOnce reports changes until the watch ends. A watch that ends in order is no error.
func watchOnce(ctx context.Context, pods Pods, options metav1.ListOptions, version string, names map[string]bool, observer Observer) error {
	options.ResourceVersion, options.AllowWatchBookmarks = version, true
	seconds := int64(watchTime / time.Second)
	options.TimeoutSeconds = &seconds
	changes, err := pods.Watch(ctx, options)
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		pod, isPod := change.Object.(*corev1.Pod)
		switch {
		case change.Type == watch.Bookmark:
		case change.Type == watch.Error:
			return apierrors.FromObject(change.Object)
		case !isPod:
			return fmt.Errorf("watch pods: the server sent a %T", change.Object)
		case change.Type == watch.Deleted:
			delete(names, pod.Name)
			observer.Gone(pod.Name)
		default:
			names[pod.Name] = true
			observer.Seen(pod)
		}
	}
	return nil
}
