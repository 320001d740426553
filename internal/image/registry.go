package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Registry serves images over HTTP to engines on this host, so that they can pull in the usual way. It listens only on the
// loopback address, on a random port. It keeps images in memory unless they are in files. It refuses uploads: it handles only
// GET and HEAD, and only Publish and Fresh add images. It must be closed.
//
// The registry of go-containerregistry was rejected: it accepts uploads from every client, responds with 416 to containerd's open-ended
// range requests, and keeps the names of deleted images.
type Registry struct {
	server *http.Server
	port   int
	path   string // the path of all repositories
	probe  string
	served sync.WaitGroup

	mu        sync.RWMutex
	fresh     int                  // the number of images that Fresh created
	images    map[string]published // by reference
	manifests map[string]manifest  // by repository and tag, "touchstone/RUN/probe:latest"
	blobs     map[v1.Hash]*blob
}

// published lists the objects that Forget removes with an image.
type published struct {
	manifests []string
	blobs     []v1.Hash
}

type manifest struct {
	mediaType string
	digest    v1.Hash
	content   []byte
}

// blob is a layer or a configuration. Several images may share it.
type blob struct {
	open func() (io.ReadSeekCloser, error)
	uses int // the number of images
}

// inMemory returns an opener of content in memory.
func inMemory(content []byte) func() (io.ReadSeekCloser, error) {
	return func() (io.ReadSeekCloser, error) { return readSeekNopCloser{bytes.NewReader(content)}, nil }
}

type readSeekNopCloser struct{ io.ReadSeeker }

func (readSeekNopCloser) Close() error { return nil }

// loopback is the address of all registries.
const loopback = "127.0.0.1"

// headerLimit is the timeout for reading the header of a request.
const headerLimit = 10 * time.Second

// repositories returns the path of all repositories of a run.
func repositories(runID string) string { return "touchstone/" + runID + "/" }

// IsOf reports whether a reference belongs to an image that a run published. Cleanup uses it to find the run's images in an
// engine.
func IsOf(ref, runID string) bool {
	host, path, ok := strings.Cut(ref, "/")
	return ok && strings.HasPrefix(host, loopback+":") && strings.HasPrefix(path, repositories(runID))
}

