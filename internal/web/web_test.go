package web_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/web"
)

// pages are the pages over a results file.
type pages struct {
	t *testing.T
	*httptest.Server
	// writes counts the documents that were written in a format.
	writes atomic.Int64
}

// serve serves a results file at a loopback address. change may change the configuration.
func serve(t *testing.T, path string, change func(*web.Config)) *pages {
	t.Helper()
	p := &pages{t: t}
	c := web.Config{
		Read: func(ctx context.Context, do func(*store.Store) error) error {
			db, err := store.OpenReadOnly(ctx, path)
			if err != nil {
				return err
			}
			return errors.Join(do(db), db.Close())
		},
		Write: func(w io.Writer, name string, d *document.Document) error {
			p.writes.Add(1)
			for _, f := range render.Formats() {
				if f.Name == name {
					return f.Write(w, d, render.Options{})
				}
			}
			return errors.New("no such format")
		},
		Exports: []web.Export{{Name: "export", Write: func(w io.Writer, runs ...result.Run) error { return result.Encode(w, result.Document{Runs: runs}) }}},
		Address: netip.MustParseAddr("127.0.0.1"),
	}
	if change != nil {
		change(&c)
	}
	p.Server = httptest.NewServer(web.New(c))
	t.Cleanup(p.Close)
	return p
}

// get returns the answer to a request, which change may change.
func (p *pages) get(address string, change func(*http.Request)) (int, http.Header, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.URL+address, nil)
	must.Do(p.t, err)
	if change != nil {
		change(r)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(r)
	must.Do(p.t, err)
	text, err := io.ReadAll(a.Body)
	must.Do(p.t, err, a.Body.Close())
	return a.StatusCode, a.Header, string(text)
}

// has checks the status and the words of a page, and that it lacks others.
func (p *pages) has(address string, status int, words, missing []string) string {
	p.t.Helper()
	got, _, text := p.get(address, nil)
	_, body, _ := strings.Cut(text, "</style>")
	if got != status {
		p.t.Errorf("%s: the status is %d, want %d:\n%.2000s", address, got, status, body)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			p.t.Errorf("%s lacks %q:\n%.4000s", address, word, body)
		}
	}
	for _, word := range missing {
		if strings.Contains(text, word) {
			p.t.Errorf("%s has %q", address, word)
		}
	}
	return text
}

// stored makes a results file with runs.
func stored(t *testing.T, runs ...result.Run) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "touchstone.db")
	db, err := store.Open(t.Context(), path)
	must.Do(t, err)
	_, err = db.Import(t.Context(), func(v result.Visitor) error { return result.Visit(v, runs...) })
	must.Do(t, err, db.Close())
	return path
}

