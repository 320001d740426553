package outage

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// Exit codes of touchstone.
const (
	exitOK          = 0
	exitFailure     = 1
	exitTrials      = 3
	exitNoTarget    = 5
	exitInterrupted = 130
)

// faultPlan takes some seconds on each node.
const faultPlan = `version: 1
name: faults
targets: [k8s/runc]
benchmarks: [pods.start]
blocks: 5
warmup: 0
`

// longPlan takes half a minute on each node.
const longPlan = `version: 1
name: faults
targets: [k8s/runc]
benchmarks: [pods.start]
blocks: 25
warmup: 0
`

// faults are the cases of TestFaults. Each one leaves the cluster as it was.
var faults = []struct {
	name string
	test func(s *site)
}{
	{"killed between two requests", killedBetweenRequests},
	{"denied halfway", deniedHalfway},
	{"credentials expired", expiredCredentials},
	{"quota", exceededQuota},
	{"taints", taints},
	{"image absent", absentImage},
	{"image of another architecture", foreignArchitecture},
	{"drained", drained},
	{"preempted", preempted},
	{"measured pods evicted", evicted},
	{"hostile names", hostileNames},
	{"handler missing", missingHandler},
	{"errors of the API server", unreliableServer},
	{"API server killed", killedServer},
	{"two runs", twoRuns},
	{"stuck namespace", stuckNamespace},
}

// TestFaults gives cluster runs the faults of real clusters. Each fault is in the output with its reason; no trial is lost, and nothing is left.
//
// Invariant cluster-faults: A fault of a cluster is reported with its reason, and ends or delays only the nodes that it concerns.
func TestFaults(t *testing.T) {
	cells.Need(t, "fleet/faults")
	s := newSite(t, 2)
	s.plant()
	baseline, err := s.state()
	must.Do(t, err)
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			part := *s
			part.T = t
			defer func() { _, _ = s.touchstone("cluster", "cleanup", "--all") }() // a failed case may leave its run
			fault.test(&part)
			part.unchanged(baseline)
		})
	}
}

// measured checks that each node of a run has all its trials, and that each one succeeded.
func (f *fleet) measured(blocks int) {
	f.Helper()
	runs := f.runs()
	for n := range f.nodes {
		run := runs[nodeName(n+1)]
		ok := 0
		for i := range run.Trials {
			if run.Trials[i].Status == result.OK {
				ok++
			}
		}
		if ok != blocks || run.State != result.Complete {
			f.Errorf("run %s of node%d is %q with %d successful trials, want complete with %d:\n%s", f.id, n+1, run.State, ok, blocks, f.coordinator.text())
		}
	}
}

// awaitTrials waits until each node has a number of trials in the results file. A node may begin long after another one.
func (f *fleet) awaitTrials(count int) {
	f.Helper()
	f.await(fmt.Sprintf("a node has fewer than %d trials in the results file", count), func() string {
		runs := f.runs()
		for n := range f.nodes {
			name := nodeName(n + 1)
			if found := len(runs[name].Trials); found < count && !f.coordinator.hasExited() {
				return fmt.Sprintf("%s has %d", name, found)
			}
		}
		return ""
	})
}

// killedBetweenRequests kills the coordinator right after each of its requests that create an object. A collection ends, and a clean-up of all runs
// finds the rest.
func killedBetweenRequests(s *site) {
	for count := int64(1); ; count++ {
		var requests atomic.Int64
		died := make(chan struct{})
		var f *fleet
		var death sync.Once
		f = s.prepare(s.proxy(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			pass.ServeHTTP(w, r)
			if r.Method == http.MethodPost && !strings.Contains(r.URL.Path, "selfsubject") && requests.Add(1) == count {
				death.Do(func() {
					_ = f.coordinator.cmd.Process.Kill() // it has not ended: it waits for the answer
					close(died)
				})
			}
		}))
		f.run(faultPlan)
		select {
		case <-f.coordinator.exited:
		case <-time.After(patience):
			s.Fatalf("the run does not end:\n%s", f.coordinator.text())
		}
		isKilled := false
		select {
		case <-died:
			isKilled = true
			f.start("collect")
			f.ends() // it may have nothing to collect
		default:
			f.mustEnd(exitOK)
		}
		output, err := s.touchstone("cluster", "cleanup", "--all")
		if err != nil {
			s.Fatalf("clean up after request %d: %v\n%s", count, err, output)
		}
		list, err := s.kubectl("get", "namespaces", "-o", "name")
		must.Do(s, err)
		if left := regexp.MustCompile(`(?m)^namespace/touchstone-2[1-9].*|^namespace/touchstone-202[1-9].*`).FindString(list); left != "" {
			s.Errorf("killed after request %d: the clean-up leaves %s, and prints:\n%s", count, left, output)
		}
		if !isKilled {
			s.Logf("a run makes %d objects", requests.Load())
			return
		}
	}
}

