package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// The forms of Docker's command line.
func TestParseAddress(t *testing.T) {
	for address, want := range map[string]string{
		"/var/run/docker.sock":         "unix:///var/run/docker.sock",
		"unix:///run/docker.sock":      "unix:///run/docker.sock",
		" unix:///run/docker.sock \n":  "unix:///run/docker.sock",
		"unix://":                      "unix://" + defaultSocket,
		"tcp://":                       "tcp://localhost:2375",
		"tcp://127.0.0.1":              "tcp://127.0.0.1:2375",
		"127.0.0.1:2375":               "tcp://127.0.0.1:2375",
		"host":                         "tcp://host:2375",
		":4243":                        "tcp://localhost:4243",
		"[::1]:4243":                   "tcp://[::1]:4243",
		"tcp://[::1]":                  "tcp://[::1]:2375",
		"tcp://host:2375/":             "tcp://host:2375",
		"tcp://host:2375/prefix":       "tcp://host:2375/prefix",
		"https://host:2376":            "https://host:2376",
		"fd://":                        "! fd:// is for the daemon",
		"ssh://me@host":                "! start Touchstone there",
		"npipe:////./pipe/docker":      "! a pipe of Windows",
		"unix:/run/docker.sock":        "! write unix:///run/docker.sock",
		"tcp://unix:/run/docker.sock":  "! write unix:///run/docker.sock",
		"unix://run/docker.sock":       "! write unix:///run/docker.sock",
		"tcp://host:port":              "! tcp://host:port is not an address",
		"tcp://host:0":                 "! 0 is not a port",
		"docker://x":                   "! the scheme docker:// is unknown",
		"unreadable://a%20b":           `! "a b" is not an address`,
		"unreadable://TCP:%2F%2Fhost":  `! "TCP://host" is not an address`,
		"unreadable://unix:%1B%5B31mx": `! "unix:\x1b[31mx" is not an address`,
	} {
		got, err := parseAddress(address)
		complaint, isBad := strings.CutPrefix(want, "! ")
		if isBad && (err == nil || !strings.Contains(err.Error(), complaint)) || !isBad && (err != nil || got != want) {
			t.Errorf("parseAddress(%q) = %q, %v; want %q", address, got, err, want)
		}
	}
}

