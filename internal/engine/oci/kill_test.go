package oci_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// victimVariable makes TestVictim the program that TestKilledLeavesNothing kills.
const victimVariable = "TOUCHSTONE_TEST_VICTIM"

// TestVictim is a helper process of TestKilledLeavesNothing, and no test.
func TestVictim(t *testing.T) {
	if os.Getenv(victimVariable) == "" {
		t.Skip("run by TestKilledLeavesNothing")
	}
	s := enginetest.Session(t, oci.LauncherOptions)
	e, err := oci.Driver{}.Open(t.Context(), target.Target{Engine: "oci", Runtime: "crun"}, s)
	enginetest.Require(t, "oci/crun", err)
	spec := enginetest.Spec(s, "victim")
	spec.Writable, spec.Network = true, engine.Bridged
	enginetest.Running(t, e, spec)
	left := enginetest.Leftovers(s)
	if !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(l, "mount ") }) {
		t.Errorf("there is no mount among %q", left)
	}
	fmt.Println("victim", s.RunID, s.State, filepath.Dir(s.Data))
	for _, l := range left {
		if ns, ok := strings.CutPrefix(l, "network namespace "); ok {
			fmt.Println("namespace", ns)
		}
	}
	fmt.Println("end")
	select {} // until it is killed
}

// A killed program leaves no mount and no interface on the host. Its namespaces end with the container's processes, which
// are found by their cgroup. Its files are removed with the run's directory.
//
// Invariant runtime-namespaces.
func TestKilledLeavesNothing(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("needs root, and makes containers on this host, which -short is not for")
	}
	interfaces := interfaceNames(t)
	self, err := os.Executable()
	must.Do(t, err)
	victim := exec.CommandContext(t.Context(), self, "-test.run=^TestVictim$", "-test.timeout=1m")
	victim.Env = append(os.Environ(), victimVariable+"=1")
	stdout, err := victim.StdoutPipe()
	must.Do(t, err)
	must.Do(t, victim.Start())
	var run, state, data string
	var namespaces, output []string
	for lines := bufio.NewScanner(stdout); lines.Scan() && lines.Text() != "end"; {
		output = append(output, lines.Text())
		if ns, ok := strings.CutPrefix(lines.Text(), "namespace "); ok {
			namespaces = append(namespaces, ns)
		}
		_, _ = fmt.Sscanf(lines.Text(), "victim %s %s %s", &run, &state, &data)
	}
	must.Do(t, victim.Process.Kill())
	_ = victim.Wait() // by the signal
	if len(output) > 0 && output[0] == "PASS" {
		t.Skip("oci/crun cannot run here")
	}
	if run == "" || len(namespaces) != 2 {
		t.Fatalf("the victim printed %q; want its run, and the namespaces of the bridge and of the container", output)
	}
	for _, dir := range []string{state, data} {
		t.Cleanup(func() { enginetest.Check(t, os.RemoveAll(dir)) })
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), data) || strings.Contains(string(mounts), state) {
		t.Errorf("the host has mounts of it (%v):\n%s", err, mounts)
	}
	if names := interfaceNames(t); !slices.Equal(names, interfaces) {
		t.Errorf("the host has the interfaces %q, and had %q", names, interfaces)
	}
	groups, err := cgroup.Detect("/")
	must.Do(t, err)
	group, err := groups.Open("/" + engine.Prefix + run)
	must.Do(t, err)
	enginetest.Check(t, group.Destroy(t.Context()))
	users, err := filepath.Glob("/proc/[0-9]*/ns/net")
	must.Do(t, err)
	for _, user := range users {
		if ns, err := os.Readlink(user); err == nil && slices.Contains(namespaces, ns) {
			t.Errorf("%s is still the namespace %s", user, ns)
		}
	}
}

func interfaceNames(t *testing.T) []string {
	t.Helper()
	devices, err := net.Interfaces()
	must.Do(t, err)
	var names []string
	for _, i := range devices {
		names = append(names, i.Name)
	}
	return names
}
