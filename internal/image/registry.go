package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"golang.org/x/sys/unix"
)

// Registry serves images over HTTP to engines on this host, so that they can pull in the usual way. It keeps images in memory unless they
// are in files. It refuses uploads: it handles only GET and HEAD, and only Publish, Fresh and Minimal add images. It must be closed.
//
// It uses only the loopback address, on a random port. It listens in the network namespaces of private engines, and on the host only after
// ServeHost, for an engine of the user. Other users of the host can reach it there. So the path of all images has a random part, no request
// lists the images, and the Host header must have the registry's address: the page of a browser has another name in it, also if that
// name resolves to the loopback address (DNS rebinding).
//
// The registry of go-containerregistry was rejected: it accepts uploads from every client, responds with 416 to containerd's open-ended
// range requests, and keeps the names of deleted images.
type Registry struct {
	server *http.Server
	port   int
	host   *os.File // the socket on the host, which reserves the port
	path   string   // the path of all repositories
	probe  string
	served sync.WaitGroup

	mu     sync.RWMutex
	onHost bool                  // the host's socket listens
	made   int                   // the number of images that Fresh and Minimal created
	images map[string]*published // by reference
	sent   map[v1.Hash]int64     // bytes of blobs in memory that clients have received
}

// published is an image. A run has a few at a time, so the registry searches all of them for a digest.
type published struct {
	name.Tag
	mediaType string
	digest    v1.Hash
	manifest  []byte
	blobs     map[v1.Hash]opener // the layers and the configuration
}

// opener opens the content of a blob, which is an io.ReadSeeker.
type opener func() (io.ReadCloser, error)

// inMemory returns an opener of content in memory.
func inMemory(content []byte) opener {
	return func() (io.ReadCloser, error) { return memory{bytes.NewReader(content), int64(len(content))}, nil }
}

type memory struct {
	io.ReadSeeker
	size int64
}

func (memory) Close() error { return nil }

// loopback is the address of all registries.
const loopback = "127.0.0.1"

// The timeouts of a connection, so that a slow client does not hold it. A client continues a broken pull.
const (
	headerLimit  = 10 * time.Second // for the header of a request
	requestLimit = time.Minute      // for a request with its body
	writeLimit   = 30 * time.Minute // for a response: a layer has up to some gigabytes, and an engine unpacks it meanwhile
	idleLimit    = time.Minute      // between two requests
)

// repositories returns the beginning of the path of all repositories of a run.
func repositories(runID string) string { return "touchstone/" + runID + "/" }

// IsOf reports whether a reference belongs to an image that a run published. Cleanup uses it to find the run's images in an
// engine.
func IsOf(ref, runID string) bool {
	host, path, ok := strings.Cut(ref, "/")
	return ok && strings.HasPrefix(host, loopback+":") && strings.HasPrefix(path, repositories(runID))
}

