package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// awaitLine reads standard error up to a line with this text.
func (p *program) awaitLine(text string) {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		p.said.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			p.t.Fatalf("standard error ended (%v) without a line with %q:\n%s%s", err, text, p.said.String(), p.stdout.String())
		}
	}
}

// TestRealRunBesideAnother: two runs would measure each other. It is not parallel, because other tests ignore the runs of each other.
//
// Invariant one-run.
func TestRealRunBesideAnother(t *testing.T) {
	cells.Need(t, "cli/turn")
	needRoot(t, "runc")
	w, dir, args := realRun(t)
	w.on("kill-2", "hold")
	first := start(t, dir, args...)
	w.reached(first)
	id := w.runIDs()[0]
	arguments := []string{"benchmark", "--targets", "native", "--filter", lifecycle, "--runs", "1", "--warmup", "0"}
	exclusion := append(slices.Clone(arguments), "--allow-concurrent=false")
	check := func(p *program) {
		t.Helper()
		p.ends(1)
		// Other programs of this host may have runs, too.
		p.says(`^touchstone: .*run ` + id + ` \(process ` + strconv.Itoa(first.cmd.Process.Pid) + `, user root\).* on this machine (is|are) under way, .*--wait .*--allow-concurrent `)
	}

	check(start(t, t.TempDir(), exclusion...))
	// Another state directory, and another user.
	stranger := prepare(t, t.TempDir(), append([]string{"touchstone"}, exclusion...)...)
	stranger.cmd.Env = append(stranger.cmd.Env, "XDG_RUNTIME_DIR="+t.TempDir())
	stranger.run()
	check(stranger)
	home, path := nobodysFolder(t)
	rootless := prepare(t, home, append([]string{path}, exclusion...)...)
	rootless.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	rootless.run()
	check(rootless)
	start(t, t.TempDir(), "benchmark", "--targets", "fake/a", "--filter", lifecycle, "--runs", "1", "--allow-concurrent=false").ends(0)

	besideDir := t.TempDir()
	neighbour := start(t, besideDir, arguments...)
	neighbour.ends(0)
	neighbour.says(`^note: .*run `+id+` \(process [0-9]+, user root\).* on this machine (is|are) under way: they disturb each other$`, `Run .* measured on this machine at the same time`)
	besideRun := export(t, besideDir, "latest")

	interrupted := start(t, t.TempDir(), append(slices.Clone(arguments), "--wait")...)
	interrupted.awaitLine(id)
	interrupted.signal(syscall.SIGINT)
	interrupted.ends(130)

	// An installation waits too. Its part is damaged, so an attempt without a wait fails.
	source := t.TempDir()
	part := filepath.Join(source, "runc", "1.5.2")
	must.Do(t, os.MkdirAll(filepath.Join(part, "bin"), 0o755), os.WriteFile(filepath.Join(part, "bin/runc"), nil, 0o755),
		os.WriteFile(filepath.Join(part, parts.Record), []byte(`{"name": "runc", "version": "1.5.2", "programs": [{"name": "runc", "sha256": "0"}]}`), 0o644))
	setup := []string{"setup", "--yes", "--allow-concurrent=false", "--from", source, "runc"}
	installer := startCommand(t, t.TempDir(), append([]string{"env", parts.Variable + "=" + t.TempDir(), "touchstone"}, setup...)...)
	installer.awaitLine("waiting for the end of")
	installer.signal(syscall.SIGINT)
	installer.ends(130)

	waitingDir := t.TempDir()
	waiter := start(t, waitingDir, append(slices.Clone(arguments), "--wait")...)
	waiter.awaitLine(id)
	must.Do(t, os.WriteFile(filepath.Join(w.dir, "go"), []byte("\n"), 0))
	first.ends(0)
	waiter.ends(0)
	caveat := func(run string) string { return "run " + run + " measured on this machine at the same time" }
	for dir, want := range map[string]string{dir: besideRun.ID, besideDir: id, waitingDir: ""} {
		caveats := strings.Join(export(t, dir, "latest").Caveats, "\n")
		if want == "" && strings.Contains(caveats, "at the same time") || want != "" && strings.Count(caveats, caveat(want)) != 1 {
			t.Errorf("%s has the caveats %q, want run %q in them", dir, caveats, want)
		}
	}
	// The table has the first caveats only, and TestHangingRuntime may have runs too.
	for format, want := range map[string]string{"table": "measured on this machine at the same time", "json": caveat(id), "html": caveat(id)} {
		p := start(t, besideDir, "report", "-o", format)
		p.ends(0)
		if !strings.Contains(strings.Join(strings.Fields(p.stdout.String()), " "), want) {
			t.Errorf("the report in format %s lacks the other run", format)
		}
	}
	for _, d := range []string{dir, besideDir, waitingDir} {
		nothingLeft(t, export(t, d, "latest").ID)
	}
}
