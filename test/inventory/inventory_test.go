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
	before := Resources{"file /etc": true, "mount / ext4": true, "process 1 \"init\"": true}
	now := Resources{
		"file /etc": true, "mount / ext4": true,
		"file /root/out": true, "file /root/out/x": true, "file /root/outer": true, "mount /root/out tmpfs": true, "cgroup /sys/fs/cgroup/x": true,
	}
	got := now.Beyond(before, "/root/out")
	if want := []string{"cgroup /sys/fs/cgroup/x", "file /root/outer", "mount /root/out tmpfs"}; !slices.Equal(got, want) {
		t.Errorf("the new resources are %q, want %q", got, want)
	}
	if gone, want := before.Beyond(now), []string{"process 1 \"init\""}; !slices.Equal(gone, want) {
		t.Errorf("the removed resources are %q, want %q", gone, want)
	}
}

// TestListFindsProcessesAndFiles plants what needs no root. The campaign plants the other kinds.
func TestListFindsProcessesAndFiles(t *testing.T) {
	dir := t.TempDir()
	hidden := filepath.Join(dir, "hidden")
	if err := os.Mkdir(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	before, err := List([]string{dir}, hidden)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "seen"), filepath.Join(hidden, "unseen")} {
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
	now, err := List([]string{dir}, hidden)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cat.Wait() // read fails at the end of its input
	beyond := now.Beyond(before)
	for _, want := range []string{"file " + filepath.Join(dir, "seen"), "process " + strconv.Itoa(cat.Process.Pid) + ` "sh -c echo; read line "`} {
		if !slices.Contains(beyond, want) {
			t.Errorf("%s is not in %q", want, beyond)
		}
	}
	if slices.Contains(beyond, "file "+filepath.Join(hidden, "unseen")) {
		t.Errorf("a file below a skipped directory is listed")
	}
}
