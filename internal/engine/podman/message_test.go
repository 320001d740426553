package podman

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

func TestMessage(t *testing.T) {
	for output, want := range map[string]string{
		"":                           "it ended",
		"Error: no such container\n": "no such container",
		"time=\"2026-11-21T20:58:38Z\" level=warning msg=\"old cgroups\"\nError: the name is in use": "the name is in use",
		// runsc's message, and then Podman's.
		"starting container: failed to load /x: no such file or directory\nError: `runsc start` failed: exit status 128": "starting container: failed to load /x: no such file or directory; `runsc start` failed: exit status 128",
	} {
		if got := message(output, "it ended"); got != want {
			t.Errorf("message(%q) = %q, want %q", output, got, want)
		}
	}
}

func TestOlder(t *testing.T) {
	for version, want := range map[string]bool{
		"4.2.1": true, "3.4.4": true, "4.3.0": false, "4.3.1": false, "4.10.0": false, "5.0.0-dev": false, "": false, "unknown": false,
	} {
		if got := older(version, 4, 3); got != want {
			t.Errorf("older(%q, 4, 3) = %t, want %t", version, got, want)
		}
	}
}

// Podman refuses a longer path of its run root.
func TestRunRootIsShort(t *testing.T) {
	e := &Engine{Local: engine.Local{Session: engine.Session{State: "/dev/shm/touchstone/20261121-205838-abcd", Data: t.TempDir()}}}
	e.state = filepath.Join(e.Session.State, shortName, "99")
	if len(e.runRoot()) >= 50 {
		t.Errorf("the run root %s has %d characters, want fewer than 50", e.runRoot(), len(e.runRoot()))
	}
}

func TestAddressIn(t *testing.T) {
	const captured = `{"touchstone":{"EndpointID":"","Gateway":"10.88.0.1","IPAddress":"10.88.0.3","IPPrefixLen":16,"IPv6Gateway":"","GlobalIPv6Address":"","GlobalIPv6PrefixLen":0,"MacAddress":"96:c9:c9:48:70:6f","NetworkID":"touchstone","DriverOpts":null,"IPAMConfig":null,"Links":null,"Aliases":["ae8fb05649ee"]}}`
	for answer, want := range map[string]string{
		captured: "10.88.0.3", captured[:40]: "", "": "", "{}": "", "null": "", `{"podman":{"IPAddress":"10.88.0.2"}}`: "",
		`{"touchstone":{"IPAddress":""}}`: "", `{"touchstone":{"IPAddress":"300.0.0.1"}}`: "",
	} {
		got, err := addressIn(answer)
		if want == "" && err == nil || want != "" && got.String() != want {
			t.Errorf("the address in %s is %v, %v; want %q", answer, got, err, want)
		}
	}
}

// Without the cgroup of a container nothing proves the platform, so a start on the platform kvm fails.
func TestNoProofOfKVM(t *testing.T) {
	if err := (&container{e: &Engine{}}).proveKVM(); !errors.Is(err, runtimes.ErrNoProofOfKVM) {
		t.Errorf("proveKVM without a cgroup: %v", err)
	}
}
