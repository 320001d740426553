package cri

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/image"
)

// service is a running engine with the state that its targets share.
type service struct {
	*client
	name     string      // in targets
	exits    *exitEvents // nil for an engine without such a stream
	exitsDir string      // CRI-O's directory of exit files; empty without virtual machines in CRI-O
	bundles  string      // CRI-O's directory of bundles, likewise
	private  *managed.Daemon
	notify   *notifySocket    // of a private engine
	entries  map[string]entry // handlers of a private engine, by target
	programs programs         // of a private engine
	notes    []string         // about all targets
	unused   string           // the reason why a private engine takes the place of the user's; empty if the session asks for one
	storage  string           // the snapshotter or storage driver; empty if unknown
	image    string           // the probe's
	pulled   bool             // the run has pulled the image
	reviving sync.Mutex       // held during a restart of a private engine
}

// tries counts the test containers of this process.
var tries atomic.Int64

// tryID returns the ID of the next test container. No ID is used again: the engine may still hold the name of a container whose
// creation hangs, and would refuse the next target.
func (s *service) tryID(runID string) string {
	return fmt.Sprintf("%s%s-try-%s-%03d", engine.Prefix, runID, s.name, tries.Add(1))
}

// open prepares the engine for containers: it chooses the source of exits and pulls the probe's image.
func (s *service) open(ctx context.Context, registry registry) error {
	switch {
	case s.isContainerd():
		s.exits = newExitEvents(taskExits(s.conn))
	case s.exitsDir != "":
		s.exits = newExitEvents(exitFiles(s.exitsDir, s.private))
	}
	if err := s.askStorage(ctx); err != nil {
		return err
	}
	s.image = registry.Probe()
	answer, err := s.images.ImageStatus(ctx, &api.ImageStatusRequest{Image: imageSpec(s.image)})
	if err != nil {
		return err
	}
	if answer.GetImage() != nil {
		return nil
	}
	s.pulled = true
	if err := s.pull(ctx, s.image); err != nil {
		return fmt.Errorf("pull image %s: %w", s.image, err)
	}
	return nil
}

// askStorage finds the snapshotter or storage driver by the name of its directory, such as
// io.containerd.snapshotter.v1.overlayfs or overlay-images.
func (s *service) askStorage(ctx context.Context) error {
	answer, err := s.images.ImageFsInfo(ctx, &api.ImageFsInfoRequest{})
	if err != nil {
		return err
	}
	for _, fs := range answer.GetImageFilesystems() {
		s.storage = storage(fs.GetFsId().GetMountpoint())
	}
	return nil
}

// storage reads the name of that directory. It returns an empty string for other names.
func storage(dir string) string {
	name := word(path.Base(dir))
	if snapshotter, ok := strings.CutPrefix(name, "io.containerd.snapshotter.v1."); ok {
		return "the snapshotter " + snapshotter
	}
	if driver, ok := strings.CutSuffix(name, "-images"); ok {
		return "the storage driver " + driver
	}
	return ""
}

// registry is the part of the session's registry that a service uses.
type registry interface{ Probe() string }

func (s *service) pull(ctx context.Context, ref string) error {
	_, err := s.images.PullImage(ctx, &api.PullImageRequest{Image: imageSpec(ref)})
	return err
}

// removeImage removes an image if it exists. CRI-O fails if another request removes the image meanwhile, such as a request for another
// target of the same daemon. The interface demands success, so an image that is gone after all is no error.
func (c *client) removeImage(ctx context.Context, ref string) error {
	_, err := c.images.RemoveImage(ctx, &api.RemoveImageRequest{Image: imageSpec(ref)})
	if err = ignoreNotFound(err); err == nil {
		return nil
	}
	answer, statusErr := c.images.ImageStatus(ctx, &api.ImageStatusRequest{Image: imageSpec(ref)})
	if statusErr == nil && answer.GetImage() == nil {
		return nil
	}
	return err
}

// dead reports the exit of a private engine; nil if it runs or is the user's.
func (s *service) dead() error {
	if s.private == nil {
		return nil
	}
	return s.private.Err()
}

// lost is dead for an engine whose request has failed.
func (s *service) lost(ctx context.Context, err error) error {
	if s.private != nil && status.Code(err) == codes.Unavailable {
		return s.private.Lost(ctx)
	}
	return s.dead()
}

