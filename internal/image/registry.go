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

// Registry serves images over HTTP to engines on this host, so that they pull in their ordinary
// way. It listens on a random port of the loopback address only, keeps in memory what lies in
// no file, and takes no image from outside: it answers GET and HEAD, and what it has comes from
// Publish and Fresh alone. It must be closed.
//
// The one of go-containerregistry was rejected: it takes uploads from whoever can reach it, answers
// 416 to the open-ended ranges that containerd asks for, and remembers the names of what was deleted.
type Registry struct {
	server *http.Server
	port   int
	path   string // of all repositories
	probe  string
	served sync.WaitGroup

	mu        sync.RWMutex
	fresh     int                  // images that Fresh has made
	images    map[string]published // by reference
	manifests map[string]manifest  // by repository and tag, "touchstone/RUN/probe:latest"
	blobs     map[v1.Hash]*blob
}

// published is what goes when an image is forgotten.
type published struct {
	manifests []string
	blobs     []v1.Hash
}

type manifest struct {
	mediaType string
	digest    v1.Hash
	content   []byte
}

// blob is a layer or a configuration, which images may share.
type blob struct {
	open func() (io.ReadSeekCloser, error)
	uses int
}

// inMemory opens what is kept in memory.
func inMemory(content []byte) func() (io.ReadSeekCloser, error) {
	return func() (io.ReadSeekCloser, error) { return readSeekNopCloser{bytes.NewReader(content)}, nil }
}

type readSeekNopCloser struct{ io.ReadSeeker }

func (readSeekNopCloser) Close() error { return nil }

// loopback is the address of all registries.
const loopback = "127.0.0.1"

// headerLimit bounds how long a client may take for the head of a request.
const headerLimit = 10 * time.Second

// repositories is the path of all repositories of a run.
func repositories(runID string) string { return "touchstone/" + runID + "/" }

// IsOf tells whether a reference is one of an image that a run has published. By it an image is
// known as the run's that is still with an engine.
func IsOf(ref, runID string) bool {
	host, path, ok := strings.Cut(ref, "/")
	return ok && strings.HasPrefix(host, loopback+":") && strings.HasPrefix(path, repositories(runID))
}

// NewRegistry starts a registry that has the probe's image. The run's ID is part of all references,
// so it must be of lower case.
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

// Addr is the address that is part of all references: 127.0.0.1 with a port.
func (r *Registry) Addr() string { return fmt.Sprintf("%s:%d", loopback, r.port) }

// Port is the port of Addr.
func (r *Registry) Port() int { return r.port }

// Probe is the reference of the probe's image.
func (r *Registry) Probe() string { return r.probe }

// Serve answers on one more listener, until Close: that of another network namespace, where
// it should have the same port for references to mean the same.
func (r *Registry) Serve(l net.Listener) {
	r.served.Go(func() { _ = r.server.Serve(l) }) // it ends with Close
}

// Publish adds an image under a name with a tag, in place of the one that has it, and gives its
// reference.
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
	// By its digest too: engines ask again by what the tag has given them.
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

// contentsOf gives the configuration and the layers of an image.
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

// opener gives how to open a layer: its file, as often as it is asked for, if that is what the image
// has; else what is read of it now.
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
				return nil, errors.Join(errors.New("the layer is no file any more"), r.Close())
			}
			return file, nil
		}, nil
	}
	content := make([]byte, size)
	_, err = io.ReadFull(r, content)
	return inMemory(content), err
}

// Forget removes an image, with all of it that no other one shares. It is idempotent.
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

// Has tells whether there is an image of the reference that Publish or Fresh gave.
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

// ServeHTTP answers as the OCI distribution specification says for pulling.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry takes nothing from clients")
		return
	}
	path, ok := strings.CutPrefix(request.URL.Path, "/v2")
	if path = strings.Trim(path, "/"); ok && path == "" {
		return // the question whether this is a registry
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

// serveCatalog lists the repositories, for whoever looks what is served here.
func (r *Registry) serveCatalog(w http.ResponseWriter) {
	names := map[string]bool{}
	r.mu.RLock()
	for key := range r.manifests {
		names[key[:strings.IndexAny(key, ":@")]] = true
	}
	r.mu.RUnlock()
	answer(w, http.StatusOK, map[string][]string{"repositories": slices.Sorted(maps.Keys(names))})
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
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "there is no such image")
		return
	}
	serve(w, request, m.mediaType, m.digest, bytes.NewReader(m.content))
}

func (r *Registry) serveBlob(w http.ResponseWriter, request *http.Request, digest string) {
	hash, err := v1.NewHash(digest)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", "that is no digest")
		return
	}
	r.mu.RLock()
	b, ok := r.blobs[hash]
	r.mu.RUnlock()
	if !ok {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "there is no such blob")
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

// serve sends content, or the range of it that was asked for.
func serve(w http.ResponseWriter, request *http.Request, mediaType string, digest v1.Hash, content io.ReadSeeker) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest.String())
	http.ServeContent(w, request, "", time.Time{}, content)
}

// refuse answers with an error as the specification has it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	type flaw struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	answer(w, status, map[string][]flaw{"errors": {{code, message}}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// Who does not read the answer does not want it.
	_ = json.NewEncoder(w).Encode(body)
}