// NewRegistry starts a registry with the probe image. All references contain the run's ID, so it must be lower case.
func NewRegistry(ctx context.Context, runID string) (*Registry, error) {
	r := &Registry{path: repositories(runID) + strings.ToLower(crand.Text()) + "/", images: map[string]*published{}, sent: map[v1.Hash]int64{}}
	r.server = &http.Server{
		Handler: r, ReadHeaderTimeout: headerLimit, ReadTimeout: requestLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	if err := r.reserve(); err != nil {
		return nil, fmt.Errorf("start the image registry: %w", err)
	}
	probe, err := Build(runtime.GOARCH)
	if err == nil {
		r.probe, err = r.Publish(ctx, "probe:latest", probe)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// reserve binds a socket to a free port of the host. The port refuses connections until the socket listens.
func (r *Registry) reserve() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	r.host = os.NewFile(uintptr(fd), "registry")
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	var address unix.Sockaddr
	if err == nil {
		address, err = unix.Getsockname(fd)
	}
	if err != nil {
		return errors.Join(os.NewSyscallError("bind", err), r.host.Close())
	}
	r.port = address.(*unix.SockaddrInet4).Port
	return nil
}

// ServeHost serves on the host too, for an engine of the user. It is idempotent.
func (r *Registry) ServeHost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.onHost {
		return nil
	}
	err := os.NewSyscallError("listen", unix.Listen(int(r.host.Fd()), unix.SOMAXCONN))
	var l net.Listener
	if err == nil {
		l, err = net.FileListener(r.host)
	}
	if err != nil {
		return fmt.Errorf("serve images on the host: %w", err)
	}
	r.onHost = true
	r.Serve(l)
	return nil
}

// Addr returns the address in all references: 127.0.0.1 with a port.
func (r *Registry) Addr() string { return fmt.Sprintf("%s:%d", loopback, r.port) }

// Port returns the port of Addr.
func (r *Registry) Port() int { return r.port }

// Probe returns the reference of the probe image.
func (r *Registry) Probe() string { return r.probe }

// Serve serves on another listener until Close, for example in another network namespace. The listener should have the same port, so that
// references are valid there.
func (r *Registry) Serve(l net.Listener) {
	r.served.Go(func() { _ = r.server.Serve(l) }) // returns at Close
}

// Publish adds an image under a name with a tag, replaces an earlier image with this name, and returns the reference.
func (r *Registry) Publish(ctx context.Context, tag string, image v1.Image) (string, error) {
	ref, err := name.NewTag(r.Addr()+"/"+r.path+tag, name.Insecure, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("publish image %s: %w", tag, err)
	}
	p, err := newPublished(ctx, ref, image)
	if err != nil {
		return "", fmt.Errorf("publish image %s: %w", tag, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[ref.Name()] = p
	return ref.Name(), nil
}

func newPublished(ctx context.Context, ref name.Tag, image v1.Image) (*published, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	d, err := partial.Descriptor(image)
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	p := &published{ref, string(d.MediaType), d.Digest, manifest, map[v1.Hash]opener{digestOf(config): inMemory(config)}}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		hash, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		if p.blobs[hash], err = openerOf(layer); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// openerOf returns an opener of a layer. If the layer is in a file, each call opens the file. Otherwise openerOf reads the layer into
// memory now.
func openerOf(layer v1.Layer) (open opener, err error) {
	size, err := layer.Size()
	if err != nil {
		return nil, err
	}
	r, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, ok := r.(io.ReadSeeker); ok {
		return layer.Compressed, nil
	}
	content := make([]byte, size)
	_, err = io.ReadFull(r, content)
	return inMemory(content), err
}

// FreshPath is the path of the random file in a fresh image.
const FreshPath = "/fresh"

// Fresh publishes an image that no engine has in its cache: the probe image and another layer with one file of size bytes. It returns
// the reference for Forget.
//
// The content is random and does not compress, so an engine transfers and unpacks size bytes. The seed differs for each image and does not
// come from the run, because an engine may still have the layers of an earlier run.
func (r *Registry) Fresh(ctx context.Context, size int64) (string, error) {
	image, err := freshImage(size)
	if err != nil {
		return "", fmt.Errorf("create a fresh image of %d bytes: %w", size, err)
	}
	r.mu.Lock()
	r.made++
	tag := fmt.Sprintf("fresh:%d", r.made)
	r.mu.Unlock()
	return r.Publish(ctx, tag, image)
}

func freshImage(size int64) (v1.Image, error) {
	base, err := Build(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // Read never fails
	content, err := packBytes(rand.NewChaCha8(seed), size)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(content)
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: Epoch()}, CreatedBy: "touchstone"},
	})
}

// packBytes packs a file with size bytes as a layer: tar inside gzip. It does not compress, because random bytes do not become
// smaller.
func packBytes(content io.Reader, size int64) ([]byte, error) {
	const overhead = 4 << 10 // for the padding of tar and the headers of gzip's blocks of 64 KiB
	layer := bytes.NewBuffer(make([]byte, 0, size+size/(8<<10)+overhead))
	zip, err := gzip.NewWriterLevel(layer, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zip)
	err = w.WriteHeader(&tar.Header{
		Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: FreshPath[1:], Mode: 0o644, Size: size, ModTime: Epoch(),
	})
	if err == nil {
		_, err = io.CopyN(w, content, size)
	}
	if err := errors.Join(err, w.Close(), zip.Close()); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}

// Forget removes an image. It is idempotent.
func (r *Registry) Forget(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for hash := range r.own(ref) {
		delete(r.sent, hash)
	}
	delete(r.images, ref)
}

// Served returns the size of the blobs that only this image has, and how many of their bytes clients have received. An engine that
// has pulled a fresh image has received all of them. It may have the other blobs in its cache. Blobs in files are not counted, so that
// the kernel can send them without a copy.
func (r *Registry) Served(ref string) (sum, size int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for hash, bytes := range r.own(ref) {
		sum += min(r.sent[hash], bytes)
		size += bytes
	}
	return sum, size
}

// own returns the sizes of the blobs in memory that no other image has. r.mu is held.
func (r *Registry) own(ref string) map[v1.Hash]int64 {
	sizes := map[v1.Hash]int64{}
	p := r.images[ref]
	if p == nil {
		return sizes
	}
	for hash, open := range p.blobs {
		content, err := open()
		if err != nil {
			continue // only files can fail
		}
		if m, ok := content.(memory); ok {
			sizes[hash] = m.size
		}
		_ = content.Close() // it was not read
	}
	for candidate, q := range r.images {
		for hash := range q.blobs {
			if candidate != ref {
				delete(sizes, hash)
			}
		}
	}
	return sizes
}

// find returns an image with a property, or nil.
func (r *Registry) find(property func(*published) bool) *published {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, p := range r.images {
		if property(p) {
			return p
		}
	}
	return nil
}

// Has reports whether the registry has the image of a reference from Publish or Fresh.
func (r *Registry) Has(ref string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.images[ref]
	return ok
}

// Close stops serving.
func (r *Registry) Close() error {
	err := errors.Join(r.server.Close(), r.host.Close())
	r.served.Wait()
	return err
}

// ServeHTTP implements the pull part of the OCI distribution specification.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry is read-only")
		return
	}
	if request.Host != r.Addr() {
		refuse(w, http.StatusMisdirectedRequest, "DENIED", "the request is for another host")
		return
	}
	path, object := strings.Trim(request.URL.Path, "/"), object.FindStringSubmatch(request.URL.Path)
	switch {
	case path == "v2": // a client checks whether this is a registry
	case object == nil:
		refuse(w, http.StatusNotFound, "UNSUPPORTED", "this registry only serves manifests and blobs")
	case object[2] == "manifests":
		r.serveManifest(w, request, object[1], object[3])
	default:
		r.serveBlob(w, request, object[1], object[3])
	}
}