// revive restarts a private engine that has exited.
func (s *service) revive(ctx context.Context) error {
	if s.private == nil {
		return nil
	}
	s.reviving.Lock()
	defer s.reviving.Unlock()
	return s.private.Revive(ctx)
}

// recover kills a private engine that does not answer, and restarts it.
func (s *service) recover(ctx context.Context) (isKilled bool, err error) {
	if s.private == nil {
		return false, nil
	}
	s.reviving.Lock()
	defer s.reviving.Unlock()
	return s.private.Recover(ctx)
}

// processes are the engine's processes.
func (s *service) processes() engine.Daemon {
	if s.private != nil {
		return s.private.Daemon()
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	if pid := server(ctx, s.socket); pid != 0 {
		return engine.Daemon{PIDs: []int{pid}}
	}
	return engine.Daemon{}
}

// close removes the image if the run has pulled it, and stops a private engine.
func (s *service) close(ctx context.Context) error {
	ctx, cancel := engine.WithUndoLimit(ctx)
	defer cancel()
	var errs []error
	if s.pulled && s.private == nil {
		if err := s.removeImage(ctx, s.image); err != nil {
			errs = append(errs, fmt.Errorf("remove image %s: %s", s.image, message(err)))
		}
	}
	if s.exits != nil {
		s.exits.close()
	}
	errs = append(errs, s.client.close())
	if s.private != nil {
		errs = append(errs, s.private.Stop(ctx), s.notify.close())
	}
	return errors.Join(errs...)
}

var _ engine.Sweeper = (*Driver)(nil)

// Sweep implements engine.Sweeper.
func (d *Driver) Sweep(ctx context.Context, s engine.Session) (count int, err error) {
	c, err := connect(ctx, d.name, s.Sockets[d.name])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	pods, err := c.sweepPods(ctx, s)
	if err != nil {
		return pods, err // images in use cannot be removed
	}
	images, err := c.sweepImages(ctx, s.RunID)
	return pods + images, err
}

// ownPods lists the pods of a run with these labels. It checks each pod's label and name, because some engines ignore the selector.
func (c *client) ownPods(ctx context.Context, s engine.Session, selector map[string]string) ([]*api.PodSandbox, error) {
	list, err := c.ListPodSandbox(ctx, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{LabelSelector: selector}})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.GetItems(), func(pod *api.PodSandbox) bool {
		for key, value := range selector {
			if pod.GetLabels()[key] != value {
				return true
			}
		}
		return !s.Owns(pod.GetMetadata().GetName(), pod.GetLabels()[runLabel])
	}), nil
}

// sweepPods removes the pods of a run with their containers.
func (c *client) sweepPods(ctx context.Context, s engine.Session) (count int, err error) {
	pods, err := c.ownPods(ctx, s, map[string]string{runLabel: s.RunID})
	if err != nil {
		return 0, fmt.Errorf("list the run's pods: %s", message(err))
	}
	var errs []error
	for _, pod := range pods {
		_, err := c.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: pod.GetId()})
		if err == nil {
			_, err = c.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: pod.GetId()})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove pod %s: %s", pod.GetMetadata().GetName(), message(err)))
			continue
		}
		count++
	}
	return count, errors.Join(errs...)
}

// sweepImages removes the images that a run has published, by their names.
func (c *client) sweepImages(ctx context.Context, runID string) (count int, err error) {
	list, err := c.images.ListImages(ctx, &api.ListImagesRequest{})
	if err != nil {
		return 0, fmt.Errorf("list the run's images: %s", message(err))
	}
	var errs []error
	for _, i := range list.GetImages() {
		index := slices.IndexFunc(i.GetRepoTags(), func(ref string) bool { return !image.IsOf(ref, runID) })
		for _, ref := range i.GetRepoTags() {
			if !image.IsOf(ref, runID) {
				continue
			}
			if index >= 0 { // containerd removes an image with all its names
				errs = append(errs, fmt.Errorf("image %s stays, because it is also %s", ref, i.GetRepoTags()[index]))
				continue
			}
			if err := c.removeImage(ctx, ref); err != nil {
				return count, errors.Join(append(errs, fmt.Errorf("remove image %s: %s", ref, message(err)))...)
			}
			count++
		}
	}
	return count, errors.Join(errs...)
}
