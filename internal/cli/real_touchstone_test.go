package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/touchstone"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// TestTouchStonesSuites executes suites with all keys of TouchStone on both of its engines with both of its runtimes.
func TestTouchStonesSuites(t *testing.T) {
	cells.Need(t, "cli/suites")
	needRoot(t, "runc", "runsc", "containerd", "crio")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "suites"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, filter := range map[string]string{"operations": "operations", "scalability": "scalability.runtime.5"} {
		text := fmt.Sprintf("oci: [\"runc\", \"runsc\"]\ncri: [\"containerd\", \"crio\"]\noutput: results.json\nfilter:\n  - %s\nruns: 2\nscale: 1\n", filter)
		if err := os.WriteFile(filepath.Join(dir, "suites", name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dir, "benchmark", "--managed", "-f", "suites/*.yaml", "-d", "out")
	p.ends(0)
	p.says(`^out/index.html has the results of 2 runs$`)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	for _, trial := range run.Trials {
		if trial.Status != result.OK || trial.Conditions["PID namespace of pods"] != "one for the pod" || trial.Conditions["grace of a kill"] != "10s between SIGTERM and SIGKILL" {
			t.Errorf("%s: %s %q, with the conditions %v", trial.Target, trial.Status, trial.Reason, trial.Conditions)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "out", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	d := json.NewDecoder(bytes.NewReader(data))
	for d.More() {
		var entries []struct {
			CRI, OCI string
			Results  []struct {
				Name    string
				Reports []map[string]float64
			}
		}
		if err := d.Decode(&entries); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			for _, r := range e.Results {
				got = append(got, fmt.Sprintf("%s/%s %s", e.CRI, e.OCI, r.Name))
				for _, values := range r.Reports {
					for _, metric := range touchstone.Metrics(r.Name) {
						if values[metric] <= 0 {
							t.Errorf("%s/%s: %s is %v s", e.CRI, e.OCI, metric, values[metric])
						}
					}
				}
				if len(r.Reports) != 2 {
					t.Errorf("%s/%s: %s has %d reports, want 2", e.CRI, e.OCI, r.Name, len(r.Reports))
				}
			}
		}
	}
	var want []string
	for _, name := range []string{"operations.container.lifecycle", "scalability.runtime.5"} {
		for _, target := range []string{"containerd/runc", "containerd/runsc", "crio/runc", "crio/runsc"} {
			want = append(want, target+" "+name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results.json (-want +got):\n%s", diff)
	}
	start(t, dir, "import", "out/results.json", "-d", "imported").ends(0)
}
