package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// TestBadGuest: a host or a configuration of Kata Containers with a fault does not stop the other targets, each reason is recorded, and
// nothing is left behind. No guest starts, so the shim only prints its version.
//
// Invariant machine-requirements.
func TestBadGuest(t *testing.T) {
	needRoot(t, "runc")
	needEngine(t, "containerd", "containerd")
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o700))
		return path
	}
	write("containerd-shim-kata-v2", "#!/bin/sh\necho 'version: 3.32.0,'\n")
	program, kernel, empty := write("program", "#!/bin/sh\n"), write("kernel", "x"), write("empty", "")
	const vm = "[hypervisor.qemu]\n"
	qemu := vm + "path = \"" + program + "\"\nvirtio_fs_daemon = \"" + program + "\"\n"
	// The first target works, and keeps the private containerd running.
	const works = "containerd/runc"
	targets, reasons := []string{works}, []string{"^$"}
	for _, c := range []struct{ name, text, reason string }{
		{"syntax", "[hypervisor.qemu\n", `the configuration /.*/syntax.toml: toml: .*; correct the file`},
		{"empty", "", `empty.toml: it has no table \[hypervisor.NAME\]`},
		{"type", vm + "default_memory = \"256\"\n", `hypervisor.qemu.default_memory is "256", want a whole number`},
		{"hypervisor", vm + "path = \"/no/qemu\"\n", `the hypervisor /no/qemu does not exist; install qemu`},
		{"server", vm + "path = \"" + program + "\"\nvirtio_fs_daemon = \"/no/virtiofsd\"\n", `the file server /no/virtiofsd does not exist; install virtiofsd`},
		{"kernel", qemu + "kernel = \"/no/vmlinux\"\n", `the guest's kernel: /no/vmlinux does not exist; install`},
		{"hollow", qemu + "kernel = \"" + empty + "\"\n", `the guest's kernel: /.*/empty is empty; install`},
		{"initrd", qemu + "kernel = \"" + kernel + "\"\n", `neither an image nor an initrd for the guest; set one`},
		{"memory", qemu + "kernel = \"" + kernel + "\"\ninitrd = \"" + kernel + "\"\ndefault_memory = 99999999\n", `the guest's memory is 99999999 MiB, and \d+ MiB of the host's are available; give`},
	} {
		targets = append(targets, "containerd/kata@config="+write(c.name+".toml", c.text))
		reasons = append(reasons, c.reason)
	}
	targets = append(targets, "containerd/kata@config="+filepath.Join(dir, "missing.toml"))
	reasons = append(reasons, `the configuration /.*/missing.toml: no such file or directory; correct the option config`)

	p := prepare(t, t.TempDir(), "touchstone", "benchmark", "--managed", "--targets", strings.Join(targets, ","),
		"--filter", lifecycle, "--runs", "1", "--warmup", "0")
	p.cmd.Env = append(p.cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
	p.run()
	p.ends(5)
	noProcessIn(t, dir, p.cmd.Dir)
	run := export(t, p.cmd.Dir, "latest")
	nothingLeft(t, run.ID)
	for n, reason := range reasons {
		if got := run.Targets[n].Unavailable; !regexp.MustCompile(reason).MatchString(got) {
			t.Errorf("the reason recorded for %s is %q, want %q", targets[n], got, reason)
		}
	}
	count := 0
	for _, trial := range run.Trials {
		if trial.Status == result.OK && trial.Target == works {
			count++
		} else if trial.Status != result.Skipped {
			t.Errorf("the trial of %s is %s: %s", trial.Target, trial.Status, trial.Reason)
		}
	}
	if count != 1 || len(run.Trials) != len(targets) {
		t.Errorf("%d trials, of which %d measured %s; want %d and 1", len(run.Trials), count, works, len(targets))
	}
}