// writeContext adds a context to a folder of Docker's command line.
func writeContext(t *testing.T, dir, name, meta string) (id string) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	id = hex.EncodeToString(sum[:])
	folder := filepath.Join(dir, "contexts", "meta", id)
	must.Do(t, os.MkdirAll(folder, 0o700))
	writeFile(t, filepath.Join(folder, "meta.json"), meta)
	return id
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// The choices of Docker's command line, in their order. The contexts resemble the contexts that rootless Docker, Colima and a machine with TLS have.
//
// Invariant daemon-address.
func TestFindEndpoint(t *testing.T) {
	dir := t.TempDir()
	writeContext(t, dir, "rootless", `{"Name":"rootless","Metadata":{},"Endpoints":{"docker":{"Host":"unix:///run/user/1000/docker.sock","SkipTLSVerify":false}}}`)
	writeContext(t, dir, "colima", `{"Name":"colima","Metadata":{"Description":"colima"},"Endpoints":{"docker":{"Host":"unix:///home/me/.colima/default/docker.sock"}}}`)
	secured := writeContext(t, dir, "secured", `{"Name":"secured","Endpoints":{"docker":{"Host":"tcp://127.0.0.1:2376"}}}`)
	certificates := filepath.Join(dir, "contexts", "tls", secured, "docker")
	must.Do(t, os.MkdirAll(certificates, 0o700))
	writeContext(t, dir, "elsewhere", `{"Endpoints":{"docker":{"Host":"ssh://me@there"}}}`)
	writeContext(t, dir, "unverified", `{"Endpoints":{"docker":{"Host":"tcp://h:1","SkipTLSVerify":true}}}`)
	writeContext(t, dir, "empty", `{"Endpoints":{"docker":{}}}`)
	writeContext(t, dir, "broken", `{`)
	socket := "unix://" + defaultSocket
	for _, c := range []struct {
		name, config, variable, address string
		host, source, err               string
		chosen                          bool
	}{
		{name: "nothing", host: socket},
		{name: "no context", config: `{"auths":{}}`, host: socket},
		{name: "the default context", config: `{"currentContext":"default"}`, host: socket},
		{name: "rootless", config: `{"currentContext":"rootless"}`, host: "unix:///run/user/1000/docker.sock", source: "the context rootless", chosen: true},
		{name: "the variable first", config: `{"currentContext":"rootless"}`, variable: "colima", host: "unix:///home/me/.colima/default/docker.sock", source: "the context colima", chosen: true},
		{name: "the variable for the default", config: `{"currentContext":"rootless"}`, variable: "default", host: socket},
		{name: "the address before both", config: `{"currentContext":"rootless"}`, variable: "colima", address: "/x/docker.sock", host: "unix:///x/docker.sock", chosen: true},
		{name: "TLS", variable: "secured", host: "tcp://127.0.0.1:2376", source: "the context secured", chosen: true},
		{name: "a context without an address", variable: "empty", host: socket, source: "the context empty", chosen: true},
		{name: "another machine", variable: "elsewhere", chosen: true, err: `the context "elsewhere" of DOCKER_CONTEXT: ssh://me@there: an address with ssh:// is of another machine`},
		{name: "no check", variable: "unverified", chosen: true, err: "it does not check the certificate of the daemon; choose another one"},
		{name: "no such context", config: `{"currentContext":"gone"}`, chosen: true, err: "it does not exist in "},
		{name: "a broken context", variable: "broken", chosen: true, err: "unexpected end of JSON input"},
		{name: "a broken configuration", config: `{"currentContext":`, chosen: true, err: "the configuration of Docker's command line: "},
		{name: "a bad address", address: "fd://", chosen: true, err: "docker: its address: fd://: fd:// is for the daemon"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DOCKER_CONFIG", dir)
			t.Setenv("DOCKER_CONTEXT", c.variable)
			file := filepath.Join(dir, "config.json")
			if c.config != "" {
				writeFile(t, file, c.config)
				defer func() { enginetest.Check(t, os.Remove(file)) }()
			}
			s := engine.Session{Sockets: map[string]string{name: c.address}}
			e, isUserChoice, err := findEndpoint(s)
			if c.err != "" {
				if !engine.Unsupported(err) || !strings.Contains(err.Error(), c.err) || !isUserChoice {
					t.Errorf("findEndpoint: %v; want a refusal with %q", err, c.err)
				}
				return
			}
			if err != nil || e.host != c.host || e.source != c.source || isUserChoice != c.chosen || (e.tls != "") != (c.variable == "secured") {
				t.Errorf("findEndpoint() = %+v, %v, %v; want %+v", e, isUserChoice, err, c)
			}
		})
	}
	t.Run("TLS of the environment", func(t *testing.T) {
		t.Setenv("DOCKER_CONFIG", dir)
		find := func(address string) (endpoint, error) {
			e, _, err := findEndpoint(engine.Session{Sockets: map[string]string{name: address}})
			return e, err
		}
		t.Setenv("DOCKER_TLS", "1")
		if _, err := find("tcp://h:1"); !engine.Unsupported(err) || !strings.Contains(err.Error(), "set DOCKER_TLS_VERIFY instead") {
			t.Errorf("without a check of the certificate: %v; want a refusal with the remedy", err)
		}
		t.Setenv("DOCKER_TLS_VERIFY", "1")
		for address, want := range map[string]string{"tcp://h:1": dir, "/x/docker.sock": ""} {
			if e, err := find(address); err != nil || e.tls != want {
				t.Errorf("%s: the certificates are in %q, %v; want %q", address, e.tls, err, want)
			}
		}
		t.Setenv("DOCKER_CERT_PATH", "/certificates")
		if e, err := find("tcp://h:1"); err != nil || e.tls != "/certificates" {
			t.Errorf("the certificates are in %q, %v; want DOCKER_CERT_PATH", e.tls, err)
		}
	})
	t.Run("a file that others can change", func(t *testing.T) {
		t.Setenv("DOCKER_CONFIG", dir)
		file := filepath.Join(dir, "config.json")
		writeFile(t, file, `{"currentContext":"rootless"}`)
		must.Do(t, os.Chmod(file, 0o666))
		if _, _, err := findEndpoint(engine.Session{}); !engine.Unsupported(err) || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("findEndpoint: %v; want a refusal with the remedy", err)
		}
	})
	t.Run("the home", func(t *testing.T) {
		home := t.TempDir()
		t.Setenv("DOCKER_CONFIG", "")
		t.Setenv("DOCKER_CONTEXT", "")
		t.Setenv("HOME", home)
		must.Do(t, os.Symlink(dir, filepath.Join(home, ".docker")))
		must.Do(t, os.Chmod(filepath.Join(dir, "config.json"), 0o600))
		if e, _, err := findEndpoint(engine.Session{}); err != nil || e.host != "unix:///run/user/1000/docker.sock" {
			t.Errorf("findEndpoint() = %+v, %v", e, err)
		}
		t.Setenv("HOME", "")
		if e, _, err := findEndpoint(engine.Session{}); err != nil || e.host != socket {
			t.Errorf("without a home findEndpoint() = %+v, %v", e, err)
		}
	})
}
