package docker

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The port and the host of an address with tcp:// that leaves them out.
const (
	defaultPort = "2375"
	defaultHost = "localhost"
)

// parseAddress turns the address of a daemon into a URL. It reads the forms of Docker's command line: an address without a scheme is TCP, and
// the parts after a scheme have defaults. A path is a Unix socket.
func parseAddress(address string) (host string, err error) {
	if original, unreadable := engine.UnreadableAddress(address); unreadable {
		return "", fmt.Errorf("%q is not an address", original)
	}
	address = strings.TrimSpace(address)
	if strings.HasPrefix(address, "/") {
		return "unix://" + address, nil
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "tcp", address
	}
	switch scheme {
	case "unix":
		if rest == "" {
			rest = defaultSocket
		}
		if !strings.HasPrefix(rest, "/") {
			return "", fmt.Errorf("the path in %s is not absolute: write unix:///%s", address, rest)
		}
		return "unix://" + rest, nil
	case "tcp":
		return parseTCP(rest)
	case "http", "https":
		return address, nil
	case "fd":
		return "", fmt.Errorf("%s: fd:// is for the daemon, which systemd passes its sockets, and not for clients; write unix://%s", address, defaultSocket)
	case "ssh":
		return "", fmt.Errorf("%s: an address with ssh:// is of another machine; start Touchstone there, because it watches its own host", address)
	case "npipe":
		return "", fmt.Errorf("%s: npipe:// is a pipe of Windows", address)
	}
	return "", fmt.Errorf("%s: the scheme %s:// is unknown; write a path, or a URL with unix:// or tcp://", address, scheme)
}

// parseTCP completes host, port and path of a daemon.
func parseTCP(rest string) (string, error) {
	if path, isSocket := strings.CutPrefix(rest, "unix:"); isSocket && strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("unix:%[1]s lacks a part; write unix://%[1]s", path)
	}
	parsed, err := url.Parse("tcp://" + rest)
	if err != nil {
		return "", fmt.Errorf("tcp://%s is not an address: %w", rest, errors.Unwrap(err))
	}
	host, port := parsed.Hostname(), parsed.Port()
	if host == "" {
		host = defaultHost
	}
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("tcp://%s: %s is not a port", rest, port)
	}
	return "tcp://" + net.JoinHostPort(host, port) + strings.TrimSuffix(parsed.EscapedPath(), "/"), nil
}
