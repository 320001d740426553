package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A server's certificate is valid for its hosts, a client's for no host, and the kubeconfig names the files.
func TestCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	must.Do(t, run([]string{"certificates", dir, "198.19.0.1:443", "admin=admin/system:masters", "server=kube-apiserver@kubernetes,198.19.0.1"}))
	authorities := x509.NewCertPool()
	authorities.AddCert(read(t, dir, "ca"))
	verify := func(certificate *x509.Certificate, usage x509.ExtKeyUsage) error {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: authorities, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	server := read(t, dir, "server")
	must.Do(t, verify(server, x509.ExtKeyUsageServerAuth), server.VerifyHostname("kubernetes"), server.VerifyHostname("198.19.0.1"))
	admin := read(t, dir, "admin")
	must.Do(t, verify(admin, x509.ExtKeyUsageClientAuth))
	if err := verify(admin, x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("the certificate of a client is valid for a server")
	}
	if admin.Subject.CommonName != "admin" || !slices.Equal(admin.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("the subject is %v, want admin of system:masters", admin.Subject)
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key")); err != nil {
		t.Errorf("the key of admin: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "admin.kubeconfig"))
	must.Do(t, err)
	var config struct {
		Clusters []struct {
			Cluster struct{ Server string }
		}
	}
	must.Do(t, json.Unmarshal(text, &config))
	if len(config.Clusters) != 1 || config.Clusters[0].Cluster.Server != "https://198.19.0.1:443" {
		t.Errorf("the kubeconfig is\n%s", text)
	}
}

func read(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	must.Do(t, err)
	return pair.Leaf
}

func TestSubjectsAreRefused(t *testing.T) {
	for _, subject := range []string{"", "admin", "=admin", "admin=", "a/b=admin", "../a=admin"} {
		if file, _, err := parseSubject(subject); err == nil {
			t.Errorf("the subject %q has the file %q, want an error", subject, file)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"certificates", "dir", "server"}, {"listen", "file"}, {"forward", "3"}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("%q: %v, want the usage", args, err)
		}
	}
}

// The end of one direction is not the end of the other one.
func TestConnect(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer func() { _ = server.Close() }()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		request, _ := io.ReadAll(c)
		_, _ = c.Write(append([]byte("answer to "), request...))
		_ = c.Close()
	}()
	gate, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer func() { _ = gate.Close() }()
	go func() {
		if c, err := gate.Accept(); err == nil {
			connect(c, server.Addr().String())
		}
	}()
	client, err := net.Dial("tcp", gate.Addr().String())
	must.Do(t, err)
	_, err = client.Write([]byte("hello"))
	must.Do(t, err, client.(*net.TCPConn).CloseWrite())
	if answer, err := io.ReadAll(client); err != nil || string(answer) != "answer to hello" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

// await goes on while the server answers with an error.
func TestAwait(t *testing.T) {
	answers := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers++; answers < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	must.Do(t, writePEM(file, "CERTIFICATE", server.Certificate().Raw))
	if err := run([]string{"await", server.URL, file}); err != nil || answers != 3 {
		t.Errorf("await ended after %d answers: %v", answers, err)
	}
	must.Do(t, os.WriteFile(file, nil, 0o600))
	if err := await(server.URL, file); err == nil {
		t.Error("an authority without a certificate is accepted")
	}
}
