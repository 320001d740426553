// Package chaos is the adversarial campaign: the real program with hostile runtimes, daemons, neighbours and hosts. It has only tests.
//
// Each case runs on a host of its own, in namespaces. A list of the host's resources before and after shows leftovers, and objects of others
// that were touched. scripts/chaos.sh builds the programs, runs all cases in full and writes the table in docs/reliability.md.
package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/docgen"
	facts "github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/inventory"
)

const (
	// builtVariable names the directory with the programs touchstone and wrapper.
	builtVariable = "TOUCHSTONE_CHAOS"
	// fullVariable selects the full campaign in place of the shortened form.
	fullVariable = "CHAOS_FULL"
	// outVariable names the file for the results.
	outVariable = "CHAOS_OUT"
)

// shortLimit and fullLimit bound a case, so that the end of its host shows where it hangs.
const (
	shortLimit = 15 * time.Minute
	fullLimit  = 3 * time.Hour
)

// full reports whether this is the full campaign.
func full() bool { return os.Getenv(fullVariable) != "" }

// results collects the rows of all cases.
var results struct {
	sync.Mutex
	cases []docgen.Case
}

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == roleInit {
		code, err := initHost()
		if err != nil {
			fmt.Fprintln(os.Stderr, "make a host for the case:", err)
		}
		os.Exit(code)
	}
	flag.Parse()
	code := m.Run()
	if out := os.Getenv(outVariable); out != "" && !inside() {
		if err := writeResults(out); err != nil {
			fmt.Fprintln(os.Stderr, "write the results:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// writeResults writes the results of all cases, with the machine and the version.
func writeResults(file string) error {
	out, err := exec.Command(filepath.Join(os.Getenv(builtVariable), "touchstone"), "version", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("query the version: %w", err)
	}
	var version struct {
		Touchstone struct {
			Version string `json:"version"`
		} `json:"touchstone"`
	}
	if err := json.Unmarshal(out, &version); err != nil {
		return fmt.Errorf("read the version: %w", err)
	}
	machine := facts.Facts("/")
	kernel, _, _ := strings.Cut(machine.Kernel, " ")
	text, err := json.MarshalIndent(docgen.Campaign{
		Machine: fmt.Sprintf("%s, %d CPUs, Linux %s, cgroup %s", machine.CPU, machine.CPUs, kernel, machine.Cgroup),
		Tool:    version.Touchstone.Version, Date: time.Now().UTC().Format(time.DateOnly), Cases: results.cases,
	}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// host is the host of a case, inside its namespaces.
type host struct {
	*testing.T
	mu     sync.Mutex
	row    docgen.Case
	before inventory.Resources
	// hasDocker means that the user's dockerd runs.
	hasDocker bool
	// cri is a client of the user's containerd, nil without one.
	cri cri.RuntimeServiceClient
	// dir is for the outputs of runs. It is not in the list of resources.
	dir string
}

// onHost runs a case of the campaign on a new host. Outside it starts the host and this test again in it.
//
// Invariant campaign: A hostile target, daemon, file, neighbour or host harms no other program and no other target (docs/reliability.md).
func onHost(t *testing.T, number int, name string, body func(h *host)) {
	t.Helper()
	if inside() {
		unix.CloseOnExec(recordFile) // if it is open
		h := &host{T: t, row: docgen.Case{Number: number, Name: name}, dir: os.Getenv("TMPDIR")}
		t.Cleanup(h.report)
		body(h)
		return
	}
	if testing.Short() {
		t.Skip("makes containers; -short skips that")
	}
	bin := os.Getenv(builtVariable)
	if bin == "" {
		t.Skipf("needs programs that make chaos-programs builds, but %s is not set: run make chaos", builtVariable)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces and containers")
	}
	t.Parallel()
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer func() { _ = r.Close() }()
	limit := shortLimit
	if full() {
		limit = fullLimit
	}
	output, err := spawn(t, bin, limit, w)
	_ = w.Close() // a missing row shows an error
	row := docgen.Case{Number: number, Name: name}
	if text, readErr := io.ReadAll(r); readErr != nil || json.Unmarshal(text, &row) != nil {
		row.Fails = cmp.Or(row.Fails, fmt.Sprintf("the case ended without a result: %v", err))
	}
	if err != nil {
		row.Fails = cmp.Or(row.Fails, err.Error())
	}
	results.Lock()
	results.cases = append(results.cases, row)
	results.Unlock()
	switch {
	case row.Fails != "":
		t.Errorf("%s\n%s", row.Fails, output)
	case row.Skipped != "":
		t.Skip(row.Skipped)
	default:
		t.Logf("%d tries\n%s", row.Tries, output)
	}
}

// report sends the row of the table out of the host.
func (h *host) report() {
	if h.Failed() && h.row.Fails == "" {
		h.row.Fails = "see the output of the test"
	}
	text, err := json.Marshal(h.row)
	if err == nil {
		_, err = os.NewFile(rowFile, "row").Write(text)
	}
	if err != nil {
		h.Errorf("report the result: %v", err)
	}
}

// shortReason is the longest reason in the table. The output of the test has the rest.
const shortReason = 120

// wrong reports that the case does not reach its goal.
func (h *host) wrong(format string, args ...any) {
	h.Helper()
	text := fmt.Sprintf(format, args...)
	h.mu.Lock()
	if h.row.Fails == "" {
		h.row.Fails, _, _ = strings.Cut(text, "\n")
		h.row.Fails = h.row.Fails[:min(len(h.row.Fails), shortReason)]
	}
	h.mu.Unlock()
	h.Error(text)
}

// must ends the case at an error.
func (h *host) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// skip ends the case because the host lacks something.
func (h *host) skip(format string, args ...any) {
	h.Helper()
	h.row.Skipped = fmt.Sprintf(format, args...)
	h.Skip(h.row.Skipped)
}

// need skips the case without these programs.
func (h *host) need(names ...string) {
	h.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			h.skip("%v", err)
		}
	}
}

// tried counts attempts.
func (h *host) tried(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row.Tries += n
}

// watch begins the comparison of the host's state, which ends with the case. Daemons of the user must be at rest.
func (h *host) watch() {
	h.Helper()
	if h.hasDocker {
		h.acceptSettled()
	} else {
		h.accept()
	}
	h.Cleanup(h.compare)
}

// notListed are directories whose files do not count: dockerd's, the names of namespaces, which dockerd removes once a minute, and Touchstone's
// cache of images, which is meant to stay.
var notListed = []string{userDocker, "/run/docker/netns", imageCache}

const imageCache = "/var/cache/touchstone"

// changing are the parts of listings that change on an idle host: counters of rules, and ages of addresses.
var changing = regexp.MustCompile(`\[\d+:\d+\]|( tentative)?\s+\\\s+valid_lft.*`)

func (h *host) state() inventory.Resources {
	h.Helper()
	r, err := inventory.List([]string{"/run", "/tmp", "/var", "/dev/shm", "/home", changes}, notListed...)
	h.must(err)
	for _, root := range []string{"/run/touchstone", "/var/lib/touchstone", "/dev/shm/touchstone"} {
		delete(r, "file "+root+"/lock") // it stays while other programs have files beside it
	}
	// dockerd keeps its name of the host's own namespace from the first container on the host's network to its own end.
	delete(r, "mount /run/docker/netns/default nsfs")
	for resource := range r {
		// A change below a directory copies it to the upper layer, where it stays.
		path, ok := strings.CutPrefix(resource, "file "+changes)
		if info, err := os.Lstat(changes + path); ok && err == nil && info.IsDir() && isDir(lower+path) {
			delete(r, resource)
		}
	}
	for _, list := range [][]string{
		{"iptables-legacy-save"},
		{"ip6tables-legacy-save"},
		{"iptables-nft-save"},
		{"ip6tables-nft-save"},
		{"ip", "-o", "addr"},
		{"ip", "route"},
		{"docker", "ps", "-a", "--format", "{{.ID}} {{.Names}} {{.Image}} {{.State}} {{.Labels}}"},
		{"docker", "images", "--format", "{{.ID}} {{.Repository}} {{.Tag}}"},
		{"docker", "network", "ls", "--format", "{{.ID}} {{.Name}}"},
		{"docker", "volume", "ls", "--format", "{{.Name}}"},
	} {
		if list[0] == "docker" && !h.hasDocker {
			continue
		}
		out, err := exec.Command(list[0], list[1:]...).Output()
		if err != nil {
			continue // the program is not installed, or the kernel lacks its tables
		}
		for line := range strings.Lines(string(out)) {
			line = changing.ReplaceAllString(strings.TrimSpace(line), "")
			if line != "" && !strings.HasPrefix(line, "#") {
				r.Add("rule", strings.Join(list, " ")+": "+line)
			}
		}
	}
	h.daemonObjects(r)
	return r
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// settled is the time after which interfaces of a namespace and killed processes count as leftovers. The kernel removes them without an event.
const settled = 30 * time.Second

// differences compares the host with its state before. It waits for the end of removals, because the kernel reports none for interfaces.
func (h *host) differences() (left, losses []string) {
	h.Helper()
	for end := time.Now().Add(settled); ; {
		state := h.state()
		left, losses = state.Beyond(h.before), h.before.Beyond(state)
		if len(left)+len(losses) == 0 || time.Now().After(end) {
			return left, losses
		}
		pause(100 * time.Millisecond)
	}
}

// pause waits for a time. Random moments and the kernel's removals have no event to wait for.
func pause(d time.Duration) { <-time.After(d) }

// compare reports the differences at the end of a case.
func (h *host) compare() {
	h.Helper()
	left, losses := h.differences()
	h.differs(left, losses, "at the end")
}

// differs reports differences of the host after an event, and makes the present state the one to compare with.
func (h *host) differs(left, losses []string, event string, args ...any) {
	h.Helper()
	if len(left)+len(losses) == 0 {
		return
	}
	h.row.Left += len(left)
	h.row.Touched += len(losses)
	h.wrong("%d leftovers and %d foreign objects touched, such as %s, %s\nleft:\n%s\ntouched:\n%s", len(left), len(losses), append(left, losses...)[0],
		fmt.Sprintf(event, args...), strings.Join(left, "\n"), strings.Join(losses, "\n"))
	h.accept()
}

// accept makes the present state of the host the one to compare with, after a case has checked the differences itself. A zombie is no part of it:
// it disappears when its parent reaps it.
func (h *host) accept() {
	h.Helper()
	h.before = h.state()
	maps.DeleteFunc(h.before, func(resource string, _ bool) bool {
		return strings.HasPrefix(resource, "process ") && strings.HasSuffix(resource, inventory.Zombie)
	})
}

// acceptSettled is accept once the state has stayed the same for a second. Daemons remove the last files of a container a moment after it.
func (h *host) acceptSettled() {
	h.Helper()
	const tries = 30
	for range tries {
		h.accept()
		pause(time.Second)
		if state := h.state(); len(state.Beyond(h.before))+len(h.before.Beyond(state)) == 0 {
			return
		}
	}
	h.Fatalf("the state of the host still changes after %d s, although nothing runs or the run is held", tries)
}

// command executes a command and returns its output.
func (h *host) command(argv ...string) string {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		h.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// TestStateShowsEachKind plants a resource of each kind. The comparison must report it, and must report it as touched when it disappears.
//
// Invariant campaign.
func TestStateShowsEachKind(t *testing.T) {
	onHost(t, 0, "the comparison of states finds planted resources", func(h *host) {
		h.before = h.state()
		if left, losses := h.differences(); len(left)+len(losses) > 0 {
			h.wrong("an unchanged host differs: %q, %q", left, losses)
		}
		for _, dir := range []string{"/run/planted", "/var/lib/planted", "/etc/planted", "/run/netns"} {
			h.must(os.Mkdir(dir, 0o700))
		}
		h.command("mount", "-t", "tmpfs", "planted", "/run/planted")
		h.command("ip", "link", "add", "planted0", "type", "bridge")
		h.command("ip", "netns", "add", "planted")
		groups, err := hierarchies()
		h.must(err)
		for _, g := range groups {
			h.must(os.Mkdir(filepath.Join(g.Mountpoint, "planted"), 0o700))
		}
		sleep := exec.Command("unshare", "--net", "sh", "-c", "echo; exec sleep 1000")
		out, err := sleep.StdoutPipe()
		if err == nil {
			err = sleep.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 1)) // the namespace exists from here on
		}
		h.must(err)
		rules := exec.Command("iptables-legacy", "-N", "PLANTED").Run() == nil
		state := h.state()
		additions := state.Beyond(h.before)
		resources := []string{
			"mount /run/planted tmpfs", "interface planted0", "mount /run/netns/planted nsfs", "file /var/lib/planted", "file /chaos/changes/etc/planted",
			"cgroup " + filepath.Join(groups[0].Mountpoint, "planted"),
		}
		if rules {
			resources = append(resources, "rule iptables-legacy-save: :PLANTED - ")
		}
		for _, want := range resources {
			if !slices.Contains(additions, want) {
				h.wrong("%q is planted and not reported in %q", want, additions)
			}
		}
		for _, prefix := range []string{fmt.Sprintf("process %d ", sleep.Process.Pid), "namespace net:"} {
			if !slices.ContainsFunc(additions, func(s string) bool { return strings.HasPrefix(s, prefix) }) {
				h.wrong("%q is planted and not reported in %q", prefix, additions)
			}
		}
		// A zombie in the state to compare with disappears on its own.
		h.must(sleep.Process.Kill())
		h.must(unix.Waitid(unix.P_PID, sleep.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
		if zombie := fmt.Sprintf("process %d %q%s", sleep.Process.Pid, "", inventory.Zombie); !h.state()[zombie] {
			h.wrong("%q is not reported", zombie)
		}
		h.accept()
		_ = sleep.Wait() // it was killed
		if left, losses := h.differences(); len(left)+len(losses) > 0 {
			h.wrong("after the end of a zombie the host differs: %q, %q", left, losses)
		}
		h.must(unix.Unmount("/run/planted", 0))
		losses := state.Beyond(h.state())
		for _, prefix := range []string{"mount /run/planted tmpfs", fmt.Sprintf("process %d ", sleep.Process.Pid), "namespace net:"} {
			if !slices.ContainsFunc(losses, func(s string) bool { return strings.HasPrefix(s, prefix) }) {
				h.wrong("%q is removed and not reported in %q", prefix, losses)
			}
		}
		h.tried(len(resources) + 2)
	})
}
