package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/locality"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/refusal"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// defaultSocket is Docker's default. It is a variable for tests.
var defaultSocket = "/var/run/docker.sock"

// answerLimit is the deadline for the first requests to a running daemon.
const answerLimit = 5 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %v", answerLimit)

// daemon is a Docker daemon, which all targets of a session share.
type daemon struct {
	session engine.Session
	client  *client.Client
	endpoint
	info    system.Info
	private *managed.Daemon // nil for the user's own
	// unused is the reason why a private daemon takes the place of the user's own. It is empty if the user has none, or the session asks for one.
	unused  string
	entries entries // of a private daemon's configuration
	// programs are the paths of a private daemon's programs.
	programs []string
}

func (d *daemon) String() string {
	if d.private != nil {
		return "the private Docker daemon"
	}
	return "the Docker daemon at " + d.place()
}

// place is the address with its source.
func (e endpoint) place() string {
	if e.source == "" {
		return e.host
	}
	return e.host + " (" + e.source + ")"
}

// newDaemon connects to the user's daemon, or starts a private one, and pulls the probe's image.
func newDaemon(ctx context.Context, s engine.Session) (*daemon, error) {
	if s.Registry == nil {
		return nil, errors.New("use Docker: the session has no registry to pull images from")
	}
	d, reason, err := userDaemon(ctx, s)
	if d == nil && err == nil {
		d, err = startPrivate(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	d.unused = reason
	if err := d.pullProbe(ctx); err != nil {
		err = errors.Join(err, d.close(ctx))
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, d.refuse(err, d.private != nil, d.pullAdvice())
	}
	return d, nil
}

// facts are the facts for the diagnosis of an error.
func (d *daemon) facts(info engine.Info) diagnosis.Facts {
	f := diagnosis.Facts{Info: info, Engine: name, Private: d.private != nil}
	if d.private != nil {
		f.Log = d.private.Log()
	}
	if d.session.Registry != nil {
		f.Registry = d.session.Registry.Addr()
	}
	return f.Here()
}

// refuse is the error of a daemon that cannot be used. The advice is for an unknown error.
func (d *daemon) refuse(err error, private bool, advice string) *engine.UnsupportedError {
	f := d.facts(engine.Info{Target: target.Target{Engine: name}})
	f.Private = private
	explanation := diagnosis.Explain(err, f, "", advice)
	explanation.What = name
	return &explanation
}

func (d *daemon) pullAdvice() string {
	if d.private != nil {
		return "it needs space for images"
	}
	return locality.PullAdvice(d.session, d.machine())
}

// pullProbe pulls the probe's image. It first records the use of a user daemon, so that a later run can remove the image if this
// run is killed.
func (d *daemon) pullProbe(ctx context.Context) error {
	if d.private == nil {
		if err := d.session.RecordDaemon(name, d.record()); err != nil {
			return err
		}
	}
	return d.pull(ctx, d.session.Registry.Probe())
}

// userDaemon connects to the user's own daemon at the place that the user has chosen, at the default socket, or at the socket of a rootless
// daemon. It returns neither a daemon nor an error if a private one can be started instead; reason is then the cause, or
// empty if the user has none.
func userDaemon(ctx context.Context, s engine.Session) (d *daemon, reason string, err error) {
	if s.Managed {
		return nil, "", nil
	}
	place, isUserChoice, err := findEndpoint(s)
	if err != nil {
		return nil, "", err
	}
	d = &daemon{session: s, endpoint: place}
	err = d.connect(ctx)
	if rootless := rootlessSocket(); err != nil && !isUserChoice && rootless != "" {
		candidate := &daemon{session: s, endpoint: endpoint{host: "unix://" + rootless, source: "rootless"}}
		if candidate.connect(ctx) == nil {
			d, err = candidate, nil
		}
	}
	switch {
	case err == nil:
		if err := s.Registry.ServeHost(); err != nil {
			return nil, "", errors.Join(err, d.close(ctx))
		}
		return d, "", nil
	case isUserChoice || os.Geteuid() != 0: // a private daemon needs root
		return nil, "", err
	}
	var u *engine.UnsupportedError
	if exists(defaultSocket) && errors.As(err, &u) {
		return nil, u.Reason, nil
	}
	if address := othersDaemon(); address != "" {
		reason = fmt.Sprintf("to measure the rootless daemon at %s, run as its user", address)
	}
	return nil, reason, nil
}

// connect connects to a running daemon and queries its properties. The error is an *engine.UnsupportedError.
func (d *daemon) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errNoAnswer)
	defer cancel()
	err := d.dial(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	advice := "start Docker, name its socket in DOCKER_HOST, or use a private daemon with --managed"
	if errors.Is(err, fs.ErrPermission) {
		advice = refusal.Rights("run as root, or as a member of the socket's group")
	}
	return &engine.UnsupportedError{What: name, Reason: fmt.Sprintf("the daemon at %s: %v", d.place(), err), Advice: advice}
}

func (d *daemon) dial(ctx context.Context) error {
	options := []client.Opt{client.WithHost(d.host)}
	switch scheme, path, _ := strings.Cut(d.host, "://"); scheme {
	case "unix":
		// The client's own messages do not distinguish these cases.
		if err := checkSocket(ctx, path); err != nil {
			return err
		}
	case "tcp", "http", "https":
		if d.tls != "" {
			file := func(name string) string { return filepath.Join(d.tls, name) }
			options = append(options, client.WithTLSClientConfig(file("ca.pem"), file("cert.pem"), file("key.pem")))
		}
	default:
		return errors.New("the address is neither a path nor a URL with unix:// or tcp://")
	}
	var err error
	if d.client, err = client.New(options...); err != nil {
		return err
	}
	err = d.query(ctx)
	if err == nil {
		err = d.checkHost()
	}
	if err != nil {
		d.disconnect()
	}
	return err
}

// query queries the daemon's properties.
func (d *daemon) query(ctx context.Context) error {
	if _, err := d.client.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return &saidError{err}
	}
	answer, err := d.client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return &saidError{err}
	}
	if answer.Info.ServerVersion == "" {
		return errors.New("the process behind the address is not Docker")
	}
	d.info = answer.Info
	return nil
}

