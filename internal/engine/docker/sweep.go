package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
)

// Sweep implements engine.Sweeper.
func (*Driver) Sweep(ctx context.Context, s engine.Session) (removed int, err error) {
	d := &daemon{session: s, host: url(s.Sockets[name])}
	if err := d.connect(ctx); err != nil {
		return 0, err
	}
	defer d.disconnect()
	containers, err := d.sweepContainers(ctx)
	if err != nil {
		return containers, err // images in use cannot be removed
	}
	images, err := d.sweepImages(ctx)
	return containers + images, err
}

// sweepContainers removes the run's containers.
func (d *daemon) sweepContainers(ctx context.Context) (removed int, err error) {
	list, err := d.client.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", engine.Label+"="+d.session.RunID),
	})
	if err != nil {
		return 0, d.explain(ctx, "list the run's containers", err)
	}
	var errs []error
	for _, c := range list.Items {
		_, err := d.client.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, d.explain(ctx, fmt.Sprintf("remove container %q", c.Names), err))
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

// sweepImages removes the images with names of the run.
func (d *daemon) sweepImages(ctx context.Context) (removed int, err error) {
	list, err := d.client.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return 0, d.explain(ctx, "list the run's images", err)
	}
	for _, i := range list.Items {
		for _, n := range i.RepoTags {
			if !image.IsOf(n, d.session.RunID) {
				continue
			}
			if err := d.removeImage(ctx, n); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}