// Every page has the content of its verb.
//
// Invariant read-only-pages: The pages of a results file change nothing: they answer only to GET and HEAD, and the file stays equal to the byte.
func TestPages(t *testing.T) {
	days := reporttest.Days(nil)
	days[9].Host.Hostname, days[9].Name = "bench2", "nightly"
	path := stored(t, days...)
	db, err := store.Open(t.Context(), path)
	must.Do(t, err, db.SaveBaseline(t.Context(), "main", time.Now(), result.Tool{}, days[:3], false), db.Close())
	original, err := os.ReadFile(path)
	must.Do(t, err)
	p := serve(t, path, nil)

	p.has("/", http.StatusOK, []string{`<a href="/run/run9">run9</a>`, "1 to 10 of 10 runs", `name="a" value="run3"`, `<option>nightly</option>`, `aria-current="page">Runs`}, nil)
	p.has("/?q=RUN4", http.StatusOK, []string{"1 to 1 of 1 runs", "/run/run4"}, []string{"/run/run3"})
	p.has("/?plan=nightly&state=complete&target=oci/runc", http.StatusOK, []string{"1 to 1 of 1 runs", "/run/run9", `<option selected>nightly</option>`}, nil)
	p.has("/?target=native", http.StatusOK, []string{"No run fits"}, nil)
	p.has("/run/run3", http.StatusOK, []string{"run3, 2026-11-23 10:00 UTC", "a.b.c", `<nav class="site"`, `href="/run/run3?format=csv"`, `href="/run/run3?format=export"`}, []string{"http-equiv=\"refresh\""})
	p.has("/compare?a=run0&a=run1,run2&b=run5,run6,run7", http.StatusOK, []string{"run5", "slower"}, nil)
	p.has("/compare?a=baseline:main&b=run5,run6,run7", http.StatusOK, []string{"slower"}, nil)
	p.has("/compare?a=run0,run1&b=run9", http.StatusConflict, []string{"bench2", `href="compare?a=run0%2Crun1&amp;across-machines=1&amp;allow-differences=all&amp;b=run9"`}, nil)
	p.has("/compare?a=run0,run1&b=run9&across-machines=1&allow-differences=all", http.StatusOK, []string{"bench2"}, nil)
	p.has("/history", http.StatusOK, []string{`href="history?benchmark=a.b.c&amp;metric=Create"`}, nil)
	p.has("/history?metric=Create&benchmark=a.b&target=oci/*", http.StatusOK, []string{"Create on oci/runc", "level"}, nil)
	p.has("/machines", http.StatusOK, []string{"2 machines", "bench1", "Example CPU", `href="run/run9"`}, nil)
	p.has("/baselines", http.StatusOK, []string{"main", `href="compare?a=baseline%3Amain&amp;b=latest"`, "run2, 3 trials"}, nil)

	for _, tt := range []struct {
		address string
		status  int
		text    string
	}{
		{"/run/other", http.StatusNotFound, "no such run; the runs are "},
		{"/run/run", http.StatusNotFound, "10 ids begin with it"},
		{"/other", http.StatusNotFound, "no page has this address"},
		{"/compare?a=run1", http.StatusBadRequest, "a comparison has two sides"},
		{"/compare?a=run1&b=" + strings.Repeat("run2,", 101), http.StatusBadRequest, "at most 100 runs"},
		{"/compare?a=run1&b=run1", http.StatusConflict, "given twice"},
		{"/compare?a=baseline:other&b=run1", http.StatusNotFound, "baseline"},
		{"/history?metric=Other", http.StatusNotFound, "no run has a"},
		{"/run/run1?format=pdf", http.StatusBadRequest, "the formats are table, json"},
	} {
		p.has(tt.address, tt.status, []string{tt.text}, nil)
	}

	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		status, _, _ := p.get("/", func(r *http.Request) { r.Method = method })
		expect.Equal(t, method, http.StatusMethodNotAllowed, status)
	}
	status, _, text := p.get("/run/run1", func(r *http.Request) { r.Method = http.MethodHead })
	if status != http.StatusOK || text != "" {
		t.Errorf("HEAD: %d %q", status, text)
	}
	content, err := os.ReadFile(path)
	must.Do(t, err)
	if !bytes.Equal(original, content) {
		t.Error("the results file changed")
	}
}

