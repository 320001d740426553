package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/cluster"
	"github.com/touchstone-bench/touchstone/test/inventory"
)

// roleVariable selects a process of TestNothingIsLeft: the host, or tests that are killed.
const (
	roleVariable = "TOUCHSTONE_CLUSTER_ROLE"
	roleHost     = "host"
	roleKilled   = "killed"
)

// Nothing of a cluster is left: after its end, after up was killed, and after the process of its tests was killed. The test runs in
// namespaces, where every process, mount and interface is its own.
func TestNothingIsLeft(t *testing.T) {
	if role := os.Getenv(roleVariable); role != "" {
		t.Skipf("this process has the role %s", role)
	}
	cells.Need(t, "cluster/leftovers")
	cluster.Require(t)
	self, err := os.Executable()
	must.Do(t, err)
	// The shell reaps orphans.
	host := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "bash", "-c", `mount -t tmpfs run /run && ip link set lo up && "$@"; exit $?`, "bash",
		self, "-test.v", "-test.run", "^TestOnHost$", "-test.timeout", "20m")
	host.Env = append(os.Environ(), roleVariable+"="+roleHost)
	output, err := host.CombinedOutput()
	t.Logf("%s", output)
	must.Do(t, err)
}

func TestOnHost(t *testing.T) {
	if os.Getenv(roleVariable) != roleHost {
		t.Skip("it runs in the namespaces of TestNothingIsLeft")
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	baseline := list(t, temporary)
	t.Run("end", func(t *testing.T) {
		t.Run("cluster", func(t *testing.T) {
			checkPods(t, cluster.New(t, cluster.Options{Nodes: 1}), "node1", "runc", "runsc")
		})
		compare(t, baseline, temporary)
	})
	// The files appear in this order.
	for _, file := range []string{"bin", "port", "log/kubelet1", "kubeconfig", "ready"} {
		t.Run("up killed after "+strings.ReplaceAll(file, "/", "_"), func(t *testing.T) {
			dir := filepath.Join(temporary, "cluster")
			command := exec.CommandContext(t.Context(), script, "--dir", dir, "up", "--nodes", "1")
			must.Do(t, command.Start())
			await(t, file, func() bool { return exists(filepath.Join(dir, file)) })
			must.Do(t, command.Process.Kill())
			_ = command.Wait()
			if output, err := exec.CommandContext(t.Context(), script, "--dir", dir, "down").CombinedOutput(); err != nil {
				t.Errorf("down: %v: %s", err, output)
			}
			compare(t, baseline, temporary)
		})
	}
	for _, file := range []string{"port", "ready"} {
		t.Run("tests killed after "+file, func(t *testing.T) {
			self, err := os.Executable()
			must.Do(t, err)
			tests := exec.CommandContext(t.Context(), self, "-test.run", "^TestKilled$")
			tests.Env = append(os.Environ(), roleVariable+"="+roleKilled)
			must.Do(t, tests.Start())
			pattern := filepath.Join(temporary, "cluster-*", file)
			await(t, pattern, func() bool { return len(matches(t, pattern)) > 0 })
			must.Do(t, tests.Process.Kill())
			_ = tests.Wait()
			defer compare(t, baseline, temporary)
			await(t, "the end of the guard", func() bool { return len(list(t, temporary).Beyond(baseline)) == 0 })
		})
	}
}

// TestKilled waits with a cluster until the process is killed.
func TestKilled(t *testing.T) {
	if os.Getenv(roleVariable) != roleKilled {
		t.Skip("it runs in a process of TestNothingIsLeft")
	}
	must.Do(t, cluster.Bind(exec.CommandContext(t.Context(), "sleep", "infinity")).Start())
	cluster.Start(t, cluster.Options{Nodes: 1})
	select {}
}

const script = "../../scripts/cluster.sh"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func matches(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	must.Do(t, err)
	return files
}

// await waits until a condition holds that has no event.
func await(t *testing.T, object string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s did not come in 5 minutes", object)
		}
	}
}

// sysctls are the settings of the kernel that a kubelet writes.
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward",
}

// list lists the resources of the host: with its settings, and without the cgroups of other programs.
func list(t *testing.T, temporary string) inventory.Resources {
	t.Helper()
	resources, err := inventory.List([]string{temporary, "/run", "/usr/libexec", "/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet"})
	must.Do(t, err)
	group := "touchstone-k8s" + strings.ReplaceAll(temporary, "/", "-")
	for resource := range resources {
		if strings.HasPrefix(resource, "cgroup ") && !strings.Contains(resource, group) {
			delete(resources, resource)
		}
	}
	for _, name := range sysctls {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		must.Do(t, err)
		resources.Add("sysctl", name+" "+strings.TrimSpace(string(value)))
	}
	return resources
}

// compare reports the resources that the host has got or lost.
func compare(t *testing.T, baseline inventory.Resources, temporary string) {
	t.Helper()
	current := list(t, temporary)
	for kind, resources := range map[string][]string{"left": current.Beyond(baseline), "gone": baseline.Beyond(current)} {
		if len(resources) > 0 {
			t.Errorf("%s:\n%s", kind, strings.Join(resources, "\n"))
		}
	}
}
