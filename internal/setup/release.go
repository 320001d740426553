package setup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/parts"
)

// Release is a file of a project: an archive (.tar.gz, .tgz), or the program itself.
type Release struct {
	URL    string
	SHA256 string
	Size   int64 // of the file, in bytes
}

func (r Release) name() string { return path.Base(r.URL) }

const (
	// stallLimit is the longest time without a byte of a download. The whole download has no limit: a slow network is not a fault.
	stallLimit = time.Minute
	// mostRedirects is the largest number of redirects of a download.
	mostRedirects = 10
)

// errStalled is the cause of a download without progress.
var errStalled = fmt.Errorf("no byte has come for %v", stallLimit)

// fetch downloads a release into a directory, and checks its size and checksum.
func (r Release) fetch(ctx context.Context, client *http.Client, dir string) (string, error) {
	file := filepath.Join(dir, r.name())
	if err := r.download(ctx, client, file, stallLimit); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("download %s: %w", r.URL, err)
	}
	return file, verify(file, r.SHA256)
}

func (r Release) download(ctx context.Context, client *http.Client, file string, limit time.Duration) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	guarded := *client
	guarded.CheckRedirect = checkRedirect
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return err
	}
	watch := newWatch(ctx, cancel, limit)
	defer watch.stop()
	response, err := guarded.Do(request)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // it is only read from
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	size, err := io.Copy(out, watch.reader(io.LimitReader(response.Body, r.Size+1)))
	err = errors.Join(causeOf(ctx, err), out.Close())
	switch {
	case err != nil:
		return fmt.Errorf("after %d of %d bytes: %w", size, r.Size, err)
	case size < r.Size:
		return fmt.Errorf("the file ends after %d of %d bytes", size, r.Size)
	case size > r.Size:
		return fmt.Errorf("the file has more than %d bytes, so it is not the release", r.Size)
	}
	return nil
}

// causeOf replaces an error by the cause of the cancelled context behind it.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// checkRedirect follows a server only to https, or to the same host. Otherwise another computer on the way could read the request, or send
// it to a server of the user's own network.
func checkRedirect(request *http.Request, requests []*http.Request) error {
	first := requests[0].URL
	switch {
	case len(requests) >= mostRedirects:
		return fmt.Errorf("the server redirects more than %d times", mostRedirects)
	case request.URL.Scheme == "https" || sameHost(request.URL, first) && request.URL.Scheme == first.Scheme:
		return nil
	}
	return fmt.Errorf("the server redirects to %s, which is neither https nor the same host", request.URL.Redacted())
}

func sameHost(a, b *url.URL) bool { return strings.EqualFold(a.Host, b.Host) }

// watch ends a context if nothing is read for a time.
type watch struct {
	progress chan struct{}
	end      context.CancelFunc
}

func newWatch(ctx context.Context, cancel context.CancelCauseFunc, limit time.Duration) watch {
	ctx, end := context.WithCancel(ctx)
	w := watch{make(chan struct{}), end}
	go func() {
		for ctx.Err() == nil {
			silence, stop := context.WithTimeout(ctx, limit)
			select {
			case <-w.progress:
			case <-silence.Done():
				if ctx.Err() == nil {
					cancel(errStalled)
					end()
				}
			}
			stop()
		}
	}()
	return w
}

func (w watch) stop() { w.end() }

// reader passes the bytes of a reader on, and reports each read.
func (w watch) reader(r io.Reader) io.Reader { return watched{r, w.progress} }

type watched struct {
	io.Reader
	progress chan<- struct{}
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		select {
		case w.progress <- struct{}{}:
		default: // the goroutine is about to look
		}
	}
	return n, err
}

// verify compares the checksum of a file.
func verify(file, want string) error {
	sum, err := parts.Digest(file)
	if err == nil && sum != want {
		err = fmt.Errorf("%s has the SHA-256 %s, and the lock has %s: it is damaged, or not the file that was locked", filepath.Base(file), sum, want)
	}
	return err
}

// unpack writes the programs of a release to a directory.
func unpack(file, bin string, programs []string) error {
	if !strings.HasSuffix(file, ".tar.gz") && !strings.HasSuffix(file, ".tgz") {
		_, err := move(file, filepath.Join(bin, programs[0]))
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it is only read from
	text, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
	}
	archive := tar.NewReader(text)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
		}
		// The names of the lock choose the files, so no path of the archive leaves the directory.
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains(programs, name) {
			continue
		}
		if err := write(filepath.Join(bin, name), archive); err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
		}
	}
}

func write(file string, text io.Reader) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, text)
	return errors.Join(err, out.Close())
}

// move renames a regular file. It returns false if the file does not exist.
func move(source, destination string) (bool, error) {
	info, err := os.Lstat(source)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return false, nil
	}
	if err == nil {
		err = os.Rename(source, destination)
	}
	return err == nil, err
}
