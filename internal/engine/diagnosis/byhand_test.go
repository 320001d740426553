package diagnosis

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A command line by hand makes a valid configuration, and calls the runtime with all flags of the target. The runtime here only records its calls.
func TestByHand(t *testing.T) {
	dir := t.TempDir()
	runtime := filepath.Join(dir, "a runtime")
	must.Do(t, os.WriteFile(runtime, []byte(`#!/bin/sh
echo "$@" >>'`+dir+`/calls'
case "$*" in
*spec) printf '{"process": {"terminal": true, "args": ["sh"]},\n"root": {"path": "rootfs"}, "mounts": [\n{"destination": "/proc"}]}' >config.json ;;
*run*) test -L rootfs/bin && cat config.json >>'`+dir+`/calls' ;;
esac
`), 0o755))
	_, command, ok := strings.Cut(ByHand(runtime, []string{"--platform=systrap", "--label=it's; here"}), "\n")
	if !ok {
		t.Fatal("the advice has no command")
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	must.Do(t, err)
	const want = `--platform=systrap --label=it's; here spec
--platform=systrap --label=it's; here run try
{"process": {"terminal": false, "args": ["true"]},
"root": {"path": "rootfs"}, "mounts": [{"destination":"/usr","type":"bind","source":"/usr","options":["rbind","ro"]},
{"destination": "/proc"}]}`
	if string(calls) != want {
		t.Errorf("%s\ncalls\n%s\nwant\n%s", command, calls, want)
	}
}

func TestByPodman(t *testing.T) {
	const want = "/opt/podman --runtime /opt/crun --runtime-flag cgroup-manager=disabled run --rm "
	if got := ByPodman("/opt/podman", "/opt/crun", []string{"--cgroup-manager=disabled"}); !strings.Contains(got, want) {
		t.Errorf("%s lacks %s", got, want)
	}
}
