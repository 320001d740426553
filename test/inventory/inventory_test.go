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
	if err := os.Mkdir(exclusion, 0o700); err != nil {
		t.Fatal(err)
	}
	baseline, err := List([]string{dir}, exclusion)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "seen"), filepath.Join(exclusion, "unseen")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cat := exec.Command("sh", "-c", "echo; read line")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cat.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // sh is executed
		t.Fatal(err)
	}
	state, err := List([]string{dir}, exclusion)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
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