// NewRegistry starts a registry with the probe image. All references contain the run's ID, so it must be lower case.
func NewRegistry(ctx context.Context, runID string) (*Registry, error) {
	r := &Registry{path: repositories(runID), images: map[string]published{}, manifests: map[string]manifest{}, blobs: map[v1.Hash]*blob{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: headerLimit, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	listen := net.ListenConfig{}
	l, err := listen.Listen(ctx, "tcp4", loopback+":0")
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
func (r *Registry) Publish(ctx context.Context, as string, image v1.Image) (string, error) {
	ref, err := name.NewTag(r.Addr()+"/"+r.path+as, name.Insecure, name.StrictValidation)
	if err == nil {
		err = r.publish(ctx, ref, image)
	}
	if err != nil {
		return "", fmt.Errorf("publish image %s: %w", as, err)
	}
	return ref.Name(), nil
}

func (r *Registry) publish(ctx context.Context, ref name.Tag, image v1.Image) error {
	m, err := manifestOf(image)
	if err != nil {
		return err
	}
	contents, err := contentsOf(ctx, image)
	if err != nil {
		return err
	}
	r.Forget(ref.Name())
	r.mu.Lock()
	defer r.mu.Unlock()
	// Engines resolve the tag to a digest, and then request the manifest by digest.
	keys := []string{ref.RepositoryStr() + ":" + ref.TagStr(), ref.RepositoryStr() + "@" + m.digest.String()}
	p := published{manifests: keys}
	for _, key := range keys {
		r.manifests[key] = m
	}
	for hash, open := range contents {
		b := r.blobs[hash]
		if b == nil {
			b = &blob{open: open}
			r.blobs[hash] = b
		}
		b.uses++
		p.blobs = append(p.blobs, hash)
	}
	r.images[ref.Name()] = p
	return nil
}

func manifestOf(image v1.Image) (manifest, error) {
	content, err := image.RawManifest()
	if err != nil {
		return manifest{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return manifest{}, err
	}
	mediaType, err := image.MediaType()
	return manifest{mediaType: string(mediaType), digest: digest, content: content}, err
}

// contentsOf returns openers of the configuration and the layers of an image.
func contentsOf(ctx context.Context, image v1.Image) (map[v1.Hash]func() (io.ReadSeekCloser, error), error) {
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	hash, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	contents := map[v1.Hash]func() (io.ReadSeekCloser, error){hash: inMemory(config)}
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
		if contents[hash], err = opener(layer); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// opener returns an opener of a layer. If the layer is in a file, each call opens the file. Otherwise opener reads the layer into
// memory now.
func opener(layer v1.Layer) (open func() (io.ReadSeekCloser, error), err error) {
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
		return func() (io.ReadSeekCloser, error) {
			r, err := layer.Compressed()
			if err != nil {
				return nil, err
			}
			file, ok := r.(io.ReadSeekCloser)
			if !ok {
				return nil, errors.Join(errors.New("the layer is no longer a file"), r.Close())
			}
			return file, nil
		}, nil
	}
	content := make([]byte, size)
	_, err = io.ReadFull(r, content)
	return inMemory(content), err
}

// Forget removes an image with all blobs that no other image shares. It is idempotent.
func (r *Registry) Forget(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.images[ref]
	delete(r.images, ref)
	for _, key := range p.manifests {
		delete(r.manifests, key)
	}
	for _, hash := range p.blobs {
		b := r.blobs[hash]
		if b.uses--; b.uses == 0 {
			delete(r.blobs, hash)
		}
	}
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
	err := r.server.Close()
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
	path, ok := strings.CutPrefix(request.URL.Path, "/v2")
	if path = strings.Trim(path, "/"); ok && path == "" {
		return // a client checks whether this is a registry
	}
	rest, reference := cutLast(path)
	repository, kind := cutLast(rest)
	switch {
	case kind == "manifests":
		r.serveManifest(w, request, repository, reference)
	case kind == "blobs":
		r.serveBlob(w, request, reference)
	case path == "_catalog":
		r.serveCatalog(w)
	default:
		refuse(w, http.StatusNotFound, "UNSUPPORTED", "this registry only serves manifests and blobs")
	}
}

// serveCatalog lists the repositories, for debugging.
func (r *Registry) serveCatalog(w http.ResponseWriter) {
	names := map[string]bool{}
	r.mu.RLock()
	for key := range r.manifests {
		names[key[:strings.IndexAny(key, ":@")]] = true
	}
	r.mu.RUnlock()
	sendJSON(w, http.StatusOK, map[string][]string{"repositories": slices.Sorted(maps.Keys(names))})
}

// cutLast cuts a path before its last element.
func cutLast(path string) (before, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

func (r *Registry) serveManifest(w http.ResponseWriter, request *http.Request, repository, reference string) {
	key := repository + ":" + reference
	if strings.Contains(reference, ":") { // a digest
		key = repository + "@" + reference
	}
	r.mu.RLock()
	m, ok := r.manifests[key]
	r.mu.RUnlock()
	if !ok {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "unknown image")
		return
	}
	serve(w, request, m.mediaType, m.digest, bytes.NewReader(m.content))
}

func (r *Registry) serveBlob(w http.ResponseWriter, request *http.Request, digest string) {
	hash, err := v1.NewHash(digest)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", "invalid digest")
		return
	}
	r.mu.RLock()
	b, ok := r.blobs[hash]
	r.mu.RUnlock()
	if !ok {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "unknown blob")
		return
	}
	content, err := b.open()
	if err != nil {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "the blob's file cannot be read")
		return
	}
	serve(w, request, "application/octet-stream", hash, content)
	_ = content.Close() // it was only read
}

// serve sends content, or the requested range of it.
func serve(w http.ResponseWriter, request *http.Request, mediaType string, digest v1.Hash, content io.ReadSeeker) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest.String())
	http.ServeContent(w, request, "", time.Time{}, content)
}

// refuse sends an error in the format of the specification.
func refuse(w http.ResponseWriter, status int, code, message string) {
	type problem struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	sendJSON(w, status, map[string][]problem{"errors": {{code, message}}})
}

func sendJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that the client has closed the connection.
	_ = json.NewEncoder(w).Encode(body)
}
