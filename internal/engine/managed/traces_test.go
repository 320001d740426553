package managed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// The search finds the state directories of shims and runtimes, the private state of a daemon, and mounts. It does not look into the files
// of other containers.
func TestSearchForTraces(t *testing.T) {
	const id, stranger = "0123456789abcdef", "fedcba9876543210"
	proc := t.TempDir()
	for _, dir := range []string{
		"run/containerd/runc/k8s.io/" + id, "run/containerd/runc/k8s.io/" + stranger, "run/runc/" + id + "/below", "run/user/1000/" + id,
		"state/exec/runtime-runc/moby/" + id, "state/task/" + stranger + "/rootfs", "state/task/" + stranger + "/" + id, "home/" + id,
	} {
		must.Do(t, os.MkdirAll(filepath.Join(proc, "root", dir), 0o700))
	}
	for _, file := range []string{"state/exits/" + id, "run/runsc/" + id + ".lock", "run/runsc/" + id + ".state"} {
		must.Do(t, os.MkdirAll(filepath.Join(proc, "root", filepath.Dir(file)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(proc, "root", file), nil, 0o600))
	}
	mounts := "1 0 0:1 / / rw - overlay overlay rw\n2 1 0:2 / /run/a/" + id + "/shm rw - tmpfs shm rw\n3 1 0:3 / /run/a/" + stranger + " rw - tmpfs shm rw\n"
	must.Do(t, os.WriteFile(filepath.Join(proc, "mountinfo"), []byte(mounts), 0o600))
	left, err := search(proc, "/state", []string{id})
	want := []string{
		"state directory /run/containerd/runc/k8s.io/" + id, "state directory /run/runc/" + id, "state file /run/runsc/" + id + ".state", "state directory /state/exec/runtime-runc/moby/" + id,
		"mount /run/a/" + id + "/shm",
	}
	if diff := cmp.Diff(want, left); err != nil || diff != "" {
		t.Errorf("search: %v, traces (-want +got):\n%s", err, diff)
	}
	if left, err := traces(t.Context(), proc, "/state", []string{"00000000", ""}); err != nil || len(left) > 0 {
		t.Errorf("of another container: %q, %v", left, err)
	}
}
