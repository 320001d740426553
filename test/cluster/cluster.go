// Package cluster starts Kubernetes clusters for tests, by scripts/cluster.sh: real control planes and nodes in namespaces of this machine.
// It is not part of the product.
//
// A cluster takes some seconds and 700 MB of memory, so the tests of a package share it: Start returns the same cluster for the same options. A test
// that harms its cluster takes one of its own by New. A package whose tests use clusters has
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
//
// A cluster ends with the process of its tests, however that ends: a guard in a session of its own holds the cluster while a pipe from the tests is open.
//
// The programs come from PATH. Tests without them, or without root, are skipped with the reason. If TOUCHSTONE_MUST_RUN is set they fail.
package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/test/record"
)

// ProbeImage is an image that every node has. Its entry point is the probe.
const ProbeImage = "localhost/probe:1"

// Options are the properties of a cluster.
type Options struct {
	// Nodes is the number of nodes: node1, node2, …. 0 means 2.
	Nodes int
	// Engine is containerd or crio. Empty means containerd.
	Engine string
	// Runtimes adds handlers, each with its RuntimeClass, to runc, crun and runsc: the path of a program with the command line of runc, or PATH@N for
	// one that only node N has.
	Runtimes map[string]string
	// Images are archives of docker or OCI for every node.
	Images []string
}

// args returns the options of scripts/cluster.sh.
func (o Options) args() []string {
	args := []string{"--nodes", strconv.Itoa(o.nodes())}
	if o.Engine != "" {
		args = append(args, "--engine", o.Engine)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Runtimes)) {
		args = append(args, "--runtime", name+"="+o.Runtimes[name])
	}
	for _, image := range o.Images {
		args = append(args, "--image", image)
	}
	return args
}

func (o Options) nodes() int {
	if o.Nodes == 0 {
		return 2
	}
	return o.Nodes
}

// Cluster is a running cluster. Its methods fail the test with the output of the command.
type Cluster struct {
	// Dir is the directory of the cluster. Its folder log has the output of each component.
	Dir string
	// Kubeconfig is the path of a file with the rights of the administrator.
	Kubeconfig string

	script string
	guard  *exec.Cmd
	// pipe is open while the cluster runs.
	pipe   io.Closer
	output *bytes.Buffer
}

// shared has the clusters of the process by their options.
var shared struct {
	sync.Mutex
	clusters map[string]func() (*Cluster, error)
	// isRunning means that Main ends the clusters.
	isRunning bool
}

// Main runs the tests of a package, and ends the clusters that they share. It returns the exit code.
func Main(m *testing.M) int {
	shared.clusters, shared.isRunning = make(map[string]func() (*Cluster, error)), true
	code := m.Run()
	for _, start := range shared.clusters {
		c, err := start()
		if err == nil {
			err = c.stop()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// Start returns a cluster with these options. Tests of the process share it: they remove their objects, and harm no node.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	Require(t)
	if !shared.isRunning {
		t.Fatal("the package needs a TestMain with cluster.Main, which ends the clusters that tests share")
	}
	shared.Lock()
	key := strings.Join(o.args(), " ")
	start := shared.clusters[key]
	if start == nil {
		start = sync.OnceValues(func() (*Cluster, error) { return up("", o) })
		shared.clusters[key] = start
	}
	shared.Unlock()
	c, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// New starts a cluster for one test, which may harm it.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	Require(t)
	c, err := up(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Require skips the test on a machine that cannot run a cluster, and in the short form of the tests.
func Require(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a cluster takes too long for the short form of the tests")
	}
	if os.Geteuid() != 0 {
		skip(t, "a cluster needs root")
	}
	for _, name := range []string{"kube", "cluster-host", "runc", "ip", "unshare"} {
		requireProgram(t, name)
	}
	if output, err := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount", "--net", "--uts", "--ipc", "--cgroup", "true").CombinedOutput(); err != nil {
		skip(t, fmt.Sprintf("a cluster needs namespaces: %v: %s", err, bytes.TrimSpace(output)))
	}
}

func requireProgram(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		skip(t, fmt.Sprintf("a cluster needs the program %s in PATH: see scripts/cluster.sh", name))
	}
}

// skip skips the test, or fails it where tests must run.
//
// Invariant must-run.
func skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("TOUCHSTONE_MUST_RUN") != "" {
		t.Fatalf("TOUCHSTONE_MUST_RUN is set, and %s", reason)
	}
	record.Skip(t, reason)
}

