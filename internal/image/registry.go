package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry serves images over HTTP to engines on this host, so that they pull in their ordinary
// way. It listens on a random port of the loopback address only, keeps what it serves in
// memory, and takes no image from outside. It must be closed.
type Registry struct {
	blobs  registry.BlobHandler
	server *http.Server
	port   int
	probe  string
	served sync.WaitGroup
}

// headerLimit bounds how long a client may take for the head of a request.
const headerLimit = 10 * time.Second

// NewRegistry starts a registry that has the probe's image.
func NewRegistry(ctx context.Context) (*Registry, error) {
	blobs := registry.NewInMemoryBlobHandler()
	serve := registry.New(registry.WithBlobHandler(blobs), registry.Logger(log.New(io.Discard, "", 0)))
	r := &Registry{blobs: blobs, server: &http.Server{Handler: serve, ReadHeaderTimeout: headerLimit, ErrorLog: log.New(io.Discard, "", 0)}}
	listen := net.ListenConfig{}
	l, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the image registry: %w", err)
	}
	r.port = l.Addr().(*net.TCPAddr).Port
	r.Serve(l)
	probe, err := Build(runtime.GOARCH)
	if err == nil {
		r.probe, err = r.Publish(ctx, "probe:latest", probe)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Addr is the address that is part of all references: 127.0.0.1 with a port.
func (r *Registry) Addr() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

// Port is the port of Addr.
func (r *Registry) Port() int { return r.port }

// Probe is the reference of the probe's image.
func (r *Registry) Probe() string { return r.probe }

// Serve answers on one more listener, until Close: that of another network namespace, where
// it should have the same port for references to mean the same.
func (r *Registry) Serve(l net.Listener) {
	r.served.Go(func() { _ = r.server.Serve(l) }) // it ends with Close
}

// Publish adds an image under a name with a tag and gives its reference.
func (r *Registry) Publish(ctx context.Context, as string, image v1.Image) (string, error) {
	ref, err := name.ParseReference(r.Addr()+"/touchstone/"+as, name.Insecure, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("publish image %s: %w", as, err)
	}
	// Without the proxies of the environment, which cannot reach loopback.
	direct := &http.Transport{Proxy: nil}
	defer direct.CloseIdleConnections()
	if err := remote.Write(ref, image, remote.WithContext(ctx), remote.WithTransport(direct)); err != nil {
		return "", fmt.Errorf("publish image %s: %w", as, err)
	}
	return ref.Name(), nil
}

// Close stops serving.
func (r *Registry) Close() error {
	err := r.server.Close()
	r.served.Wait()
	return err
}
