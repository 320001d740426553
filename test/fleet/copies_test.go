package fleet_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/cluster"
)

// The numbers of runs of a class and its copy, and the greatest numbers of alarms. A metric has an error of at most 5 %, so runs have more alarms with a
// probability below 0.3 %. FLEET_FULL=1 selects the full number, which takes a third of an hour.
const (
	copyRuns, mostAlarms         = 6, 2
	fullCopyRuns, fullMostAlarms = 20, 4
)

// A class is not shown to differ from a copy of itself: two handlers of one runtime, in several runs on one node.
func TestCopies(t *testing.T) {
	cells.Need(t, "fleet/copies")
	runs, limit := copyRuns, mostAlarms
	if os.Getenv("FLEET_FULL") != "" {
		runs, limit = fullCopyRuns, fullMostAlarms
	}
	cluster.Require(t)
	dir, err := build()
	must.Do(t, err)
	runc, err := exec.LookPath("runc")
	must.Do(t, err)
	p := &place{program: dir + "/touchstone", dir: t.TempDir()}
	p.Cluster = cluster.New(t, cluster.Options{Nodes: 1, Runtimes: map[string]string{"copy": runc}, Images: []string{dir + "/agent.tar"}})
	alarms := map[string]int{}
	for range runs {
		output, err := p.command(t, "cluster", "run", "--image", image, "-d", p.dir, "--targets", "k8s/runc,k8s/copy", "--baseline", "k8s/runc", "--filter", "pods.start", "-n", "8", "-o", "json").Output()
		must.Do(t, err)
		for metric, verdict := range verdicts(t, output) {
			if verdict == stats.Faster || verdict == stats.Slower {
				alarms[metric]++
			}
		}
	}
	t.Logf("alarms of %d runs by metric: %v", runs, alarms)
	if n := alarms["FirstInstruction"]; n > limit {
		t.Errorf("%d of %d runs show a difference between a class and its copy", n, runs)
	}
}

// verdicts are the verdicts about the second target in the report of a run, by metric.
func verdicts(t *testing.T, text []byte) map[string]stats.Verdict {
	t.Helper()
	var report struct {
		Benchmarks []struct {
			Metrics []struct {
				Name  string
				Cells []struct {
					Comparison *struct{ Verdict stats.Verdict }
				}
			}
		}
	}
	must.Do(t, json.Unmarshal(text, &report))
	list := map[string]stats.Verdict{}
	for _, b := range report.Benchmarks {
		for _, m := range b.Metrics {
			for _, c := range m.Cells {
				if c.Comparison != nil {
					list[m.Name] = c.Comparison.Verdict
				}
			}
		}
	}
	if list["FirstInstruction"] == "" {
		t.Fatalf("the report has no verdict about FirstInstruction: %s", text)
	}
	return list
}
