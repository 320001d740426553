package chaos

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// A campaign that a signal interrupts leaves no cgroup of its hosts.
func TestInterruptedCampaignLeavesNothing(t *testing.T) {
	cells.Need(t, "chaos/frozen")
	if testing.Short() || os.Getenv(builtVariable) == "" || os.Geteuid() != 0 {
		t.Skipf("needs root and the programs of make chaos-programs in %s", builtVariable)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestFloods$")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(os.Environ(), cells.Chosen+"=all")
	must.Do(t, cmd.Start())
	exit := make(chan error, 1)
	go func() { exit <- cmd.Wait() }()
	var groups []string
	for groups == nil {
		select {
		case err := <-exit:
			t.Fatalf("the campaign ends before it has a host: %v\n%s", err, output.String())
		case <-time.After(10 * time.Millisecond):
			groups = groupsOfHost(cmd.Process.Pid)
		}
	}
	must.Do(t, cmd.Process.Signal(unix.SIGTERM))
	if err := <-exit; err == nil {
		t.Errorf("an interrupted campaign passes:\n%s", output.String())
	}
	for _, group := range groups {
		if _, err := os.Stat(group); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v):\n%s", group, err, output.String())
		}
	}
}

// groupsOfHost are the cgroups in the environment of the host that a campaign has started; nil before.
func groupsOfHost(pid int) []string {
	children, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, file := range children {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			environment, _ := os.ReadFile("/proc/" + child + "/environ")
			for variable := range strings.SplitSeq(string(environment), "\x00") {
				if list, ok := strings.CutPrefix(variable, cgroupsVariable+"="); ok {
					return strings.Split(list, ":")
				}
			}
		}
	}
	return nil
}

// TestKilledCampaign: the next campaign removes the cgroups of a killed campaign, and keeps the cgroups of a living one.
func TestKilledCampaign(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for cgroups")
	}
	process := exec.Command("true")
	must.Do(t, process.Run())
	leftovers, err := makeCgroups(groupPrefix + strconv.Itoa(process.Process.Pid) + "-killed")
	must.Do(t, err)
	neighbours, err := makeCgroups(groupPrefix + strconv.Itoa(os.Getpid()) + "-alive")
	must.Do(t, err)
	must.Do(t, os.Mkdir(filepath.Join(leftovers[0], "touchstone-run"), 0o755), removeDead())
	for _, group := range leftovers {
		if _, err := os.Stat(group); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", group, err)
		}
	}
	for _, group := range neighbours {
		must.Do(t, removeCgroups(group))
	}
}
