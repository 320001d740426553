package docker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// secureAddress is a loopback address that nothing else on the host uses.
const secureAddress = "127.77.0.1"

// Touchstone reaches a daemon with TLS through a context. If the run is killed, a later run removes its objects, also without that context.
func TestRealTLS(t *testing.T) {
	dir := t.TempDir()
	id := sha256.Sum256([]byte("secure"))
	context := func(parts ...string) string {
		return filepath.Join(append([]string{dir, "contexts", parts[0], hex.EncodeToString(id[:])}, parts[1:]...)...)
	}
	folder := context("tls", "docker")
	writeCertificates(t, folder)
	write(t, context("meta", "meta.json"), fmt.Appendf(nil, `{"Name":"secure","Endpoints":{"docker":{"Host":"tcp://%s:2376"}}}`, secureAddress))
	s := enginetest.Session(t, oci.LauncherOptions)
	s, socket := userOf(t, s, map[string]any{
		"hosts": []string{"unix://" + filepath.Join(s.State, "user", "sock"), "tcp://" + secureAddress + ":2376"}, "tlsverify": true,
		"tlscacert": folder + "/ca.pem", "tlscert": folder + "/cert.pem", "tlskey": folder + "/key.pem",
	})
	c := connect(t, socket)
	baseline := inventory(t, c)
	s.Sockets = nil
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("DOCKER_CONTEXT", "secure")
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	enginetest.Running(t, e, enginetest.Spec(s, "left"))

	record, err := os.ReadFile(filepath.Join(s.State, engine.DaemonsDir, "docker"))
	if want := "tcp://" + secureAddress + ":2376 with the certificates in " + folder; err != nil || string(record) != want {
		t.Fatalf("the record of the daemon is %q, %v; want %q", record, err, want)
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("DOCKER_CONTEXT", "")
	n, err := docker.NewDriver().Sweep(t.Context(), engine.Session{RunID: s.RunID, Sockets: map[string]string{"docker": string(record)}})
	if state := inventory(t, c); err != nil || n != 2 || !slices.Equal(state, baseline) { // a container and an image
		t.Errorf("Sweep = %d, %v, and the daemon has %q; want 2 and %q", n, err, state, baseline)
	}

	// The environment names the same daemon.
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	t.Setenv("DOCKER_CERT_PATH", folder)
	s.Sockets = map[string]string{"docker": "tcp://" + secureAddress + ":2376"}
	enginetest.Running(t, enginetest.Open(t, docker.NewDriver(), "docker/runc", s), enginetest.Spec(s, "environment"))
}

// writeCertificates writes a certificate for the daemon and its clients, and the authority that signed it: itself.
func writeCertificates(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "docker"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(secureAddress)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	must.Do(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must.Do(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	write(t, filepath.Join(folder, "ca.pem"), public)
	write(t, filepath.Join(folder, "cert.pem"), public)
	write(t, filepath.Join(folder, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	must.Do(t, err)
}