// Every page has the formats of documents that have a place for it, with their numbers. The format html is the file of the verb, without the links of the pages.
func TestFormats(t *testing.T) {
	p := serve(t, stored(t, reporttest.Days(nil)...), nil)
	for _, address := range []string{"/?", "/run/run1?", "/compare?a=run0&b=run1&", "/history?metric=Create&", "/history?", "/machines?", "/baselines?"} {
		for _, f := range render.Formats() {
			if f.Name == "junit" {
				continue
			}
			status, header, text := p.get(address+"format="+f.Name, nil)
			isList := slices.Contains([]string{"/?", "/history?", "/machines?", "/baselines?"}, address)
			switch {
			case f.Typeset && isList && status == http.StatusBadRequest:
			case f.Typeset && status == http.StatusNotFound && strings.Contains(text, " without "):
			case status != http.StatusOK || text == "":
				t.Errorf("%s as %s: %d %s", address, f.Name, status, text)
			}
			switch f.Name {
			case "json":
				if !json.Valid([]byte(text)) || header.Get("Content-Type") != "application/json" {
					t.Errorf("%s as JSON: %s", address, text)
				}
			case "csv":
				if _, err := csv.NewReader(strings.NewReader(text)).ReadAll(); err != nil {
					t.Errorf("%s as CSV: %v", address, err)
				}
			case "html":
				if strings.Contains(text, `class="site"`) {
					t.Errorf("the file of %s has the links of the pages", address)
				}
			}
		}
	}
	_, _, text := p.get("/run/run1?format=export", nil)
	doc, err := result.Decode(strings.NewReader(text))
	must.Do(t, err)
	expect.Equal(t, "exported run", reporttest.Day(1, 0.020*1.001).Trials, doc.Runs[0].Trials)
	_, _, text = p.get("/?q=run7&format=json", nil)
	var list []store.Summary
	must.Do(t, json.Unmarshal([]byte(text), &list))
	if len(list) != 1 || list[0].ID != "run7" {
		t.Errorf("the filtered list is %v", list)
	}
}

// A report of a run that has ended is made once.
func TestCache(t *testing.T) {
	p := serve(t, stored(t, reporttest.Days(nil)...), nil)
	first := p.has("/run/run1?format=markdown", http.StatusOK, nil, nil)
	second := p.has("/run/run1?format=markdown", http.StatusOK, nil, nil)
	if first != second || p.writes.Load() != 1 {
		t.Errorf("the report was written %d times", p.writes.Load())
	}
	// The page of another reference to the same run has its own name.
	p.has("/compare?a=run0,run1,run2&b=latest&across-machines=1&allow-differences=all", http.StatusOK, []string{"b=latest"}, nil)
	p.has("/compare?a=run0,run1,run2&b=run9&across-machines=1&allow-differences=all", http.StatusOK, []string{"b=run9"}, []string{"latest"})
}

// Only requests for this server's own address are answered, and no page of another site gets results.
func TestHost(t *testing.T) {
	path := stored(t, reporttest.Day(1, 1))
	for _, tt := range []struct {
		listen, host string
		status       int
	}{
		{"127.0.0.1", "127.0.0.1:1", http.StatusOK},
		{"127.0.0.1", "localhost", http.StatusOK},
		{"127.0.0.1", "[::1]:9000", http.StatusOK},
		{"127.0.0.1", "evil.example", http.StatusMisdirectedRequest},
		{"127.0.0.1", "127.0.0.1.evil.example:8642", http.StatusMisdirectedRequest},
		{"127.0.0.1", "localhost.evil.example", http.StatusMisdirectedRequest},
		{"127.0.0.1", "192.0.2.7", http.StatusMisdirectedRequest},
		{"192.0.2.7", "192.0.2.7:8642", http.StatusOK},
		{"192.0.2.7", "localhost", http.StatusMisdirectedRequest},
		{"192.0.2.7", "192.0.2.8", http.StatusMisdirectedRequest},
		{"0.0.0.0", "192.0.2.8:80", http.StatusOK},
		{"0.0.0.0", "evil.example", http.StatusMisdirectedRequest},
	} {
		p := serve(t, path, func(c *web.Config) { c.Address = netip.MustParseAddr(tt.listen) })
		status, header, _ := p.get("/", func(r *http.Request) { r.Host = tt.host })
		expect.Equal(t, tt.host+" at "+tt.listen, tt.status, status)
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
			expect.Equal(t, name, want, header.Get(name))
		}
		if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("the policy is %q", policy)
		}
	}
}