// object matches the path of an object: the repository, the kind, and the tag or digest.
var object = regexp.MustCompile(`^/v2/(.*)/(manifests|blobs)/([^/]+)$`)

// serveManifest serves the manifest with a tag or a digest. Engines resolve the tag to a digest, and then request the manifest by digest.
func (r *Registry) serveManifest(w http.ResponseWriter, request *http.Request, repository, reference string) {
	p := r.find(func(p *published) bool {
		return p.RepositoryStr() == repository && (p.TagStr() == reference || p.digest.String() == reference)
	})
	if p == nil {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "unknown image")
		return
	}
	serve(w, request, p.mediaType, p.digest, bytes.NewReader(p.manifest))
}

func (r *Registry) serveBlob(w http.ResponseWriter, request *http.Request, repository, digest string) {
	hash, err := v1.NewHash(digest)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", "invalid digest")
		return
	}
	p := r.find(func(p *published) bool { return p.RepositoryStr() == repository && p.blobs[hash] != nil })
	if p == nil {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "unknown blob")
		return
	}
	content, err := p.blobs[hash]()
	if err != nil {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "the blob's file cannot be read")
		return
	}
	defer func() { _ = content.Close() }() // it was only read
	if _, ok := content.(memory); ok {
		w = counted{w, func(n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sent[hash] += int64(n)
		}}
	}
	serve(w, request, "application/octet-stream", hash, content.(io.ReadSeeker))
}

// counted counts the bytes of a response before it sends them, so that the count is complete when the client has received them.
type counted struct {
	http.ResponseWriter
	count func(int)
}

func (c counted) Write(p []byte) (int, error) {
	c.count(len(p))
	n, err := c.ResponseWriter.Write(p)
	c.count(n - len(p))
	return n, err
}

// serve sends content, or the requested range of it.
func serve(w http.ResponseWriter, request *http.Request, mediaType string, digest v1.Hash, content io.ReadSeeker) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest.String())
	http.ServeContent(w, request, "", time.Time{}, content)
}

// refuse sends an error in the format of the specification.
func refuse(w http.ResponseWriter, status int, code, message string) {
	sendJSON(w, status, map[string][]map[string]string{"errors": {{"code": code, "message": message}}})
}

func sendJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that the client has closed the connection.
	_ = json.NewEncoder(w).Encode(body)
}
