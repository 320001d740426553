package docker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// endpoint is a place of the user's daemon.
type endpoint struct {
	host   string // as a URL
	source string // the setting with the address; empty for the default socket
	tls    string // the folder with the certificates for TLS; empty without TLS
}

// certificates stands between the URL and the folder in a record.
const certificates = " with the certificates in "

// record is the text for readRecord, which makes the endpoint from it in another environment.
func (e endpoint) record() string {
	if e.tls == "" {
		return e.host
	}
	return e.host + certificates + e.tls
}

// readRecord is the endpoint of a killed run.
func readRecord(record string) (e endpoint, err error) {
	host, folder, _ := strings.Cut(record, certificates)
	e = endpoint{source: "used by a killed run", tls: folder}
	e.host, err = parseAddress(host)
	return e, err
}

// maxConfig bounds a file of Docker's command line, in bytes.
const maxConfig = 1 << 20

// configDir is the folder of Docker's command line. It is empty for a user without a home.
func configDir() string {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".docker")
}

// findEndpoint finds the daemon that Docker's command line of this user would use. DOCKER_HOST is in the session. It precedes the context of
// DOCKER_CONTEXT, and the context of "docker context use" comes last. isUserChoice reports that the user has chosen the daemon. The error has the reason for a
// target, and the advice.
func findEndpoint(s engine.Session) (e endpoint, isUserChoice bool, err error) {
	if address := s.Sockets[name]; address != "" {
		if e.host, err = parseAddress(address); err != nil {
			return e, true, refuse("its address: "+err.Error(), "unset or correct DOCKER_HOST, or the address in the plan, or use a private daemon with --managed")
		}
		e.tls, err = environmentTLS(e.host)
		return e, true, err
	}
	dir := configDir()
	context, source, err := contextName(dir)
	if err != nil {
		return e, true, err
	}
	if context == "" || context == "default" {
		return endpoint{host: "unix://" + defaultSocket}, false, nil
	}
	e, err = readContext(dir, context, source)
	return e, true, err
}

// contextName returns the name of the selected context, and the setting that selects it.
func contextName(dir string) (context, source string, err error) {
	if context := os.Getenv("DOCKER_CONTEXT"); context != "" {
		return context, "DOCKER_CONTEXT", nil
	}
	if dir == "" {
		return "", "", nil
	}
	file := filepath.Join(dir, "config.json")
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err := readJSON(file, &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", refuse("the configuration of Docker's command line: "+err.Error(), "correct the file, set DOCKER_HOST, or use a private daemon with --managed")
	}
	return config.CurrentContext, file, nil
}

// readContext reads a context. Its folder has the SHA-256 of its name.
func readContext(dir, context, source string) (e endpoint, err error) {
	fail := func(reason string) (endpoint, error) {
		return e, refuse(fmt.Sprintf("the context %q of %s: %s", context, source, reason),
			"choose another one with docker context use, set DOCKER_HOST, or use a private daemon with --managed")
	}
	sum := sha256.Sum256([]byte(context))
	id := hex.EncodeToString(sum[:])
	var meta struct {
		Endpoints map[string]struct {
			Host          string
			SkipTLSVerify bool
		}
	}
	err = readJSON(filepath.Join(dir, "contexts", "meta", id, "meta.json"), &meta)
	if errors.Is(err, fs.ErrNotExist) {
		return fail("it does not exist in " + filepath.Join(dir, "contexts"))
	}
	if err != nil {
		return fail(err.Error())
	}
	docker := meta.Endpoints["docker"]
	e.source = "the context " + context
	if e.host, err = parseAddress(cmp.Or(docker.Host, "unix://")); err != nil {
		return fail(err.Error())
	}
	if certificates := filepath.Join(dir, "contexts", "tls", id, "docker"); exists(certificates) {
		e.tls = certificates
	}
	if docker.SkipTLSVerify {
		return fail("it does not check the certificate of the daemon")
	}
	return e, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readJSON(file string, value any) error {
	text, err := trust.ReadFile(file, maxConfig)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func refuse(reason, advice string) error {
	return &engine.UnsupportedError{What: name, Reason: reason, Advice: advice}
}

// environmentTLS is the folder with the certificates, if the environment asks for TLS to this host.
func environmentTLS(host string) (folder string, err error) {
	switch {
	case strings.HasPrefix(host, "unix://"):
		return "", nil
	case os.Getenv(client.EnvTLSVerify) != "":
		return cmp.Or(os.Getenv(client.EnvOverrideCertPath), configDir()), nil
	case os.Getenv("DOCKER_TLS") != "":
		return "", refuse("DOCKER_TLS does not check the certificate of the daemon", "set DOCKER_TLS_VERIFY instead, or use a private daemon with --managed")
	}
	return "", nil
}

// rootlessSocket is the socket of this user's rootless daemon, at its usual place. It is empty if the socket is missing. root has none: after
// sudo -E the variable names the directory of another user.
func rootlessSocket() string {
	if os.Geteuid() == 0 {
		return ""
	}
	dir := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Geteuid()))
	socket := filepath.Join(dir, "docker.sock")
	if !filepath.IsAbs(dir) || !exists(socket) {
		return ""
	}
	return socket
}

// usersSockets is the pattern of the sockets of rootless daemons. It is a variable for tests.
var usersSockets = "/run/user/*/docker.sock"

// othersDaemon is the socket of a rootless daemon of any user, for a note of root's. It is empty without one.
func othersDaemon() string {
	sockets, _ := filepath.Glob(usersSockets)
	if len(sockets) == 0 {
		return ""
	}
	return sockets[0]
}
