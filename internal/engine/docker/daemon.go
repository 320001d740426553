package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
)

// defaultSocket is where Docker has its socket.
const defaultSocket = "/var/run/docker.sock"

// answerLimit is how long a daemon that runs may take to say what it is.
const answerLimit = 5 * time.Second

// undoLimit bounds what has to be done although nobody waits for it any more.
const undoLimit = 20 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %v", answerLimit)

// daemon is a Docker daemon with what all its targets share.
type daemon struct {
	session engine.Session
	client  *client.Client
	host    string // as a URL
	info    system.Info
	private *managed.Daemon // nil for the user's own
	entries entries         // of a private daemon's configuration
}

func (d *daemon) String() string {
	if d.private != nil {
		return "the private Docker daemon"
	}
	return "the Docker daemon at " + d.host
}

// newDaemon connects to the user's daemon, or starts a private one, and has it pull the probe's image.
func newDaemon(ctx context.Context, s engine.Session) (*daemon, error) {
	if s.Registry == nil {
		return nil, errors.New("use Docker: the session has no registry to pull images from")
	}
	d, err := userDaemon(ctx, s)
	if d == nil && err == nil {
		d, err = startPrivate(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	if err := d.settle(ctx); err != nil {
		err = errors.Join(err, d.close(ctx))
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &engine.UnsupportedError{
			What: name, Reason: err.Error(), Advice: "the daemon has to reach this host's loopback address, and to have space for images",
		}
	}
	return d, nil
}

// settle has the daemon pull the probe's image. With the user's it is noted first that there will be something of the
// run's, so that it can be removed if the run is killed.
func (d *daemon) settle(ctx context.Context) error {
	if d.private != nil {
		return d.pull(ctx, d.session.Registry.Probe())
	}
	if err := d.session.RecordDaemon(name, d.host); err != nil {
		return err
	}
	return d.pull(ctx, d.session.Registry.Probe())
}

// userDaemon connects to the user's own daemon: the one that was named, or the one at the usual
// place if it answers. Without an error and a daemon a private one is called for.
func userDaemon(ctx context.Context, s engine.Session) (*daemon, error) {
	if s.Managed {
		return nil, nil
	}
	host, named := url(s.Sockets[name]), s.Sockets[name] != ""
	if !named {
		host = url(defaultSocket)
	}
	d := &daemon{session: s, host: host}
	err := d.connect(ctx)
	if err == nil || named {
		return d.orNil(err), err
	}
	if os.Geteuid() != 0 { // who would have to be root for a private one
		return nil, err
	}
	return nil, nil
}

// url spells the address of a daemon, which may be a path.
func url(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix://" + address
	}
	return address
}

func (d *daemon) orNil(err error) *daemon {
	if err != nil {
		return nil
	}
	return d
}

// connect asks a daemon that should be running what it is. If it cannot the error is an
// *engine.UnsupportedError.
func (d *daemon) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errNoAnswer)
	defer cancel()
	err := d.greet(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	advice := "start Docker, name its socket in DOCKER_HOST, or use a private daemon with --managed"
	if errors.Is(err, fs.ErrPermission) {
		advice = "run as root, or as a member of the socket's group"
	}
	return &engine.UnsupportedError{What: name, Reason: fmt.Sprintf("the daemon at %s: %v", d.host, err), Advice: advice}
}

func (d *daemon) greet(ctx context.Context) error {
	options := []client.Opt{client.WithHost(d.host)}
	switch scheme, path, _ := strings.Cut(d.host, "://"); scheme {
	case "unix":
		// The client's own messages tell these cases badly from each other.
		if err := checkSocket(ctx, path); err != nil {
			return err
		}
	case "tcp", "http", "https":
		options = slices.Insert(options, 0, client.WithTLSClientConfigFromEnv())
	default:
		return errors.New("this is neither a path nor an address with unix:// or tcp://")
	}
	var err error
	if d.client, err = client.New(options...); err != nil {
		return err
	}
	err = d.ask(ctx)
	if err == nil {
		err = d.here()
	}
	if err != nil {
		d.disconnect()
	}
	return err
}

// ask asks the daemon what it is.
func (d *daemon) ask(ctx context.Context) error {
	if _, err := d.client.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return &saidError{err}
	}
	answer, err := d.client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return &saidError{err}
	}
	if answer.Info.ServerVersion == "" {
		return errors.New("what answers is not Docker")
	}
	d.info = answer.Info
	return nil
}

// checkSocket finds out what is wrong with a socket.
func checkSocket(ctx context.Context, path string) error {
	stat, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such socket")
	case err != nil:
		return err
	case stat.Mode()&fs.ModeSocket == 0:
		return errors.New("this is not a socket")
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return errors.New("nobody listens on this socket")
	}
	if err != nil {
		return err
	}
	return conn.Close()
}

// here refuses a daemon of another host: what Touchstone notes about the host would be about the
// wrong one. A Unix socket leads to this host, or into a machine inside it, whose name differs.
func (d *daemon) here() error {
	self, err := os.Hostname()
	if err != nil || d.info.Name == self || strings.HasPrefix(d.host, "unix://") {
		return err
	}
	return fmt.Errorf("it runs on %s, and this is %s: what is measured must run on the host that is watched meanwhile; start Touchstone there", d.info.Name, self)
}

// disconnect gives up the connection.
func (d *daemon) disconnect() { _ = d.client.Close() } // it only closes idle connections, without errors

// end is close with what it was about.
func (d *daemon) end() error {
	if err := d.close(context.Background()); err != nil {
		return fmt.Errorf("end the use of %s: %w", d, err)
	}
	return nil
}

// close ends the use of the daemon: the probe's image goes from the user's, and a private one ends.
func (d *daemon) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
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

// removeImage removes an image unless it is gone.
func (d *daemon) removeImage(ctx context.Context, ref string) error {
	_, err := d.client.ImageRemove(ctx, ref, client.ImageRemoveOptions{PruneChildren: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return d.explain(ctx, "remove image "+ref, err)
	}
	return nil
}

// explain says what failed and what the daemon said, or why it says nothing any more.
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

// saidError leaves out of a message that it comes from the daemon.
type saidError struct{ err error }

func (e *saidError) Error() string {
	return strings.TrimPrefix(strings.TrimSpace(e.err.Error()), "Error response from daemon: ")
}

func (e *saidError) Unwrap() error { return e.err }