// account makes a service account with the rights of the administrator, without some, and returns its kubeconfig file.
func (s *site) account(rules string) string {
	s.Helper()
	s.Apply(s, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: user, namespace: neighbour}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: user}
rules:
`+rules+`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: user}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: user}
subjects: [{kind: ServiceAccount, name: user, namespace: neighbour}]
`)
	s.Cleanup(func() {
		_, err := s.kubectl("delete", "clusterrolebinding/user", "clusterrole/user")
		must.Do(s, err)
	})
	token, err := s.kubectl("create", "token", "user", "--namespace", "neighbour")
	must.Do(s, err)
	text, err := os.ReadFile(s.Kubeconfig)
	must.Do(s, err)
	server := regexp.MustCompile(`https://[0-9.:]+`).FindString(string(text))
	return s.kubeconfig(server, `{"token": "`+strings.TrimSpace(token)+`"}`)
}

// deniedHalfway takes the right to bind roles from the user. The objects made before are removed.
func deniedHalfway(s *site) {
	access := s.account(`
- {apiGroups: [""], resources: [namespaces, nodes, pods, pods/log, configmaps, serviceaccounts, events], verbs: ["*"]}
- {apiGroups: [node.k8s.io], resources: [runtimeclasses], verbs: ["*"]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: ["*"]}`)
	defer func() { _, _ = s.kubectl("delete", "serviceaccount", "user", "--namespace", "neighbour") }()
	f := s.prepare(access)
	f.run(faultPlan)
	f.mustEnd(exitFailure, `create role binding .*cannot create resource "rolebindings"`, "touchstone cluster check lists the rights")
}

// expiredCredentials has a token that no server knows.
func expiredCredentials(s *site) {
	text, err := os.ReadFile(s.Kubeconfig)
	must.Do(s, err)
	f := s.prepare(s.kubeconfig(regexp.MustCompile(`https://[0-9.:]+`).FindString(string(text)), `{"token": "expired"}`))
	f.run(faultPlan)
	f.mustEnd(exitFailure, "the credentials are wrong or have expired: log in again")
}

// exceededQuota lets a namespace hold the agents, and no pod besides.
func exceededQuota(s *site) {
	s.Apply(s, `
apiVersion: v1
kind: Namespace
metadata: {name: small}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: small}
spec: {hard: {pods: "2"}}
`)
	defer func() { _, _ = s.kubectl("delete", "namespace", "small") }()
	f := s.prepare(s.Kubeconfig)
	f.run(faultPlan, "--namespace", "small")
	f.mustEnd(exitNoTarget, "exceeded quota: few", "raise the quota")
}

// taints takes a node away by a taint before a run, and in the middle of one.
func taints(s *site) {
	defer func() { _, _ = s.kubectl("taint", "node", "node2", "dedicated-", "maintenance-") }()
	s.Kubectl(s, "taint", "node", "node2", "dedicated=db:NoSchedule")
	f := s.prepare(s.Kubeconfig)
	f.run(faultPlan)
	f.mustEnd(exitOK, `node node2 is not measured: it has the taint dedicated=db:NoSchedule.*kubectl taint node node2 dedicated:NoSchedule-`,
		`Node node2 is not measured\b`, "1 of 1 nodes complete")
	s.Kubectl(s, "taint", "node", "node2", "dedicated-")

	f = s.begin(longPlan)
	f.awaitTrials(3)
	f.keep()
	s.Kubectl(s, "taint", "node", "node2", "maintenance=true:NoExecute")
	f.awaitOutput(`node2: starting: the scheduler does not place its pod: .*untolerated taint`)
	s.Kubectl(s, "taint", "node", "node2", "maintenance-")
	f.mustEnd(exitOK, `node2: its agent was lost`)
	f.check()
	f.measured(25)
}

// absentImage names an image that no node can pull. The nodes are reported at once, and end after a limit.
func absentImage(s *site) {
	f := s.prepare(s.Kubeconfig)
	f.run(faultPlan, "--image", "127.0.0.1:1/absent:1")
	f.awaitOutput(`node1: starting: its kubelet cannot pull the image 127.0.0.1:1/absent:1`)
	f.mustEnd(exitNoTarget, "node[12]: failed: no pull succeeded in 3m0s: its kubelet cannot pull the image 127.0.0.1:1/absent:1", "push it with touchstone cluster image push")
}

