package oci

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The bundle decides what is measured, so that a change of it must be visible.
func TestBundle(t *testing.T) {
	base := engine.Spec{
		ID: "touchstone-x-1", Rootfs: "/rootfs",
		Process: engine.Process{Args: []string{"/probe", "ready"}, Env: []string{"LANG=C"}},
	}
	modify := func(change func(*engine.Spec)) engine.Spec {
		s := base
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name     string
		spec     engine.Spec
		cgroup   string
		rootless bool
	}{
		{"plain", base, "/touchstone-x/touchstone-x-1", false},
		{"host-network", modify(func(s *engine.Spec) { s.Network = engine.HostNet }), "/touchstone-x/touchstone-x-1", false},
		{"mounts", modify(func(s *engine.Spec) {
			s.Mounts = []engine.Mount{{Source: "/a", Target: "/data"}, {Source: "/b", Target: "/input", ReadOnly: true}, {Target: "/data/memory"}}
		}), "/touchstone-x/touchstone-x-1", false},
		{"limits", modify(func(s *engine.Spec) { s.Resources = engine.Resources{CPU: 0.1, Memory: 64 << 20} }), "/touchstone-x/touchstone-x-1", false},
		{"pinned", modify(func(s *engine.Spec) { s.Resources = engine.Resources{CPUSet: "0-3,6"} }), "/touchstone-x/touchstone-x-1", false},
		{"rootless", modify(func(s *engine.Spec) { s.Resources = engine.Resources{CPU: 0.1, Memory: 64 << 20} }), "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := bundleSpec(tt.spec, tt.cgroup, tt.rootless)
			for _, ids := range []struct {
				mappings []specs.LinuxIDMapping
				own      int
			}{{s.Linux.UIDMappings, os.Getuid()}, {s.Linux.GIDMappings, os.Getgid()}} {
				for i := range ids.mappings {
					if ids.mappings[i].HostID != uint32(ids.own) {
						t.Errorf("root is mapped to %d, want %d", ids.mappings[i].HostID, ids.own)
					}
					ids.mappings[i].HostID = 1000
				}
			}
			file := filepath.Join(t.TempDir(), "config.json")
			must.Do(t, writeJSON(file, s))
			got, err := os.ReadFile(file)
			must.Do(t, err)
			golden := filepath.Join("testdata", "spec", tt.name+".json")
			if *update {
				var value any
				must.Do(t, json.Unmarshal(got, &value))
				text, err := json.MarshalIndent(value, "", "  ")
				must.Do(t, err)
				must.Do(t, os.WriteFile(golden, append(text, '\n'), 0o644))
			}
			want, err := os.ReadFile(golden)
			must.Do(t, err)
			if diff := cmp.Diff(decode(t, want), decode(t, got)); diff != "" {
				t.Errorf("config.json (-want +got):\n%s", diff)
			}
		})
	}
}

func decode(t *testing.T, text []byte) (value any) {
	t.Helper()
	must.Do(t, json.Unmarshal(text, &value))
	return value
}

// A zero is left out: some runtimes would take it for a limit.
func TestResources(t *testing.T) {
	for _, tt := range []struct {
		limits engine.Resources
		want   string
	}{
		{engine.Resources{}, `{}`},
		{engine.Resources{CPU: 1.5}, `{"cpu":{"quota":150000,"period":100000}}`},
		{engine.Resources{CPU: 0.29}, `{"cpu":{"quota":29000,"period":100000}}`},
		{engine.Resources{CPUSet: "0-3,6"}, `{"cpu":{"cpus":"0-3,6"}}`},
		{engine.Resources{CPU: 2, CPUSet: "1"}, `{"cpu":{"quota":200000,"period":100000,"cpus":"1"}}`},
		{engine.Resources{Memory: 1 << 40}, `{"memory":{"limit":1099511627776}}`},
	} {
		got, err := json.Marshal(resources(tt.limits))
		if err != nil || string(got) != tt.want {
			t.Errorf("resources(%+v) = %s, %v; want %s", tt.limits, got, err, tt.want)
		}
	}
}
