// Command container builds the image of Touchstone itself, and pushes it:
//
//	container [-version VERSION] [-revision COMMIT] [-date UNIXTIME] build FOLDER FILE
//	container push LAYOUT REPOSITORY
//
// FOLDER has a folder for each architecture, with the program touchstone and the documents that a copy of it must carry. FILE gets an archive with
// an index of all architectures. It depends on the arguments and the files only. LAYOUT is the folder of an unpacked archive.
package main

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/github"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/touchstone-bench/touchstone/internal/image"
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "the VERSION of the image, which is its tag")
	flag.StringVar(&r.revision, "revision", "", "the COMMIT of the source")
	date := flag.Int64("date", 0, "the time of the image and its files, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 3 {
		flag.Usage()
		os.Exit(2)
	}
	r.date = time.Unix(*date, 0).UTC()
	ctx, err := context.Background(), error(nil)
	switch verb := flag.Arg(0); verb {
	case "build":
		err = r.build(ctx, os.Stdout, flag.Arg(1), flag.Arg(2))
	case "push":
		err = push(ctx, os.Stdout, flag.Arg(1), flag.Arg(2))
	default:
		err = fmt.Errorf("%q is neither build nor push", verb)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}

// release is the version of an image.
type release struct {
	version, revision string
	date              time.Time
}

const (
	source = "https://github.com/touchstone-bench/touchstone"
	// localName is the name of the image where it is loaded from the archive. "localhost" keeps programs from asking a registry for it.
	localName = "localhost/touchstone"
	// program is the path of the program in the image.
	program = "usr/bin/touchstone"
	// user is the user and the group of the process. Images without a shell usually have this number, which no system gives to a person.
	user = 65532
)

// build writes the archive, and prints the digest of its index.
func (r release) build(ctx context.Context, out io.Writer, dir, file string) (err error) {
	tag, err := name.NewTag(localName + ":" + r.version)
	if err != nil {
		return err
	}
	index, err := r.index(dir)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	archive, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(image.SaveTagged(ctx, archive, tag, r.date, index), archive.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, digest)
	return err
}

// index returns the images of all architectures in a folder.
func (r release) index(dir string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s has no folder of an architecture", dir)
	}
	for _, folder := range folders {
		arch := folder.Name()
		img, err := r.image(arch, filepath.Join(dir, arch))
		if err != nil {
			return nil, err
		}
		config, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	return mutate.Annotations(index, r.labels()).(v1.ImageIndex), nil
}

// image returns the image of an architecture. It has the program, users for programs that look up names, and an empty folder for results.
func (r release) image(arch, dir string) (v1.Image, error) {
	binary, err := os.ReadFile(filepath.Join(dir, "touchstone"))
	if err != nil {
		return nil, err
	}
	files := []image.File{
		{Name: "data/", Mode: 0o755, Owner: user},
		{Name: "dev/", Mode: 0o755}, // the mount points of runtimes, for containers with a read-only root
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/group", Mode: 0o644, Content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", user)},
		{Name: "etc/passwd", Mode: 0o644, Content: fmt.Appendf(nil, "root:x:0:0:root:/:/%s\nnonroot:x:%d:%[2]d:nonroot:/data:/%[1]s\n", program, user)},
		{Name: "proc/", Mode: 0o555},
		{Name: "sys/", Mode: 0o555},
		{Name: "tmp/", Mode: 0o1777},
		{Name: "usr/", Mode: 0o755},
		{Name: "usr/bin/", Mode: 0o755},
		{Name: program, Mode: 0o755, Content: binary},
		{Name: "usr/share/", Mode: 0o755},
		{Name: "usr/share/doc/", Mode: 0o755},
		{Name: "usr/share/doc/touchstone/", Mode: 0o755},
	}
	for _, document := range []string{"LICENSE", "THIRD-PARTY-LICENSES", "touchstone.spdx.json"} {
		text, err := os.ReadFile(filepath.Join(dir, document))
		if err != nil {
			return nil, err
		}
		files = append(files, image.File{Name: "usr/share/doc/touchstone/" + document, Mode: 0o644, Content: text})
	}
	layer, err := image.Layer(r.date, files, tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, err
	}
	return image.Compose(arch, "touchstone", r.date, v1.Config{
		Entrypoint: []string{"/" + program}, User: fmt.Sprintf("%d:%[1]d", user), WorkingDir: "/data",
		Env: []string{"PATH=" + image.SearchPath}, ExposedPorts: map[string]struct{}{"8642/tcp": {}}, Labels: r.labels(),
	}, layer)
}

// labels are the labels of each image, and the annotations of the index.
func (r release) labels() map[string]string {
	labels := map[string]string{
		"title": "Touchstone", "description": "Reports and comparisons of container runtimes", "licenses": "Apache-2.0", "source": source,
		"documentation": source + "/blob/main/docs/container.md", "version": r.version, "revision": r.revision, "created": r.date.Format(time.RFC3339),
	}
	qualified := make(map[string]string, len(labels))
	for label, text := range labels {
		qualified["org.opencontainers.image."+label] = text
	}
	return qualified
}

// push sends the index of a layout to a repository, under the tag of its version. The tag of a release never changes its image, so push refuses
// to move one. The credentials are Docker's and Podman's, and for GitHub's registry the variable GITHUB_TOKEN.
func push(ctx context.Context, out io.Writer, dir, repository string) error {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("%s has %d entries in its index.json, want the index of a release", dir, len(manifest.Manifests))
	}
	release := manifest.Manifests[0]
	index, err := top.ImageIndex(release.Digest)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(repository + ":" + release.Annotations["org.opencontainers.image.ref.name"])
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.NewMultiKeychain(authn.DefaultKeychain, github.Keychain))}
	published, err := remote.Head(tag, options...)
	var refusal *transport.Error
	switch {
	case err == nil && published.Digest == release.Digest:
	case err == nil:
		return fmt.Errorf("%s is another image, %s, and this one is %s: a published version does not change, so give this one another version",
			tag, published.Digest, release.Digest)
	case errors.As(err, &refusal) && refusal.StatusCode == http.StatusNotFound:
		if err := remote.WriteIndex(tag, index, options...); err != nil {
			return err
		}
	default:
		return err
	}
	_, err = fmt.Fprintf(out, "%s@%s\n", tag, release.Digest)
	return err
}
