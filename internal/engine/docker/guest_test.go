package docker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// A target with a virtual machine has an entry with the path of its own configuration.
func TestEntriesOfGuests(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "kata.toml")
	must.Do(t, os.WriteFile(config, []byte("[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only = true\n"), 0o600))
	e := entries{}
	e.add(runtimes.Runtime{Name: "runc", Binary: "/bin/runc"}, nil)
	for _, options := range []string{"", ",memory=300"} {
		kataTarget := enginetest.Parse(t, "docker/kata@config="+config+options)
		r := runtimes.Runtime{Name: kata.Name, Type: kata.Type}
		var err error
		if r.Guest, err = kata.Load("", kataTarget.Options); err != nil {
			t.Fatal(err)
		}
		must.Do(t, e.addGuest(r, kataTarget, dir))
		c := choice{names: map[engine.Network]string{}}
		must.Do(t, e.choose(c, r, kataTarget, nil))
		name := c.names[engine.Bridged]
		if !strings.HasPrefix(name, engine.Prefix+"kata-") || c.names[engine.NoNetwork] != name {
			t.Errorf("%s has the entries %q", kataTarget, c.names)
		}
		file := config
		if options != "" {
			file = filepath.Join(dir, name+".toml")
		}
		text, err := json.Marshal(e[name])
		want := `{"runtimeType":"io.containerd.kata.v2","options":{"TypeUrl":"io.containerd.kata.v2.options","ConfigPath":"` + file + `"}}`
		if err != nil || string(text) != want {
			t.Errorf("entry of %s: %s, %v; want %s", kataTarget, text, err, want)
		}
		variant := kataTarget.With("vcpus", "7")
		if err := e.choose(c, r, variant, nil); !engine.Unsupported(err) || !strings.Contains(err.Error(), "started without this target") {
			t.Errorf("a target without an entry: %v", err)
		}
	}
	if text, err := json.Marshal(e[engine.Prefix+"runc-0"]); err != nil || string(text) != `{"path":"/bin/runc"}` {
		t.Errorf("entry of runc: %s, %v", text, err)
	}
}
