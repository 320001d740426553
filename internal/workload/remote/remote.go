// Package remote has the servers that touchstone peer starts on another machine, and the place of that machine.
package remote

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// Server is a server that touchstone peer starts on another machine, for clients in the containers of this one.
type Server string

// The servers.
const (
	Iperf     Server = "iperf3"
	Netserver Server = "netserver"
	Nginx     Server = "nginx"
)

// Servers lists the servers.
func Servers() []Server { return []Server{Iperf, Netserver, Nginx} }

// Port is the default port of touchstone peer. Its servers have the ports after it, so that one range passes a firewall.
const Port = 7480

// Ports is the number of ports from the port of touchstone peer. Netserver has two.
const Ports = 5

// Port is the server's port, beside a port of touchstone peer.
func (s Server) Port(control uint16) uint16 {
	switch s {
	case Iperf:
		return control + 1
	case Netserver:
		return control + 2 // its data connections have the next port
	case Nginx:
		return control + 4
	}
	return 0
}

// Args calls the server at an IPv4 address of the machine. nginx finds WebFiles in the directory dir. The servers serve one client:
// iperf3 exits with code 0 after its test, and the others run until they are killed.
func (s Server) Args(endpoint netip.AddrPort, dir string) []string {
	address, port := endpoint.Addr().String(), strconv.Itoa(int(endpoint.Port()))
	switch s {
	case Iperf:
		return programs.IperfServe("--bind", address, "--port", port)
	case Netserver:
		return programs.NetperfServe("-L", address+",4", "-p", port)
	case Nginx:
		return programs.NginxServer(dir)
	}
	return nil
}

// Listening is the prefix of the first line of output of a server that listens. It is empty for servers that write no such line. They
// accept a connection that is closed again.
func (s Server) Listening() string {
	if s == Iperf {
		return programs.IperfListening
	}
	return ""
}

// Writes reports whether the server needs a /tmp that it can write to: iperf3 maps a file for its buffer, and nginx creates directories.
func (s Server) Writes() bool { return s != Netserver }

// Place is the place of touchstone peer on another machine.
type Place struct {
	Host string // an IPv4 address, or a host name in lower case
	Port uint16
}

// String leaves out the default port, so that one server has one spelling.
func (r Place) String() string {
	if r.Port == Port {
		return r.Host
	}
	return fmt.Sprintf("%s:%d", r.Host, r.Port)
}

var (
	hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$`)
	numeric  = regexp.MustCompile(`(^|\.)[0-9]+\.?$`)
)

// longestHost is the greatest length of a host name in the DNS.
const longestHost = 253

// Parse reads the place of touchstone peer: an IPv4 address or a host name with a dot, and a port after a colon if it is not
// Port. The dot distinguishes host names from other words; a name without one can end with a dot.
func Parse(text string) (Place, error) {
	host, port, hasPort := strings.Cut(strings.ToLower(text), ":")
	r := Place{Host: host, Port: Port}
	if strings.Contains(port, ":") || strings.HasPrefix(text, "[") {
		return Place{}, errors.New("IPv6 is not supported: the benchmarks use IPv4")
	}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || n > 1<<16-Ports {
			return Place{}, fmt.Errorf("the port %q is not a number from 1 to %d", workload.Excerpt(port), 1<<16-Ports)
		}
		r.Port = uint16(n)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return r, Check(addr)
	}
	switch {
	case numeric.MatchString(host):
		return Place{}, fmt.Errorf("%q is not an IPv4 address", workload.Excerpt(host))
	case len(host) > longestHost || !hostName.MatchString(host):
		return Place{}, fmt.Errorf("%q is neither an IPv4 address nor a host name with a dot", workload.Excerpt(host))
	}
	return r, nil
}

// Check refuses addresses that no other machine can have, or that belong to many.
func Check(a netip.Addr) error {
	switch {
	case !a.Is4():
		return fmt.Errorf("%s is not an IPv4 address", a)
	case a.IsUnspecified(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}), a.IsMulticast():
		return fmt.Errorf("%s is not the address of one machine", a)
	case a.IsLoopback():
		return fmt.Errorf("%s is a loopback address, which belongs to the same machine", a)
	}
	return nil
}