// With a token each request needs it: as a header, or as the cookie of a browser that has opened the printed address.
func TestToken(t *testing.T) {
	const token = "a-token-of-the-test"
	p := serve(t, stored(t, reporttest.Day(1, 1)), func(c *web.Config) { c.Token = token })
	bearer := func(text string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+text) }
	}
	for _, address := range []string{"/", "/run/run1", "/other", "/?token=" + token, "/run/run1?format=json"} {
		status, _, text := p.get(address, nil)
		if status != http.StatusUnauthorized || strings.Contains(text, "run1") {
			t.Errorf("%s without a token: %d %s", address, status, text)
		}
	}
	status, _, _ := p.get("/run/run1", bearer(token))
	expect.Equal(t, "with the token", http.StatusOK, status)
	for _, text := range []string{"", token + "x", token[1:], "Bearer"} {
		status, _, _ := p.get("/", bearer(text))
		expect.Equal(t, "with the token "+text, http.StatusUnauthorized, status)
	}
	status, header, _ := p.get("/login?token=wrong", nil)
	if status != http.StatusUnauthorized || header.Get("Set-Cookie") != "" {
		t.Errorf("a login with another token: %d %v", status, header)
	}
	status, header, _ = p.get("/login?token="+token, nil)
	value := header.Get("Set-Cookie")
	if status != http.StatusSeeOther || header.Get("Location") != "/" || !strings.Contains(value, "HttpOnly; SameSite=Strict") || strings.Contains(value, token) {
		t.Errorf("a login: %d %v", status, header)
	}
	pair, _, _ := strings.Cut(value, ";")
	status, _, _ = p.get("/", func(r *http.Request) { r.Header.Set("Cookie", pair) })
	expect.Equal(t, "with the cookie", http.StatusOK, status)
	status, _, _ = p.get("/", func(r *http.Request) { r.Header.Set("Cookie", "touchstone="+token) })
	expect.Equal(t, "with another cookie", http.StatusUnauthorized, status)
}

// setVersion changes the version of the format of a file.
func setVersion(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must.Do(t, err)
	_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 999")
	must.Do(t, err, db.Close())
}

// A file that cannot be read is a page with the cause and the remedy.
func TestBrokenFiles(t *testing.T) {
	folder := t.TempDir()
	notes, newer := filepath.Join(folder, "foreign.db"), stored(t, reporttest.Day(1, 1))
	must.Do(t, os.WriteFile(notes, []byte("no database, but a text that is long enough"), 0o600))
	db, err := store.Open(t.Context(), newer)
	must.Do(t, err, db.Close())
	setVersion(t, newer)
	for path, word := range map[string]string{filepath.Join(folder, "missing.db"): "no such file", notes: "not a", newer: "another version of touchstone"} {
		p := serve(t, path, nil)
		for _, address := range []string{"/", "/run/latest", "/history", "/machines", "/baselines", "/compare?a=x&b=y"} {
			p.has(address, http.StatusServiceUnavailable, []string{word, `<nav class="site"`}, nil)
		}
	}
	p := serve(t, stored(t), nil)
	p.has("/", http.StatusOK, []string{"No run fits"}, nil)
	p.has("/run/latest", http.StatusNotFound, []string{"the file has no runs"}, nil)
}

// Names of runs stay text on every page.
func TestHostileNames(t *testing.T) {
	const evil = `<script>alert("x")</script>`
	run := reporttest.Day(1, 1)
	run.Name, run.Host.Hostname, run.Host.CPU, run.Targets[0].Name = evil, evil, evil, evil
	run.Bench[0].Name, run.Bench[0].Metrics[0].Name = evil, "a&b=c\u202e"
	for i := range run.Trials {
		run.Trials[i].Benchmark, run.Trials[i].Target, run.Trials[i].Samples = evil, evil, nil
	}
	p := serve(t, stored(t, run), nil)
	for _, address := range []string{"/", "/run/run1", "/history", "/machines", "/baselines", "/?q=" + "%3Cscript%3Ealert(%22x%22)%3C/script%3E", "/run/%3Cscript%3E", "/history?metric=%3Cscript%3E", "/?plan=%3Cscript%3E&page=%3Cscript%3E"} {
		_, _, text := p.get(address, nil)
		if strings.Contains(text, "<script>alert") || strings.Contains(text, "\u202e") {
			t.Errorf("%s has text that is no text:\n%.3000s", address, text)
		}
	}
}

