// Package web serves the content of a results file as pages: the runs, one run, a fleet, a comparison of two sides, the history of a metric, the machines
// and the baselines. The pages are the documents of the command line, below a bar with links, and `?format=` gives every other format of them.
//
// The server only reads. It opens the results file for each request, so a run that is measured meanwhile is not disturbed, and appears. A page needs
// no script: it is complete HTML, filters and comparisons are forms, and the page of a run under way asks the browser to load it again.
//
// It refuses every method but GET and HEAD, every request for a host that is not its own, against pages of others that make a
// browser read results (DNS rebinding), and with a token every request without it. Text of runs stays text, as in files.
package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	site "github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// Config has the parts of the command line that the pages need.
type Config struct {
	// Read opens the results file for reading, calls do and closes the file. Its errors contain the remedy.
	Read func(ctx context.Context, do func(*store.Store) error) error
	// Write writes a document in a format that is no page. The text must not control the terminal of a client.
	Write func(w io.Writer, format string, d *document.Document) error
	// Exports are the formats of whole runs.
	Exports []Export
	// Address is the address that the server listens at.
	Address netip.Addr
	// Token is the secret that each request must have; empty without one.
	Token string
}

// Export is a format of whole runs.
type Export struct {
	// Name is the value of ?format=. It is no name of a format of documents.
	Name  string
	Write func(w io.Writer, runs ...result.Run) error
}

// mostReports is the number of documents of whole runs that are made at the same time. Each takes a CPU and the memory of its runs.
const mostReports = 2

type server struct {
	Config
	session string // the value of the cookie
	cache   cache
	reports chan struct{}
}

// New returns the handler of all pages.
func New(c Config) http.Handler {
	s := &server{Config: c, session: rand.Text(), reports: make(chan struct{}, mostReports)}
	mux := http.NewServeMux()
	mux.Handle("/{$}", s.serve(s.runs))
	mux.Handle("/run/{id}", s.serve(s.run))
	mux.Handle("/compare", s.serve(s.compare))
	mux.Handle("/history", s.serve(s.history))
	mux.Handle("/machines", s.serve(s.machines))
	mux.Handle("/baselines", s.serve(s.baselines))
	mux.HandleFunc("/login", s.login)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &requestError{http.StatusNotFound, errors.New("no page has this address")})
	})
	return s.guard(mux)
}

// view is a page before its content is made.
type view struct {
	// address is the canonical address of the page, for the links to its formats.
	address string
	// key identifies the content: equal keys have equal content. It is empty for content that can change.
	key string
	// refresh is the number of seconds until the browser loads the page again.
	refresh int
	// whole is set if the content needs whole runs, which take time and memory.
	whole bool
	// document makes the answer.
	document func() (*document.Document, error)
	// html writes the page in place of the document's; nil for most views. policy is the policy of such a page.
	html   func(io.Writer, *site.Site) error
	policy string
	// load reads the runs for an export; nil for a view without runs.
	load func() ([]result.Run, error)
}

// page makes the view of a request from the results file.
type page func(ctx context.Context, db *store.Store, r *http.Request) (view, error)

const (
	// pageFormat is the format of a page with its links, and fileFormat the file without them.
	pageFormat = ""
	fileFormat = "html"
)

func (s *server) serve(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v view
		var content []byte
		format := r.URL.Query().Get("format")
		ctx := r.Context()
		err := s.Read(ctx, func(db *store.Store) (err error) {
			if v, err = p(ctx, db, r); err == nil {
				content, err = s.content(ctx, &v, format, r.URL.Path)
			}
			return err
		})
		if err != nil {
			s.fail(w, r, err)
			return
		}
		switch format {
		case pageFormat:
			w.Header().Set("Content-Security-Policy", cmp.Or(v.policy, pagePolicy))
		case fileFormat:
			w.Header().Set("Content-Security-Policy", pagePolicy)
		}
		w.Header().Set("Content-Type", contentType(format))
		_, _ = w.Write(content) // the client may have gone
	})
}

// content returns the bytes of a view in a format, from the cache if it can.
func (s *server) content(ctx context.Context, v *view, format, path string) ([]byte, error) {
	key := format + " " + v.key
	if content, ok := s.cache.get(key); v.key != "" && ok {
		return content, nil
	}
	if v.whole {
		select {
		case s.reports <- struct{}{}:
			defer func() { <-s.reports }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if content, ok := s.cache.get(key); v.key != "" && ok { // another request has made it meanwhile
			return content, nil
		}
	}
	var out bytes.Buffer
	if err := s.write(&out, v, format, path); err != nil {
		return nil, err
	}
	if v.key != "" {
		s.cache.put(key, out.Bytes())
	}
	return out.Bytes(), nil
}

func (s *server) write(w io.Writer, v *view, format, path string) error {
	if index := slices.IndexFunc(s.Exports, func(e Export) bool { return e.Name == format }); index >= 0 && v.load != nil {
		runs, err := v.load()
		if err != nil {
			return err
		}
		return s.Exports[index].Write(w, runs...)
	}
	if names := s.formats(v); format != pageFormat && !slices.Contains(names, format) {
		return &requestError{http.StatusBadRequest, fmt.Errorf("the page has no format %q; the formats are %s", format, strings.Join(names, ", "))}
	}
	if format == pageFormat && v.html != nil {
		return v.html(w, s.site(v, path))
	}
	d, err := v.document()
	switch {
	case err != nil:
		return err
	case format == pageFormat:
		return html.WriteOn(w, d, s.site(v, path))
	}
	return s.Write(w, format, d)
}

// formats are the names of the formats of a view. Lists of records have no typeset formats, and no page has the format of gates.
func (s *server) formats(v *view) []string {
	var names []string
	for _, f := range render.Formats() {
		if f.Name != "junit" && (v.whole || !f.Typeset) {
			names = append(names, f.Name)
		}
	}
	if v.load != nil {
		for _, e := range s.Exports {
			names = append(names, e.Name)
		}
	}
	return names
}

// site is the bar of a view at a path.
func (s *server) site(v *view, path string) *site.Site {
	bar := &site.Site{Refresh: v.refresh}
	for _, p := range []site.Link{{Name: "Runs", Address: "/"}, {Name: "History", Address: "/history"}, {Name: "Machines", Address: "/machines"}, {Name: "Baselines", Address: "/baselines"}} {
		p.Here = path == p.Address
		bar.Pages = append(bar.Pages, p)
	}
	if v.address == "" {
		return bar
	}
	separator := "?"
	if strings.Contains(v.address, "?") {
		separator = "&"
	}
	for _, name := range s.formats(v) {
		bar.Formats = append(bar.Formats, site.Link{Name: name, Address: v.address + separator + "format=" + name})
	}
	return bar
}

// contentType is the type of a format. The browser does not guess another one.
func contentType(format string) string {
	switch format {
	case pageFormat, fileFormat:
		return "text/html; charset=utf-8"
	case "json", "export":
		return "application/json"
	case "csv":
		return "text/csv; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}
