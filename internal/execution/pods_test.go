package execution

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// A plan of a cluster is refused on a machine, and a plan of a machine in a cluster.
func TestPlansOfClustersAndMachines(t *testing.T) {
	for _, tt := range []struct {
		name, plan, want string
		isAgent          bool
	}{
		{"pods on a machine", "targets: [k8s/runc]", "use touchstone cluster run", false},
		{"the default class on a machine", "targets: [native, k8s]", "use touchstone cluster run", false},
		{"pods", "targets: [k8s, k8s/runc]", "", true},
		{"a machine's target", "targets: [k8s, native]", "an agent in a cluster measures pods", true},
		{"a pattern", "targets: [k8s/*]", "an agent in a cluster measures pods", true},
		{"no target", "blocks: 3", "an agent in a cluster measures pods", true},
		{"pinning", "targets: [k8s]\npinning: {workload: 0}", "the kubelet chooses the CPUs", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := plan.Parse("p", []byte("version: 1\nbenchmarks: [pods]\n"+tt.plan+"\n"))
			must.Do(t, err)
			config := Config{Plan: p, RunID: "run", Folder: t.TempDir()}
			if tt.isAgent {
				config.Pods = &k8s.Config{}
			}
			_, err = New(config)
			var usage *UsageError
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("New() = %v, want %q", err, tt.want)
			}
		})
	}
}

// A run of an agent whose class cannot be opened has the facts of its node and the reason, and touches nothing of the machine.
func TestRunOfAnAgent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "pods is forbidden: User \"x\" cannot list resource \"pods\""}`))
	}))
	defer server.Close()
	client, err := kube.New(&rest.Config{Host: server.URL}, "test")
	must.Do(t, err)
	f := newFrontEnd(t)
	p, err := plan.Parse("p", []byte("version: 1\nbenchmarks: [pods.start, pods.delete]\ntargets: [k8s/a]\n"))
	must.Do(t, err)
	var o recorder
	node := &result.Node{Fleet: "fleet", Name: "node1"}
	e, err := New(Config{Plan: p, Store: f.db, RunID: "run", Folder: f.folder, Observer: &o, Node: node, Pods: &k8s.Config{Client: client, Namespace: "ns", Fleet: "fleet", Image: "registry/touchstone:1"}})
	must.Do(t, err)
	outcome, err := e.Run(t.Context())
	must.Do(t, err)
	if outcome.Available || outcome.Counts[result.Skipped] != 2 {
		t.Errorf("the outcome is %+v", outcome)
	}
	run, err := f.db.Run(t.Context(), "run")
	must.Do(t, err)
	if run.Host.Hostname != "node1" || run.Host.Node == nil || run.Host.Node.Name != "node1" || len(run.Host.Storage) > 0 {
		t.Errorf("the host is %+v", run.Host)
	}
	if !strings.Contains(run.Targets[0].Unavailable, "bind the printed role") {
		t.Errorf("the target is %+v", run.Targets[0])
	}
	if i := run.Images; len(i) != 1 || i[0].Name != "registry/touchstone:1" || i[0].Digest != "" || !strings.HasPrefix(i[0].Unavailable, "its digest is not known: pods is forbidden") {
		t.Errorf("the images are %+v", i)
	}
	for _, c := range run.Caveats {
		if strings.Contains(c, "fake") {
			t.Errorf("the run has the caveat %q", c)
		}
	}
}

func TestImagesOfPods(t *testing.T) {
	names := []bench.Image{bench.WorkloadImage, "/own.tar"}
	for _, hasPrograms := range []bool{true, false} {
		e := &Execution{Config: Config{Pods: &k8s.Config{Image: "i", Programs: hasPrograms}}}
		files := e.podImages(names)
		if files[bench.ProbeImage].Ref != "i" || !engine.Unsupported(files["/own.tar"].Err) {
			t.Errorf("the images are %+v", files)
		}
		if w := files[bench.WorkloadImage]; hasPrograms && w.Ref != "i" || !hasPrograms && !engine.Unsupported(w.Err) {
			t.Errorf("programs %t: the workload image is %+v", hasPrograms, w)
		}
	}
}
