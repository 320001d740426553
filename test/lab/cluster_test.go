package lab

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// clusterFiles are the files for a Kubernetes cluster that scripts/test-lab.sh adds: the programs, the script that starts clusters, and the tests.
var clusterFiles = []string{
	"kube", "cluster-host", "containerd", "ctr", "containerd-shim-runc-v2", "runsc", "containerd-shim-runsc-v1", "cluster.sh", "cluster.test", "probe",
}

// clusterMachine returns an x86-64 machine with pure cgroup v2, and with the programs that scripts/cluster.sh calls.
func clusterMachine() Machine {
	return Machine{
		Name: "cluster", Arch: "amd64", Memory: 3072, CPUs: 2,
		Packages: []string{
			"base-files", "bash", "containernetworking-plugins", "coreutils", "crun", "findutils", "grep", "iproute2", "mawk", "runc", "sed", "tar", "util-linux",
		},
		Modules: modules,
	}
}

// A Kubernetes cluster works on a machine with cgroup v2: pods of each class run, also after another boot of the node. Afterwards nothing of
// the cluster is left.
func TestCluster(t *testing.T) {
	cells.Need(t, "lab/cluster")
	dir := built(t)
	l, m := open(t), clusterMachine()
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	files := make(map[string]string)
	for _, name := range clusterFiles {
		files[name] = filepath.Join(dir, "cluster", name)
	}
	const limit = 25 * time.Minute
	work := []job.Step{
		// The package's installation would make the link, and the tests find the script like in a checkout.
		{Name: "links", Limit: time.Minute, Args: []string{"bash", "-c", "cd " + job.Dir + " && ln -s /usr/bin/mawk awk && mkdir scripts && ln -s ../cluster.sh scripts"}},
		{
			Name: "pods", Limit: limit,
			Args: []string{"bash", "-c", "cd " + job.Dir + " && exec cluster.test -test.v -test.run '^TestOneNode$' -test.timeout " + limit.String()},
			Env:  []string{enginetest.MustRun + "=native", "CLUSTER_PROBE=" + job.Dir + "/probe"},
		},
	}
	report, err := repeatBreakpoint(t, func() (job.Report, error) {
		return l.Boot(t.Context(), m, image, job.Job{Hostname: m.Name, Steps: work}, files, Options{Out: outOf(t, m.Name)})
	})
	must.Do(t, err)
	checkSteps(t, report)
}
