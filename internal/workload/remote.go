package workload

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Served is a server that touchstone peer starts on another machine, for clients in the containers of this one.
type Served string

// The servers.
const (
	ServedIperf     Served = "iperf3"
	ServedNetserver Served = "netserver"
	ServedNginx     Served = "nginx"
)

// AllServed lists the servers.
func AllServed() []Served { return []Served{ServedIperf, ServedNetserver, ServedNginx} }

// RemotePort is the default port of touchstone peer. Its servers have the ports after it, so that one range passes a firewall.
const RemotePort = 7480

// RemotePorts is the number of ports from the port of touchstone peer. Netserver has two.
const RemotePorts = 5

// Port is the server's port, beside a port of touchstone peer.
func (s Served) Port(control uint16) uint16 {
	switch s {
	case ServedIperf:
		return control + 1
	case ServedNetserver:
		return control + 2 // its data connections have the next port
	case ServedNginx:
		return control + 4
	}
	return 0
}

// Args calls the server at an IPv4 address of the machine. nginx finds WebFiles in the directory dir. The servers serve one client:
// iperf3 exits with code 0 after its test, and the others run until they are killed.
func (s Served) Args(at netip.AddrPort, dir string) []string {
	address, port := at.Addr().String(), strconv.Itoa(int(at.Port()))
	switch s {
	case ServedIperf:
		return iperfServer("--bind", address, "--port", port)
	case ServedNetserver:
		return netperfServer("-L", address+",4", "-p", port)
	case ServedNginx:
		return NginxServer(dir)
	}
	return nil
}

// Listening is the prefix of the first line of output of a server that listens. It is empty for servers that write no such line. They
// accept a connection that is closed again.
func (s Served) Listening() string {
	if s == ServedIperf {
		return IperfListening
	}
	return ""
}

// Writes reports whether the server needs a /tmp that it can write to: iperf3 maps a file for its buffer, and nginx creates directories.
func (s Served) Writes() bool { return s != ServedNetserver }

// Remote is the place of touchstone peer on another machine.
type Remote struct {
	Host string // an IPv4 address, or a host name in lower case
	Port uint16
}

// String leaves out the default port, so that one server has one spelling.
func (r Remote) String() string {
	if r.Port == RemotePort {
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

// ParseRemote reads the place of touchstone peer: an IPv4 address or a host name with a dot, and a port after a colon if it is not
// RemotePort. The dot distinguishes host names from other words; a name without one can end with a dot.
func ParseRemote(text string) (Remote, error) {
	host, port, hasPort := strings.Cut(strings.ToLower(text), ":")
	r := Remote{Host: host, Port: RemotePort}
	if strings.Contains(port, ":") || strings.HasPrefix(text, "[") {
		return Remote{}, errors.New("IPv6 is not supported: the benchmarks use IPv4")
	}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || n > 1<<16-RemotePorts {
			return Remote{}, fmt.Errorf("the port %q is not a number from 1 to %d", cut(port), 1<<16-RemotePorts)
		}
		r.Port = uint16(n)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return r, CheckRemote(addr)
	}
	switch {
	case numeric.MatchString(host):
		return Remote{}, fmt.Errorf("%q is not an IPv4 address", cut(host))
	case len(host) > longestHost || !hostName.MatchString(host):
		return Remote{}, fmt.Errorf("%q is neither an IPv4 address nor a host name with a dot", cut(host))
	}
	return r, nil
}

// CheckRemote refuses addresses that no other machine can have, or that belong to many.
func CheckRemote(a netip.Addr) error {
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
