package diagnosis

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
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
*run*) test -d rootfs/usr && cat config.json >>'`+dir+`/calls' ;;
esac
`), 0o755))
	_, command, ok := strings.Cut(ByHand(runtime, []string{"--platform=systrap", "--label=it's; here"}), "\n")
	if !ok {
		t.Fatal("the advice has no command")
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	must.Do(t, err)
	_, mounts := tree("/")
	var binds strings.Builder
	for _, dir := range mounts {
		binds.WriteString(`{"destination":"` + dir + `","type":"bind","source":"` + dir + `","options":["rbind","ro"]},`)
	}
	want := `--platform=systrap --label=it's; here spec
--platform=systrap --label=it's; here run try
{"process": {"terminal": false, "args": ["sh", "-c", "exit"]},
"root": {"path": "rootfs"}, "mounts": [` + binds.String() + `
{"destination": "/proc"}]}`
	if string(calls) != want {
		t.Errorf("%s\ncalls\n%s\nwant\n%s", command, calls, want)
	}
}

// The container has the shell of each distribution, with the directories and links on the way to it.
//
// Invariant layouts.
func TestTreeInLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		if !m.Has("sh") {
			return
		}
		commands, mounts := tree(m.Root)
		real, err := filepath.EvalSymlinks(m.At("/bin/sh"))
		must.Do(t, err)
		if !slices.ContainsFunc(m.Under(mounts), func(dir string) bool { return strings.HasPrefix(real, dir+"/") }) {
			t.Errorf("%s is in none of %q", real, mounts)
		}
		info, err := os.Lstat(m.At("/bin"))
		must.Do(t, err)
		if _, links, _ := strings.Cut(commands, " && cp -P "); strings.Contains(links, "/bin ") != (info.Mode().Type() == fs.ModeSymlink) {
			t.Errorf("the links of %q", commands)
		}
	})
}

func TestByPodman(t *testing.T) {
	const want = "/opt/podman --runtime /opt/crun --runtime-flag cgroup-manager=disabled run --rm "
	if got := ByPodman("/opt/podman", "/opt/crun", []string{"--cgroup-manager=disabled"}); !strings.Contains(got, want) {
		t.Errorf("%s lacks %s", got, want)
	}
}
