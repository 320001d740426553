package runtimes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/vmhost"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Only targets that select the platform kvm need KVM, and they are refused before any container is tried.
func TestPlatformNeedsKVM(t *testing.T) {
	l := launcher(t)
	root := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(root, "dev"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(root, "dev/kvm"), nil, 0o600))
	var works bool
	defer func(was func(engine.Session) vmhost.Host) { hostOf = was }(hostOf)
	hostOf = func(engine.Session) vmhost.Host {
		return vmhost.Host{Root: root, Arch: "amd64", Guest: func(context.Context, string) error {
			if works {
				return nil
			}
			return &vmhost.GuestError{Text: "the guest hangs before it is in real mode", Hangs: true}
		}}
	}
	bin := t.TempDir()
	for name, version := range map[string]string{"runsc": "runsc version 1", "crun": "crun version 1"} {
		must.Do(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+version+"\n"), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := engine.Session{
		Launcher: l, State: t.TempDir(), Probe: "/no/such/probe",
		Runtimes: map[string]target.Runtime{"mine": {Path: filepath.Join(bin, "runsc"), Options: []target.Option{{Name: "platform", Value: "kvm"}}}},
	}
	for _, works = range []bool{false, true} {
		for name, needs := range map[string]bool{
			"oci/runsc": false, "oci/runsc@platform=systrap": false, "oci/crun@platform=kvm": false,
			"oci/runsc@platform=kvm": true, "containerd/runsc@platform=kvm,shim=runc": true, "oci/mine": true, "oci/mine@platform=ptrace": false,
		} {
			parsed, err := target.Parse(name)
			must.Do(t, err)
			r, err := Get(t.Context(), s, parsed)
			if r.UsesKVM(parsed) != needs {
				t.Errorf("%s uses KVM: %v, want %v", name, !needs, needs)
			}
			switch isRefused := needs && !works; {
			case !isRefused && err != nil:
				t.Errorf("Get(%s): %v", name, err)
			case isRefused && (!engine.Unsupported(err) || !strings.Contains(err.Error(), name+": /dev/kvm exists, but a small test guest does not run: the guest hangs")):
				t.Errorf("Get(%s): %v, want a refusal with the reason", name, err)
			}
		}
		for _, c := range Candidates(t.Context(), s, "oci", func(f Found, _ target.Target) error { return f.Err }) {
			want := c.Target.Runtime != "youki" && c.Target.Runtime != "kata" && c.Target.Runtime != "runc"
			if platform, _ := c.Target.Option("platform"); platform == "kvm" || c.Target.String() == "oci/mine" {
				want = works
			}
			if want && c.Err != nil || !want && c.Target.Runtime == "runsc" && c.Err == nil {
				t.Errorf("candidate %s: %v", c.Target, c.Err)
			}
		}
	}
}