// checkSocket returns an error for a socket that cannot be used.
func checkSocket(ctx context.Context, path string) error {
	err := managed.Reach(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the socket does not exist")
	case errors.Is(err, syscall.ENOTSOCK):
		return errors.New("the file is not a socket")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("no process listens on the socket")
	}
	return err
}

// checkHost refuses a daemon on another host, because Touchstone's facts about the host would be wrong. A Unix socket leads to
// this host, or to a virtual machine on it, which has another name.
func (d *daemon) checkHost() error {
	self, err := os.Hostname()
	if err != nil || d.info.Name == self || strings.HasPrefix(d.host, "unix://") {
		return err
	}
	return fmt.Errorf("it runs on %s, and Touchstone on %s, but Touchstone watches its own host during a measurement; start Touchstone on the daemon's host", d.info.Name, self)
}

// disconnect closes the connection.
func (d *daemon) disconnect() { _ = d.client.Close() } // it closes idle connections, and returns no errors

// end is close with the daemon's name in the error.
func (d *daemon) end() error {
	if err := d.close(context.Background()); err != nil {
		return fmt.Errorf("end the use of %s: %w", d, err)
	}
	return nil
}

// close ends the use of the daemon. It removes the run's images from a user daemon, and stops a private one.
func (d *daemon) close(ctx context.Context) error {
	ctx, cancel := engine.WithUndoLimit(ctx)
	defer cancel()
	defer d.disconnect()
	if d.private != nil {
		return d.private.Stop(ctx)
	}
	_, err := d.sweepImages(ctx)
	return err
}

// pull fetches an image and unpacks it.
func (d *daemon) pull(ctx context.Context, ref string) error {
	stream, err := d.client.ImagePull(ctx, ref, client.ImagePullOptions{})
	if err == nil {
		err = stream.Wait(ctx)
	}
	if err != nil {
		return d.explain(ctx, "pull image "+ref, err)
	}
	return nil
}

