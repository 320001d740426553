package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/store"
)

const (
	// pagePolicy is the policy of a document's page. The page has a policy of its own, which forbids every load.
	pagePolicy = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// textPolicy is the policy of everything else.
	textPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"
)

// cookie is the name of the cookie of a browser that has logged in. Its value is of this server process and reveals no token.
const cookie = "touchstone"

// guard refuses requests that must not read results, and sets the headers of all answers.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": textPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "private, no-cache",
		} {
			w.Header().Set(name, value)
		}
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the pages are read-only", http.StatusMethodNotAllowed)
		case !s.isOwn(r.Host):
			http.Error(w, "the server has another address; use the address that touchstone ui printed", http.StatusMisdirectedRequest)
		case r.URL.Path != "/login" && !s.isAllowed(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is needed; open the address with the token that touchstone ui printed, or send it as Authorization: Bearer TOKEN", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isOwn reports whether a Host header names this server. The port does not matter: a tunnel has another one. A server at all addresses of
// its machine accepts every IP address, because a name is needed to mislead a browser.
func (s *server) isOwn(header string) bool {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return strings.EqualFold(host, "localhost") && (s.Address.IsLoopback() || s.Address.IsUnspecified())
	}
	return address.Unmap() == s.Address.Unmap() || address.IsLoopback() && s.Address.IsLoopback() || s.Address.IsUnspecified()
}

// isAllowed reports whether a request has the token or the cookie.
func (s *server) isAllowed(r *http.Request) bool {
	if s.Token == "" {
		return true
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && isEqual(token, s.Token) {
		return true
	}
	c, err := r.Cookie(cookie)
	return err == nil && isEqual(c.Value, s.session)
}

// isEqual compares secrets. The time does not depend on their content.
func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// login sets the cookie for the token in the address, and leaves this address.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	if s.Token != "" {
		if !isEqual(r.URL.Query().Get("token"), s.Token) {
			http.Error(w, "the token is another one; use the address that touchstone ui printed", http.StatusUnauthorized)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// requestError is an error in a request, with the status of the answer.
type requestError struct {
	status int
	err    error
}

func (e *requestError) Error() string { return e.err.Error() }

func (e *requestError) Unwrap() error { return e.err }

// status is the status of the answer for an error.
func status(err error) int {
	if e, ok := errors.AsType[*requestError](err); ok {
		return e.status
	}
	if _, ok := errors.AsType[*store.IDError](err); ok || errors.Is(err, store.ErrNoBaseline) {
		return http.StatusNotFound
	}
	if _, ok := errors.AsType[*render.EmptyError](err); ok {
		return http.StatusNotFound
	}
	if _, ok := errors.AsType[*archive.ValueError](err); ok {
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable // the results file cannot be read now
}

// fail answers with a page about an error, or with its text if the request is for another format.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		return // the client has closed the connection
	}
	code := status(err)
	d := &document.Document{Kind: "error", Title: fmt.Sprintf("%d %s", code, http.StatusText(code))}
	for line := range strings.Lines(err.Error()) {
		d.Notes = append(d.Notes, document.Text{Text: strings.TrimSpace(line), Tone: document.Alarm})
	}
	if _, ok := errors.AsType[*sides.DifferError](err); ok {
		query := r.URL.Query()
		query.Set(acrossParameter, "1")
		query.Set(allowParameter, allowAll)
		d.Notes = append(d.Notes, document.Text{Text: "Compare them nevertheless", Link: "compare?" + query.Encode()})
	}
	write := func() error { return html.WriteOn(w, d, s.site(&view{}, r.URL.Path)) }
	format := pageFormat
	if r.URL.Query().Get("format") != pageFormat {
		format = "table"
		write = func() error { return s.Write(w, format, d) }
	} else {
		w.Header().Set("Content-Security-Policy", pagePolicy)
	}
	w.Header().Set("Content-Type", contentType(format))
	w.WriteHeader(code)
	_ = write() // the client may have gone
}