// foreignArchitecture has an image whose program is of another architecture.
func foreignArchitecture(s *site) {
	arch := "arm64"
	if runtime.GOARCH == arch {
		arch = "amd64"
	}
	file := filepath.Join(s.TempDir(), "foreign.tar")
	// The probe stands in for touchstone: both are programs of the architecture.
	output, err := s.touchstoneLocal("cluster", "image", "save", file, "--probe-only", "--name", "localhost/foreign:1", "--program", "../../internal/image/probe/probe-"+arch)
	if err != nil {
		s.Fatalf("make the image: %v\n%s", err, output)
	}
	s.Load(s, file)
	f := s.prepare(s.Kubeconfig)
	f.run(faultPlan, "--image", "localhost/foreign:1")
	f.mustEnd(exitNoTarget, "exec format error", "architecture")
}

// drained drains a node in the middle of a run. The run goes on when the node takes pods again.
func drained(s *site) {
	f := s.begin(longPlan)
	f.awaitTrials(3)
	f.keep()
	defer func() { _, _ = s.kubectl("uncordon", "node2") }()
	s.Kubectl(s, "drain", "node2", "--force", "--delete-emptydir-data", "--timeout=180s", "--pod-selector", "touchstone.role=agent")
	f.awaitOutput(`node2: .*(EvictionByEvictionAPI|the scheduler does not place its pod: .*unschedulable)`)
	s.Kubectl(s, "uncordon", "node2")
	f.mustEnd(exitOK)
	f.check()
	f.measured(25)
}

// preempted lets a pod of a higher priority take the place of an agent.
func preempted(s *site) {
	s.Apply(s, `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
`)
	defer func() { _, _ = s.kubectl("delete", "priorityclass", "high") }()
	f := s.begin(longPlan)
	f.awaitTrials(3)
	f.keep()
	cpus, err := s.kubectl("get", "node", "node2", "-o", "jsonpath={.status.allocatable.cpu}")
	must.Do(s, err)
	s.Apply(s, `
apiVersion: v1
kind: Pod
metadata: {name: big, namespace: neighbour}
spec:
  priorityClassName: high
  nodeSelector: {kubernetes.io/hostname: node2}
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: localhost/probe:1, imagePullPolicy: Never, args: [ready], resources: {requests: {cpu: "`+cpus+`"}}}]
`)
	defer func() { _, _ = s.kubectl("delete", "pod", "big", "--namespace", "neighbour", "--ignore-not-found") }()
	f.awaitOutput(`node2: .*(PreemptionByScheduler|Insufficient cpu)`)
	s.Kubectl(s, "delete", "pod", "big", "--namespace", "neighbour")
	f.mustEnd(exitOK)
	f.check()
	f.measured(25)
}

// evicted evicts measured pods by the API, as a drain and a kubelet without memory do. Their trials are repeated.
func evicted(s *site) {
	f := s.begin(busyPlan)
	evictedPods := map[string]bool{}
	f.await("no measured pod was evicted", func() string {
		list, err := s.kubectl("get", "pods", "--namespace", f.namespace(), "-l", "touchstone.class", "--field-selector", "status.phase=Running", "-o", "name")
		must.Do(s, err)
		for name := range strings.FieldsSeq(list) {
			name = strings.TrimPrefix(name, "pod/")
			if evictedPods[name] || repeated.MatchString(name) {
				continue
			}
			eviction := `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "` + name + `", "namespace": "` + f.namespace() + `"}}`
			file := filepath.Join(s.TempDir(), "eviction.json")
			must.Do(s, os.WriteFile(file, []byte(eviction), 0o600))
			if _, err := s.kubectl("create", "--raw", "/api/v1/namespaces/"+f.namespace()+"/pods/"+name+"/eviction", "-f", file); err == nil { // its trial may have ended
				evictedPods[name] = true
			}
		}
		if len(evictedPods) < evictions && !f.coordinator.hasExited() {
			return fmt.Sprintf("%d were", len(evictedPods))
		}
		return ""
	})
	f.mustEnd(exitOK)
	f.measured(6)
	caveats := ""
	for _, run := range f.runs() {
		caveats += strings.Join(run.Caveats, "\n")
	}
	if !regexp.MustCompile("outages interrupted .* which were repeated .*EvictionByEvictionAPI").MatchString(caveats) {
		s.Errorf("the caveats lack the evictions:\n%s", caveats)
	}
}

// busyPlan is a run whose pods are busy for seconds, so that an eviction finds them at work.
const busyPlan = `version: 1
name: busy
targets: [k8s/runc]
benchmarks: [{name: performance.syscall.unixbench, params: {duration: 5s}}]
blocks: 6
warmup: 0
`

// evictions is the number of measured pods that are evicted.
const evictions = 3

// repeated matches the pods of repeated trials. A trial whose pods are evicted in each attempt has failed.
var repeated = regexp.MustCompile("-t[0-9]+r[0-9]+-")

