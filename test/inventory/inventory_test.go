package inventory

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestBeyond(t *testing.T) {
	baseline := Resources{"file /etc": true, "mount / ext4": true, "process 1 \"init\"": true}
	state := Resources{
		"file /etc": true, "mount / ext4": true,
		"file /root/out": true, "file /root/out/x": true, "file /root/outer": true, "mount /root/out tmpfs": true, "cgroup /sys/fs/cgroup/x": true,
	}
	got := state.Beyond(baseline, "/root/out")
	if want := []string{"cgroup /sys/fs/cgroup/x", "file /root/outer", "mount /root/out tmpfs"}; !slices.Equal(got, want) {
		t.Errorf("the new resources are %q, want %q", got, want)
	}
	if removals, want := baseline.Beyond(state), []string{"process 1 \"init\""}; !slices.Equal(removals, want) {
		t.Errorf("the removed resources are %q, want %q", removals, want)
	}
}

// TestListFindsProcessesAndFiles plants what needs no root. The campaign plants the other kinds.
func TestListFindsProcessesAndFiles(t *testing.T) {
	dir := t.TempDir()
	exclusion := filepath.Join(dir, "hidden")
	must.Do(t, os.Mkdir(exclusion, 0o700))
	baseline, err := List([]string{dir}, exclusion)
	must.Do(t, err)
	for _, path := range []string{filepath.Join(dir, "seen"), filepath.Join(exclusion, "unseen")} {
		must.Do(t, os.WriteFile(path, nil, 0o600))
	}
	cat := exec.Command("sh", "-c", "echo; read line")
	in, err := cat.StdinPipe()
	must.Do(t, err)
	out, err := cat.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cat.Start())
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // sh is executed
		t.Fatal(err)
	}
	state, err := List([]string{dir}, exclusion)
	must.Do(t, err)
	must.Do(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	_ = cat.Wait() // read fails at the end of its input
	additions := state.Beyond(baseline)
	for _, want := range []string{"file " + filepath.Join(dir, "seen"), "process " + strconv.Itoa(cat.Process.Pid) + ` "sh -c echo; read line "`} {
		if !slices.Contains(additions, want) {
			t.Errorf("%s is not in %q", want, additions)
		}
	}
	if slices.Contains(additions, "file "+filepath.Join(exclusion, "unseen")) {
		t.Errorf("a file below a skipped directory is listed")
	}
}
