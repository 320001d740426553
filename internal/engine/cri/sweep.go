package cri

import (
	"context"
	"errors"
	"fmt"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
)

var _ engine.Sweeper = (*Driver)(nil)

// Sweep implements engine.Sweeper.
func (d *Driver) Sweep(ctx context.Context, s engine.Session) (removed int, err error) {
	c, err := connect(ctx, d.name, s.Sockets[d.name])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	pods, err := c.sweepPods(ctx, s.RunID)
	if err != nil {
		return pods, err // images in use cannot be removed
	}
	images, err := c.sweepImages(ctx, s.RunID)
	return pods + images, err
}

// sweepPods removes the pods of a run with their containers.
func (c *client) sweepPods(ctx context.Context, runID string) (removed int, err error) {
	list, err := c.ListPodSandbox(ctx, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{LabelSelector: map[string]string{engine.Label: runID}}})
	if err != nil {
		return 0, fmt.Errorf("list the run's pods: %s", message(err))
	}
	var errs []error
	for _, pod := range list.GetItems() {
		_, err := c.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: pod.GetId()})
		if err == nil {
			_, err = c.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: pod.GetId()})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove pod %s: %s", pod.GetMetadata().GetName(), message(err)))
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

// sweepImages removes the images that a run has published, by their names.
func (c *client) sweepImages(ctx context.Context, runID string) (removed int, err error) {
	list, err := c.images.ListImages(ctx, &api.ListImagesRequest{})
	if err != nil {
		return 0, fmt.Errorf("list the run's images: %s", message(err))
	}
	for _, i := range list.GetImages() {
		for _, ref := range i.GetRepoTags() {
			if !image.IsOf(ref, runID) {
				continue
			}
			if _, err := c.images.RemoveImage(ctx, &api.RemoveImageRequest{Image: imageSpec(ref)}); err != nil {
				return removed, fmt.Errorf("remove image %s: %s", ref, message(err))
			}
			removed++
		}
	}
	return removed, nil
}