// up starts a cluster below a directory; empty means the directory for temporary files.
func up(parent string, o Options) (*Cluster, error) {
	script, err := findScript()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "cluster-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), script: script, output: new(bytes.Buffer)}
	c.guard = exec.Command(script, append([]string{"--dir", dir, "hold"}, o.args()...)...) //nolint:noctx // it ends at the end of the pipe
	c.guard.Stderr = c.output
	// The suite kills the process group of a step.
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.pipe, err = c.guard.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.guard.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.guard.Start(); err != nil {
		return nil, err
	}
	// The first line comes when all nodes are ready. Without it the guard ends, and takes the cluster down.
	line := make([]byte, 4096)
	n, err := stdout.Read(line)
	if err == nil && bytes.HasPrefix(line[:n], []byte("cluster: ")) {
		return c, nil
	}
	return nil, fmt.Errorf("start a cluster: %w", errors.Join(err, c.stop()))
}

// findScript returns the path of scripts/cluster.sh: a test runs in the directory of its package.
func findScript() (string, error) {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		script := filepath.Join(dir, "scripts", "cluster.sh")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.Join(errors.New("no directory above this one has scripts/cluster.sh"), err)
}

// stop takes the cluster down, and returns when nothing of it is left.
func (c *Cluster) stop() error {
	err := c.pipe.Close()
	if e := c.guard.Wait(); e != nil {
		err = fmt.Errorf("%s: %w: %s", c.guard, e, c.output)
	}
	return err
}

// run runs a command of scripts/cluster.sh, and returns its output.
func (c *Cluster) run(t testing.TB, input string, args ...string) string {
	t.Helper()
	var output, messages bytes.Buffer
	command := exec.CommandContext(t.Context(), c.script, append([]string{"--dir", c.Dir}, args...)...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &output, &messages
	if err := command.Run(); err != nil {
		t.Fatalf("cluster.sh %s: %v\n%s%s", strings.Join(args, " "), err, output.String(), messages.String())
	}
	return output.String()
}

// Bind makes a program die with the process of the tests, also if that is killed. A coordinator would else wait for the return of its cluster.
func Bind(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Kubectl returns the output of kubectl with the rights of the administrator.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return c.run(t, "", append([]string{"kubectl"}, args...)...)
}

// Apply creates or changes objects, in YAML or JSON.
func (c *Cluster) Apply(t testing.TB, objects string) {
	t.Helper()
	c.run(t, objects, "kubectl", "apply", "-f", "-")
}

// Load loads images into every node: archives of docker or OCI.
func (c *Cluster) Load(t testing.TB, archives ...string) {
	t.Helper()
	c.run(t, "", append([]string{"load"}, archives...)...)
}

// Node returns the output of a command in the namespaces of a node, with its files.
func (c *Cluster) Node(t testing.TB, n int, args ...string) string {
	t.Helper()
	return c.run(t, "", append([]string{"node", strconv.Itoa(n)}, args...)...)
}

// AddFakeNodes adds nodes of kwok, which run no containers, with the label type=kwok and the taint kwok.x-k8s.io/node. The file is the log of each of
// their pods, in the format of containerd. The test is skipped if kwok is not in PATH.
func (c *Cluster) AddFakeNodes(t testing.TB, n int, log string) {
	t.Helper()
	requireProgram(t, "kwok")
	c.run(t, "", "kwok", strconv.Itoa(n), log)
}

// StopNode kills all processes of a node at once, like a power failure.
func (c *Cluster) StopNode(t testing.TB, n int) {
	t.Helper()
	c.run(t, "", "stop-node", strconv.Itoa(n))
}

// StartNode boots a node after StopNode, and returns when its kubelet runs.
func (c *Cluster) StartNode(t testing.TB, n int) {
	t.Helper()
	c.run(t, "", "start-node", strconv.Itoa(n))
}

// Freeze stops the kubelet of a node until Thaw: the node becomes NotReady, and its containers run on.
func (c *Cluster) Freeze(t testing.TB, n int) {
	t.Helper()
	c.run(t, "", "signal", "STOP", "kubelet", strconv.Itoa(n))
}

// Thaw lets the kubelet of a node run again.
func (c *Cluster) Thaw(t testing.TB, n int) {
	t.Helper()
	c.run(t, "", "signal", "CONT", "kubelet", strconv.Itoa(n))
}

// Kill kills a program of a node, such as containerd or kubelet, which then starts again.
func (c *Cluster) Kill(t testing.TB, n int, program string) {
	t.Helper()
	c.run(t, "", "signal", "KILL", program, strconv.Itoa(n))
}

// KillControl kills a program of the control plane, such as kube-apiserver or etcd, which then starts again.
func (c *Cluster) KillControl(t testing.TB, program string) {
	t.Helper()
	c.run(t, "", "signal", "KILL", program)
}

// Wait waits until the API answers and all nodes are ready. The API needs some seconds to notice that a node is not.
func (c *Cluster) Wait(t testing.TB) {
	t.Helper()
	c.run(t, "", "wait")
}
