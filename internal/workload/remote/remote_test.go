package remote_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7":               "192.0.2.7",
		"192.0.2.7:7480":          "192.0.2.7",
		"192.0.2.7:5201":          "192.0.2.7:5201",
		"Bench2.Example":          "bench2.example",
		"bench2.":                 "bench2.",
		"bench2.example.:9000":    "bench2.example.:9000",
		"10-0-0-1.lab.example":    "10-0-0-1.lab.example",
		"localhost.localdomain":   "localhost.localdomain", // its address is checked before the trials
		"192.0.2.7:65531":         "192.0.2.7:65531",
		"xn--bcher-kva.example":   "xn--bcher-kva.example",
		"1.2.3.4.in-addr.example": "1.2.3.4.in-addr.example",
	} {
		r, err := remote.Parse(text)
		if err != nil || r.String() != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", text, r, err, want)
			continue
		}
		if repeat, err := remote.Parse(r.String()); err != nil || repeat != r {
			t.Errorf("Parse(%q) = %v, %v; want %v", r, repeat, err, r)
		}
	}
	for text, reason := range map[string]string{
		"":                        "neither",
		"host":                    "neither",
		"bench2":                  "neither",
		"bench2:7480":             "neither",
		"a b.example":             "neither",
		"-a.example":              "neither",
		"a..example":              "neither",
		"bücher.example":          "neither",
		"http://192.0.2.7":        "port",
		"192.0.2.7/24":            "neither",
		"192.0.2.300":             "not an IPv4 address",
		"192.0.2":                 "not an IPv4 address",
		"192.0.2.07":              "not an IPv4 address",
		"::1":                     "IPv6",
		"[2001:db8::1]:7480":      "IPv6",
		"127.0.0.1":               "loopback",
		"127.9.9.9:7480":          "loopback",
		"0.0.0.0":                 "one machine",
		"255.255.255.255":         "one machine",
		"224.0.0.1":               "one machine",
		"192.0.2.7:0":             "port",
		"192.0.2.7:65532":         "port",
		"192.0.2.7:":              "port",
		"192.0.2.7:http":          "port",
		strings.Repeat("a.", 130): "neither",
	} {
		if r, err := remote.Parse(text); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Parse(%q) = %v, %v; want an error with %q", text, r, err, reason)
		}
	}
}

func FuzzRemote(f *testing.F) {
	for _, text := range []string{"192.0.2.7", "bench2.example:7480", "a.b:1", "[::1]:2", "."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := remote.Parse(text)
		if err != nil {
			return
		}
		if repeat, err := remote.Parse(r.String()); err != nil || repeat != r {
			t.Errorf("%q is %v, and its text %q is %v, %v", text, r, r, repeat, err)
		}
		if strings.ContainsAny(r.String(), " =,\n") {
			t.Errorf("%q has the text %q, which no parameter can have", text, r)
		}
	})
}

// The servers listen only at the address, on ports of their own.
func TestServed(t *testing.T) {
	ports := []uint16{7480}
	for _, s := range remote.Servers() {
		address := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.7"), s.Port(7480))
		if slices.Contains(ports, address.Port()) || address.Port() >= 7480+remote.Ports {
			t.Errorf("%s has port %d; others have %v", s, address.Port(), ports)
		}
		ports = append(ports, address.Port())
		if s == remote.Netserver {
			ports = append(ports, address.Port()+1) // data connections
		}
		args := strings.Join(s.Args(address, "/data"), " ")
		if s == remote.Nginx {
			args += string(programs.WebFiles("/data", address)["/"+programs.NginxConfig])
		}
		if !strings.Contains(args, "192.0.2.7") || strings.Contains(args, "0.0.0.0") || !strings.Contains(args, address.Addr().String()) {
			t.Errorf("%s is called with %q", s, args)
		}
	}
	if len(ports) != remote.Ports {
		t.Errorf("the ports are %v, and Ports is %d", ports, remote.Ports)
	}
	local := string(programs.WebFiles("/data", netip.AddrPort{})["/"+programs.NginxConfig])
	if !strings.Contains(local, "listen 8080;") {
		t.Errorf("in a container nginx is configured with %q", local)
	}
}
