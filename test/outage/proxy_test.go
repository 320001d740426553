package outage

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// proxy starts an HTTP server in front of the API server, with the rights of the administrator, and returns a kubeconfig file for it. Each request goes
// through handle, which passes it on or answers in its place.
func (s *site) proxy(handle func(w http.ResponseWriter, r *http.Request, pass http.Handler)) (kubeconfig string) {
	s.Helper()
	config, _, err := kube.Place{Kubeconfig: s.Kubeconfig}.Load()
	must.Do(s, err)
	transport, err := rest.TransportFor(config)
	must.Do(s, err)
	target, err := url.Parse(config.Host)
	must.Do(s, err)
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, pass) }))
	// The API server has the same limit.
	server.EnableHTTP2, server.Config.HTTP2 = true, &http.HTTP2Config{MaxConcurrentStreams: 1000}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // aborted requests are part of the tests
	server.StartTLS()
	s.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s.kubeconfig(server.URL, "{}")
}

// kubeconfig writes a kubeconfig file.
func (s *site) kubeconfig(server, user string) string {
	s.Helper()
	file := filepath.Join(s.TempDir(), "kubeconfig")
	must.Do(s, os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "`+server+`", "insecure-skip-tls-verify": true}}],
"users": [{"name": "u", "user": `+user+`}]}`), 0o600))
	return file
}

// answer answers a request with an error of the API server.
func answer(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "the proxy of the test", "reason": %q, "code": %d}`, reason, code)
}