// removeImage removes an image, if it exists.
func (d *daemon) removeImage(ctx context.Context, ref string) error {
	_, err := d.client.ImageRemove(ctx, ref, client.ImageRemoveOptions{PruneChildren: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return d.explain(ctx, "remove image "+ref, err)
	}
	return nil
}

// explain adds the operation to an error. If the daemon has exited, it adds the reason.
func (d *daemon) explain(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	var died error
	switch {
	case d.private == nil:
	case client.IsErrConnectionFailed(err) || errors.Is(err, io.EOF):
		died = d.private.Lost(ctx)
	default:
		died = d.private.Err()
	}
	err = fmt.Errorf("%s: %w", what, &saidError{err})
	if died != nil {
		err = fmt.Errorf("%w; %w", err, died)
	}
	return err
}

// saidError removes the daemon's prefix from a message.
type saidError struct{ err error }

func (e *saidError) Error() string {
	return strings.TrimPrefix(strings.TrimSpace(e.err.Error()), "Error response from daemon: ")
}

func (e *saidError) Unwrap() error { return e.err }

// Sweep implements engine.Sweeper.
func (*Driver) Sweep(ctx context.Context, s engine.Session) (count int, err error) {
	place, err := readRecord(s.Sockets[name])
	if err != nil {
		return 0, err
	}
	d := &daemon{session: s, endpoint: place}
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
func (d *daemon) sweepContainers(ctx context.Context) (count int, err error) {
	list, err := d.client.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", engine.Label+"="+d.session.RunID),
	})
	if err != nil {
		return 0, d.explain(ctx, "list the run's containers", err)
	}
	var errs []error
	for _, c := range list.Items {
		// A daemon may ignore the filter.
		if !slices.ContainsFunc(c.Names, func(n string) bool { return d.session.Owns(strings.TrimPrefix(n, "/"), c.Labels[engine.Label]) }) {
			continue
		}
		_, err := d.client.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, d.explain(ctx, fmt.Sprintf("remove container %q", c.Names), err))
			continue
		}
		count++
	}
	return count, errors.Join(errs...)
}

// sweepImages removes the images with names of the run.
func (d *daemon) sweepImages(ctx context.Context) (count int, err error) {
	list, err := d.client.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return 0, d.explain(ctx, "list the run's images", err)
	}
	for _, i := range list.Items {
		removals := 0
		for _, n := range i.RepoTags {
			if !image.IsOf(n, d.session.RunID) {
				continue
			}
			if err := d.removeImage(ctx, n); err != nil {
				return count, err
			}
			removals++
		}
		count += removals
		if removals > 0 && removals == len(i.RepoTags) {
			n, err := d.removeUnnamed(ctx, i.ID)
			count += n
			if err != nil {
				return count, err
			}
		}
	}
	return count, nil
}

// unnamedPause is the time between two attempts to remove an image without a name. The daemon lists a container a moment after the container holds
// the image, without an event.
const unnamedPause = 100 * time.Millisecond

// removeUnnamed removes an image that has lost its last name, if it still exists. Docker takes the name and keeps the image, without an error, if
// a container begins to use the image meanwhile: one that the daemon makes for a request of a killed run. No later clean-up would find the image,
// so the containers of the run are removed first. It returns their number.
func (d *daemon) removeUnnamed(ctx context.Context, id string) (containers int, err error) {
	for {
		answer, err := d.client.ImageInspect(ctx, id)
		if errdefs.IsNotFound(err) || err == nil && len(answer.RepoTags) > 0 { // another run has given it a name
			return containers, nil
		}
		if err != nil {
			return containers, d.explain(ctx, "look for image "+id, err)
		}
		if err = d.removeImage(ctx, id); !errdefs.IsConflict(err) {
			return containers, err
		}
		n, sweepErr := d.sweepContainers(ctx)
		containers += n
		if sweepErr != nil {
			return containers, sweepErr
		}
		pause, end := context.WithTimeout(ctx, unnamedPause)
		<-pause.Done()
		end()
		if ctx.Err() != nil {
			return containers, err
		}
	}
}