// The list of 1,000 runs has pages.
func TestManyRuns(t *testing.T) {
	var runs []result.Run
	for n := range 1000 {
		runs = append(runs, reporttest.Day(n, 1+float64(n%7)))
	}
	p := serve(t, stored(t, runs...), nil)
	text := p.has("/", http.StatusOK, []string{"1 to 100 of 1000 runs", "/run/run999", `href="/?page=2"`}, []string{"/run/run899\"", "newer runs"})
	if len(text) > 100_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
	p.has("/?page=10", http.StatusOK, []string{"901 to 1000 of 1000 runs", "/run/run0\"", `href="/?page=9"`}, []string{"older runs"})
	p.has("/?page=99&q=run1", http.StatusOK, []string{"101 to 111 of 111 runs", "page=1&amp;q=run1"}, nil)
	for _, number := range []string{"0", "-3", "x", "1e9"} {
		p.has("/?page="+number, http.StatusOK, []string{"1 to 100 of 1000"}, nil)
	}
	p.has("/history", http.StatusOK, []string{"<td>1000</td>"}, nil)
	p.has("/machines", http.StatusOK, []string{"1 machine", "run999"}, nil)
}

// gate is an observer that stops a run before a trial.
type gate struct {
	after           int
	reached, passed chan struct{}
}

func (g *gate) Started(_ result.Trial, p runner.Progress) {
	if p.Done == g.after {
		close(g.reached)
		<-g.passed
	}
}

func (*gate) Ended(result.Trial) {}

func (*gate) Report(execution.Event) {}

// startRun starts a run of 8 trials, which waits after 6 of them until finish is called.
func startRun(t *testing.T) (path string, finish func()) {
	t.Helper()
	folder := t.TempDir()
	path = filepath.Join(folder, "touchstone.db")
	db, err := store.Open(t.Context(), path)
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, db.Close()) })
	recipe, err := plan.Parse("mine", []byte("version: 1\nname: mine\ntargets: [fake/a, fake/b]\nbenchmarks: [operations.container.lifecycle]\nblocks: 4\nwarmup: 0\n"))
	must.Do(t, err)
	g := &gate{after: 6, reached: make(chan struct{}), passed: make(chan struct{})}
	e, err := execution.New(execution.Config{Plan: recipe, Store: db, RunID: "20261129-1", Folder: folder, Concurrency: execution.Allow, Observer: g})
	must.Do(t, err)
	end := make(chan error, 1)
	go func() {
		_, err := e.Run(context.WithoutCancel(t.Context()))
		end <- err
	}()
	<-g.reached
	return path, func() {
		close(g.passed)
		must.Do(t, <-end)
	}
}

// A run under way has a page with its progress, which the browser loads again, and its report after the end.
func TestRunUnderWay(t *testing.T) {
	path, finish := startRun(t)
	p := serve(t, path, nil)
	p.has("/", http.StatusOK, []string{"<b>running</b>"}, nil)
	p.has("/run/latest", http.StatusOK, []string{`http-equiv="refresh" content="5"`, "6 of 8 trials, about ", " left", "operations.container.lifecycle", `href="20261129-1?partial=1"`}, nil)
	p.has("/run/latest?partial=1", http.StatusOK, []string{"operations.container.lifecycle"}, []string{`http-equiv="refresh"`})
	p.has("/run/latest?format=json", http.StatusOK, []string{`"running"`}, nil)
	finish()
	p.has("/run/latest", http.StatusOK, []string{"complete", "4 blocks, 8 ok"}, []string{`http-equiv="refresh"`})
	p.has("/run/latest?format=json", http.StatusOK, []string{`"complete"`}, nil)
}
