package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// pod returns a pod of the probe that writes a line and waits.
func pod(name, class, node string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q},
"spec": {"runtimeClassName": %q, "nodeSelector": {"kubernetes.io/hostname": %q}, "restartPolicy": "Never",
"containers": [{"name": "c", "image": %q, "imagePullPolicy": "Never", "args": ["ready"]}]}}
`, name, class, node, cluster.ProbeImage)
}

// checkPods runs a pod of each class on a node, and checks its log.
func checkPods(t *testing.T, c *cluster.Cluster, node string, classes ...string) {
	t.Helper()
	var objects, names []string
	for _, class := range classes {
		name := class + "-" + node
		objects, names = append(objects, pod(name, class, node)), append(names, "pod/"+name)
	}
	c.Apply(t, strings.Join(objects, "\n"))
	c.Kubectl(t, append([]string{"wait", "--for=condition=Ready", "--timeout=180s"}, names...)...)
	for _, name := range names {
		if log := strings.TrimSpace(c.Kubectl(t, "logs", name)); log != "ready" {
			t.Errorf("the log of %s is %q, want ready", name, log)
		}
	}
	c.Kubectl(t, append([]string{"delete", "--timeout=180s"}, names...)...)
}

func TestPodOfEachClassRunsOnEachNode(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for _, node := range []string{"node1", "node2"} {
		checkPods(t, c, node, "runc", "crun", "runsc")
	}
}

// A node that boots again runs pods as before. The lab runs this test on a machine with cgroup v2.
func TestOneNode(t *testing.T) {
	cells.Need(t, "cluster/more")
	c := cluster.New(t, cluster.Options{Nodes: 1})
	checkPods(t, c, "node1", "runc", "crun", "runsc")
	c.StopNode(t, 1)
	c.StartNode(t, 1)
	c.Wait(t)
	checkPods(t, c, "node1", "runc")
}

// Two clusters run side by side, with the same addresses. Each API knows only its own node.
func TestSideBySide(t *testing.T) {
	cells.Need(t, "cluster/more")
	c := cluster.Start(t, cluster.Options{})
	neighbour := cluster.New(t, cluster.Options{Nodes: 1})
	checkPods(t, neighbour, "node1", "runc")
	checkPods(t, c, "node2", "runc")
	if names := neighbour.Kubectl(t, "get", "nodes", "-o", "name"); names != "node/node1\n" {
		t.Errorf("the second cluster has the nodes %q, want node1", names)
	}
	if c.Kubeconfig == neighbour.Kubeconfig {
		t.Errorf("both clusters have the directory %s", c.Dir)
	}
}

// A handler of one node is a RuntimeClass of the cluster, and works on this node only.
func TestRuntimeOfOneNode(t *testing.T) {
	cells.Need(t, "cluster/more")
	c := cluster.New(t, cluster.Options{Runtimes: map[string]string{"rare": programPath(t, "runc") + "@2"}})
	checkPods(t, c, "node2", "rare")
	c.Apply(t, pod("lost", "rare", "node1"))
	awaitEvent(t, c, "lost", `no runtime for "rare" is configured`)
}

// awaitEvent reads the events of a pod until one has this text.
func awaitEvent(t *testing.T, c *cluster.Cluster, pod, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(c.Dir, "bin", "kubectl"), "--kubeconfig", c.Kubeconfig, "--cache-dir", t.TempDir(),
		"get", "events", "--watch", "--field-selector", "involvedObject.name="+pod, "-o", "jsonpath={.message}{'\\n'}")
	output, err := command.StdoutPipe()
	must.Do(t, err, command.Start())
	defer func() { _ = command.Wait() }()
	defer cancel()
	var messages []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if messages = append(messages, lines.Text()); strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Errorf("the events of %s are\n%s\nwant one with %q", pod, strings.Join(messages, "\n"), text)
}

// A cluster survives the end of each program, a frozen kubelet, and the power failure of a node.
func TestFaults(t *testing.T) {
	cells.Need(t, "cluster/faults")
	c := cluster.New(t, cluster.Options{})
	for _, program := range []string{"kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager"} {
		c.KillControl(t, program)
		c.Wait(t)
	}
	for _, program := range []string{"kubelet", "containerd"} {
		c.Kill(t, 1, program)
		checkPods(t, c, "node1", "runc", "runsc")
	}
	c.StopNode(t, 2)
	c.Freeze(t, 1)
	c.Kubectl(t, "wait", "--for=condition=Ready=Unknown", "nodes", "--all", "--timeout=180s")
	c.Thaw(t, 1)
	c.StartNode(t, 2)
	c.Wait(t)
	for _, node := range []string{"node1", "node2"} {
		checkPods(t, c, node, "runc", "runsc")
	}
}

// A node with CRI-O is a node like one with containerd.
func TestCRIO(t *testing.T) {
	cells.Need(t, "cluster/crio")
	c := cluster.New(t, cluster.Options{Nodes: 1, Engine: "crio"})
	checkPods(t, c, "node1", "runc", "crun")
	if version := c.Kubectl(t, "get", "nodes", "-o", "jsonpath={.items[0].status.nodeInfo.containerRuntimeVersion}"); !strings.HasPrefix(version, "cri-o://") {
		t.Errorf("the node runs %s, want cri-o", version)
	}
}

// Pods run on fake nodes beside a real one, and have the log that their cluster got.
func TestFakeNodes(t *testing.T) {
	cells.Need(t, "cluster/fake")
	c := cluster.New(t, cluster.Options{Nodes: 1})
	log := filepath.Join(t.TempDir(), "log")
	must.Do(t, os.WriteFile(log, []byte("2026-01-01T00:00:00.000000000Z stdout F a line\n"), 0o600))
	c.AddFakeNodes(t, 100, log)
	c.Apply(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "fake"},
"spec": {"nodeSelector": {"kubernetes.io/hostname": "fake-0100"}, "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "none"}]}}`)
	c.Kubectl(t, "wait", "--for=condition=Ready", "--timeout=180s", "pod/fake")
	if log := c.Kubectl(t, "logs", "fake"); log != "a line\n" {
		t.Errorf("the log of a fake pod is %q, want the line of the file", log)
	}
	checkPods(t, c, "node1", "runc")
}

// programPath returns the path of a program.
func programPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	must.Do(t, err)
	return path
}
