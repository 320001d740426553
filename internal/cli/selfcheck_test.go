package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// selfcheckIn is an environment variable with the directory of a selfcheck that is killed. It marks the process of that selfcheck.
const selfcheckIn = "TOUCHSTONE_TEST_SELFCHECK"

// TestKilledSelfcheck: a sweep leaves the adapters of a selfcheck under way, and removes them after a kill.
func TestKilledSelfcheck(t *testing.T) {
	const id = "20260101-000001-aaaa"
	if dir := os.Getenv(selfcheckIn); dir != "" {
		c := checked{app: New(Environment{RunID: func() string { return id }}), target: target.Target{Engine: "oci", Runtime: "x"}, binary: "/bin/true"}
		_, err := c.open(rootsIn(dir))
		if err == nil {
			_, err = c.add("base", nil, "")
		}
		must.Do(t, err)
		fmt.Printf("adapter %s\n", c.plan.Runtimes["x-base"].Path)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the kill
		return
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), selfcheckIn+"="+dir, "TMPDIR="+t.TempDir()) // the killed process leaves files of TestMain
	in, err := child.StdinPipe()
	must.Do(t, err)
	defer func() { _ = in.Close() }()
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	must.Do(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	adapter, ok := strings.CutPrefix(strings.TrimSpace(line), "adapter ")
	if !ok {
		t.Fatalf("the selfcheck printed %q, %v", line, err)
	}
	sweep := func(want ...workdir.Swept) {
		t.Helper()
		swept, err := workdir.Sweep(t.Context(), rootsIn(dir), nil, workdir.Daemons{})
		if diff := cmp.Diff(want, swept); diff != "" || err != nil {
			t.Errorf("the sweep, %v (-want +got):\n%s", err, diff)
		}
	}
	sweep()
	if _, err := os.Stat(adapter); err != nil {
		t.Errorf("after a sweep during the selfcheck: %v", err)
	}
	must.Do(t, child.Process.Kill())
	_ = child.Wait() // the error is the kill
	sweep(workdir.Swept{RunID: id, Files: true})
	if _, err := os.Stat(adapter); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a sweep the adapter of a killed selfcheck: %v", err)
	}
}

func rootsIn(dir string) workdir.Roots {
	return workdir.Roots{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data")}
}