// hostileNames has a class and a plan with names that are as long and as strange as they may be.
func hostileNames(s *site) {
	class := strings.Repeat("a", 63) + ".0--9." + strings.Repeat("z", 55)
	s.Apply(s, `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: `+class+`}
handler: runc
`)
	defer func() { _, _ = s.kubectl("delete", "runtimeclass", class) }()
	f := s.begin(strings.NewReplacer("k8s/runc", "k8s/"+class, "name: faults", `name: "<b>../$(x)"`).Replace(faultPlan))
	f.mustEnd(exitOK)
	f.measured(5)
}

// missingHandler has a class without a handler on the nodes. Only an event shows the reason. The other class is measured.
func missingHandler(s *site) {
	s.Apply(s, `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: ghost}
handler: ghost
`)
	defer func() { _, _ = s.kubectl("delete", "runtimeclass", "ghost") }()
	f := s.begin(strings.Replace(faultPlan, "k8s/runc", "k8s/runc, k8s/ghost", 1))
	f.mustEnd(exitNoTarget, `no runtime for "ghost" is configured`, "install the handler of the class", "asked for, and measured on no node: k8s/ghost; the report has the reasons")
	f.measured(5)
}

// unreliableServer answers requests with the errors of an overloaded or restarting server, ends watches, and forgets their place.
func unreliableServer(s *site) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(34, 0))
	counts := map[string]int{}
	isArmed := false
	f := s.prepare(s.proxy(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		mu.Lock()
		draw := random.IntN(100)
		isWatch := r.URL.Query().Get("watch") != ""
		kind := ""
		isArmed = isArmed || r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces"
		switch {
		case !isArmed: // a run that has created nothing ends with the first error
		case isWatch && draw < 40:
			kind = "expired"
		case draw < 10:
			kind = "busy"
		case draw < 20:
			kind = "broken"
		case draw < 25:
			kind = "dropped"
		case draw < 30 && r.Method == http.MethodPost:
			kind = "unanswered"
		}
		counts[kind]++
		mu.Unlock()
		switch kind {
		case "expired":
			answer(w, http.StatusGone, "Expired")
		case "busy":
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusTooManyRequests, "TooManyRequests")
		case "broken":
			answer(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		case "dropped":
			panic(http.ErrAbortHandler)
		case "unanswered": // the object exists, and the client does not know it
			pass.ServeHTTP(discard{}, r)
			panic(http.ErrAbortHandler)
		default:
			pass.ServeHTTP(w, r)
		}
	}))
	f.run(longPlan)
	f.mustEnd(exitOK)
	f.awaitID()
	f.measured(25)
	mu.Lock()
	defer mu.Unlock()
	s.Logf("answers: %v", counts)
	for _, kind := range []string{"expired", "busy", "broken"} {
		if counts[kind] == 0 {
			s.Errorf("no request was %s", kind)
		}
	}
}

// killedServer kills the API server under trials. It refuses requests after its return, until it has read the roles. No trial has failed.
func killedServer(s *site) {
	f := s.begin(longPlan)
	for count := 2; count <= 20; count += 4 {
		f.awaitTrials(count)
		s.KillControl(s, "kube-apiserver")
	}
	f.mustEnd(exitOK)
	f.measured(25)
}

// discard drops the answer to a request.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// twoRuns starts a second run on nodes that another one measures.
func twoRuns(s *site) {
	first := s.begin(longPlan)
	first.awaitTrials(1)
	second := s.prepare(s.Kubeconfig)
	second.run(faultPlan)
	second.mustEnd(exitFailure, "cluster run "+first.id+" in namespace .* measures on node node[12]: the two runs would measure each other", "--allow-concurrent")
	second = s.begin(faultPlan, "--allow-concurrent")
	second.mustEnd(exitOK)
	second.measured(5)
	if caveats := strings.Join(second.runs()["node1"].Caveats, "\n"); !strings.Contains(caveats, "cluster run "+first.id) {
		s.Errorf("the caveats of the second run lack the first one:\n%s", caveats)
	}
	first.mustEnd(exitOK)
	first.measured(25)
}

// stuckNamespace has an object of the run that a finalizer keeps.
func stuckNamespace(s *site) {
	f := s.begin(faultPlan)
	f.awaitTrials(1)
	s.Kubectl(s, "patch", "configmap", "touchstone-"+f.id, "--namespace", f.namespace(), "--type=merge", "--patch", `{"metadata": {"finalizers": ["example.org/by-hand"]}}`)
	f.mustEnd(exitFailure, "namespace .* is still there after .*example.org/by-hand", "touchstone cluster cleanup "+f.id)
	f.measured(5)
	s.Kubectl(s, "patch", "configmap", "touchstone-"+f.id, "--namespace", f.namespace(), "--type=merge", "--patch", `{"metadata": {"finalizers": null}}`)
}
