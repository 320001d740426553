package chaos

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

const (
	// foreignRun has the form of a run's ID, and is older than all runs.
	foreignRun = "20200101-000000-abcd"
	// foreignName is the name of a bystander's objects.
	foreignName = engine.Prefix + foreignRun

	userDocker       = "/var/lib/docker"
	userDockerSocket = "/run/docker.sock"
)

// bystanders makes objects of other programs, with names like Touchstone's: directories, a cgroup with a process, a process, an interface, a
// network namespace, a chain of rules and a container of runc.
func (h *host) bystanders() {
	h.Helper()
	for _, file := range []string{
		"/run/touchstone/" + foreignRun + ".bak/file", "/run/" + foreignName + "/file", "/var/lib/touchstone/by-hand/file", "/tmp/" + foreignName + "/file",
	} {
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte("mine"), 0o600)
		}
		if err != nil {
			h.Fatal(err)
		}
	}
	h.process("cat", nil)
	h.process("sh", nil, "-c", "read line", "sh", "--root=/run/touchstone/by-hand")
	groups, err := cgroup.Detect("/")
	if err != nil {
		h.Fatal(err)
	}
	g, err := groups.Create("/" + foreignName)
	if err != nil {
		h.Fatal(err)
	}
	h.process("cat", g)
	h.command("ip", "link", "add", "touchstone0", "type", "bridge")
	h.command("ip", "netns", "add", foreignName)
	_ = exec.Command("iptables-legacy", "-N", "TOUCHSTONE").Run() // not every kernel has it
	h.foreignContainer()
}

// process starts a process that waits for its input, in a cgroup.
func (h *host) process(name string, g *cgroup.Group, args ...string) {
	h.Helper()
	cmd := exec.Command(name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // read fails at the end of its input
	})
	if g == nil {
		return
	}
	for _, file := range g.ProcsFiles() {
		if err := os.WriteFile(file, fmt.Append(nil, cmd.Process.Pid), 0o600); err != nil {
			h.Fatal(err)
		}
	}
}

// foreignContainer starts a container with runc by hand.
func (h *host) foreignContainer() {
	h.Helper()
	bundle, root := h.newDir(), "/run/by-hand"
	if err := image.WriteRootfs(h.Context(), filepath.Join(bundle, "rootfs")); err != nil {
		h.Fatal(err)
	}
	config, err := json.Marshal(specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: "rootfs", Readonly: true},
		Process: &specs.Process{Args: workload.Ready(), Cwd: "/"},
		Mounts:  []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}},
		Linux: &specs.Linux{
			CgroupsPath: "/touchstone-by-hand",
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}},
		},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600)
	}
	if err != nil {
		h.Fatal(err)
	}
	// The output must not be a pipe to this test, because the test would wait for it.
	if err := exec.Command("runc", "--root", root, "run", "--detach", "--bundle", bundle, "touchstone-by-hand").Run(); err != nil {
		h.Fatalf("start a container by hand: %v", err)
	}
}

// userDaemon starts the dockerd of a user, with a container and an image of the user's. Their names and labels look like those of a run.
func (h *host) userDaemon() {
	h.Helper()
	h.need("dockerd", "docker")
	log, err := os.Create(filepath.Join(h.dir, "dockerd.log"))
	if err != nil {
		h.Fatal(err)
	}
	daemon := exec.Command("dockerd", "--host", "unix://"+userDockerSocket, "--exec-opt", "native.cgroupdriver=cgroupfs")
	r, w, err := os.Pipe()
	if err != nil {
		h.Fatal(err)
	}
	daemon.Stdout, daemon.Stderr = log, w
	if err := daemon.Start(); err != nil {
		h.Fatal(err)
	}
	_ = w.Close()
	h.Cleanup(func() {
		_ = daemon.Process.Signal(os.Interrupt)
		_ = daemon.Wait() // the end of the namespace kills it otherwise
	})
	lines := bufio.NewScanner(r)
	for !strings.Contains(lines.Text(), "API listen on") {
		if !lines.Scan() {
			h.Fatal("dockerd exited before it was ready")
		}
		fmt.Fprintln(log, lines.Text())
	}
	go func() { // until dockerd exits
		for lines.Scan() {
			fmt.Fprintln(log, lines.Text())
		}
	}()
	rootfs := filepath.Join(h.newDir(), "rootfs")
	if err := image.WriteRootfs(h.Context(), rootfs); err != nil {
		h.Fatal(err)
	}
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	if err := tw.AddFS(os.DirFS(rootfs).(fs.ReadLinkFS)); err != nil {
		h.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		h.Fatal(err)
	}
	load := exec.Command("docker", "import", "-", "touchstone/probe:by-hand")
	load.Stdin = &archive
	if out, err := load.CombinedOutput(); err != nil {
		h.Fatalf("docker import: %v\n%s", err, out)
	}
	run := []string{"docker", "run", "--detach", "--network", "none", "--name", foreignName + "-t1-00001", "--label", engine.Label + "=" + foreignRun, "touchstone/probe:by-hand"}
	h.command(append(run, workload.Ready()...)...)
	h.hasDocker = true
}

// live is a run that lives during a case. Its runtime is held in a call, so that it does not change the state of the host.
type live struct {
	p *program
	w *wrapped
}

// liveRun starts a run on several engines with private daemons, and holds it in its first trial.
func (h *host) liveRun(engines ...string) *live {
	h.Helper()
	l := &live{w: h.wrap("runc")}
	var targets []string
	// Each engine starts one container before the first trial, two with a pod, and Podman starts two.
	first := 1
	for _, e := range engines {
		targets = append(targets, e+"/held")
		first++
		if e == "containerd" || e == "podman" {
			first++
		}
	}
	l.w.rules(script.Rule{Verb: "start", From: first, Until: first, Fault: script.Hold})
	dir := h.newDir()
	plan := "version: 1\ntargets: [" + strings.Join(targets, ", ") + "]\nruntimes: {held: " + l.w.path + "}\nengines: {managed: true}\n" +
		"benchmarks: [" + lifecycle + "]\nblocks: 2\nwarmup: 0\ntimeout: {trial: 3h, call: 3h}\n"
	if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600); err != nil {
		h.Fatal(err)
	}
	l.p = h.startFor(3*time.Hour, dir, nil, benchmarkArgs("-f", "plan.yaml")...)
	l.w.reached()
	return l
}

// finish lets a live run continue to its end, and checks that nothing has disturbed it.
func (l *live) finish() {
	l.p.h.Helper()
	l.w.release()
	l.p.ends(0)
	run := l.p.h.run(l.p.dir)
	for i := range run.Trials {
		if t := &run.Trials[i]; t.Status != result.OK {
			l.p.h.row.Touched++
			l.p.h.wrong("a trial of the other run on %s is %s: %s", t.Target, t.Status, t.Reason)
		}
	}
}
