package chaos

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	leases "github.com/containerd/containerd/api/services/leases/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
	"github.com/touchstone-bench/touchstone/test/inventory"
)

const (
	// foreignRun has the form of a run's ID, and is older than all runs.
	foreignRun = "20200101-000000-abcd"
	// foreignName is the name of a bystander's objects.
	foreignName = engine.Prefix + foreignRun

	userDocker       = "/var/lib/docker"
	userDockerSocket = "/run/docker.sock"
	userImage        = "docker.io/touchstone/probe:by-hand"
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
		h.must(err)
	}
	h.process("cat", nil)
	h.process("sh", nil, "-c", "read line", "sh", "--root=/run/touchstone/by-hand")
	groups, err := cgroup.Detect("/")
	h.must(err)
	g, err := groups.Create("/" + foreignName)
	h.must(err)
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
	h.must(err)
	h.must(cmd.Start())
	h.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // read fails at the end of its input
	})
	if g == nil {
		return
	}
	for _, file := range g.ProcsFiles() {
		h.must(os.WriteFile(file, fmt.Append(nil, cmd.Process.Pid), 0o600))
	}
}

// foreignContainer starts a container with runc by hand.
func (h *host) foreignContainer() {
	h.Helper()
	bundle, root := h.newDir(), "/run/by-hand"
	h.must(image.WriteRootfs(h.Context(), filepath.Join(bundle, "rootfs")))
	config, err := json.Marshal(specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: "rootfs", Readonly: true},
		Process: &specs.Process{Args: probe.Ready(), Cwd: "/"},
		Mounts:  []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}},
		Linux: &specs.Linux{
			CgroupsPath: "/touchstone-by-hand",
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}},
		},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600)
	}
	h.must(err)
	r, w, err := os.Pipe()
	h.must(err)
	defer func() { _ = r.Close() }()
	run := exec.Command("runc", "--root", root, "run", "--detach", "--bundle", bundle, "touchstone-by-hand")
	run.Stdout = w
	err = run.Run()
	_ = w.Close()
	if err != nil {
		h.Fatalf("start a container by hand: %v", err)
	}
	h.awaitLine(r, probe.ReadyLine)
}

// awaitLine waits until a bystander's program has written a line. Until the runtime executes the program, its process is "runc init" with
// other files and namespaces, so the state of the host would still change.
func (h *host) awaitLine(r *os.File, want string) {
	h.Helper()
	h.must(r.SetReadDeadline(time.Now().Add(patience)))
	lines := bufio.NewScanner(r)
	for !strings.Contains(lines.Text(), want) {
		if !lines.Scan() {
			h.Fatalf("the program of a bystander has not written %q: %v", want, cmp.Or(lines.Err(), io.EOF))
		}
	}
}

// awaitFollowed is awaitLine for a command that follows an output.
func (h *host) awaitFollowed(want string, argv ...string) {
	h.Helper()
	r, w, err := os.Pipe()
	h.must(err)
	defer func() { _ = r.Close() }()
	follow := exec.Command(argv[0], argv[1:]...)
	follow.Stdout = w
	err = follow.Start()
	_ = w.Close()
	h.must(err)
	defer func() {
		_ = follow.Process.Kill()
		_ = follow.Wait() // it was killed
	}()
	h.awaitLine(r, want)
}

// userDaemon starts the dockerd of a user, with a container and an image of the user's. Their names and labels look like those of a run.
func (h *host) userDaemon() {
	h.Helper()
	h.need("dockerd", "docker")
	h.daemon("API listen on", "dockerd", "--host", "unix://"+userDockerSocket, "--exec-opt", "native.cgroupdriver=cgroupfs")
	rootfs := filepath.Join(h.newDir(), "rootfs")
	h.must(image.WriteRootfs(h.Context(), rootfs))
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	h.must(tw.AddFS(os.DirFS(rootfs).(fs.ReadLinkFS)))
	h.must(tw.Close())
	entrypoint, err := json.Marshal(probe.Ready())
	h.must(err)
	load := exec.Command("docker", "import", "--change", "ENTRYPOINT "+string(entrypoint), "-", userImage)
	load.Stdin = &archive
	if out, err := load.CombinedOutput(); err != nil {
		h.Fatalf("docker import: %v\n%s", err, out)
	}
	run := []string{"docker", "run", "--detach", "--network", "none", "--name", foreignName + "-t1-00001", "--label", engine.Label + "=" + foreignRun, userImage}
	h.command(run...)
	h.awaitFollowed(probe.ReadyLine, "docker", "logs", "--follow", foreignName+"-t1-00001")
	h.hasDocker = true
}

// daemon starts a daemon, and waits for a message of it.
func (h *host) daemon(ready string, argv ...string) {
	h.Helper()
	log, err := os.Create(filepath.Join(h.dir, argv[0]+".log"))
	h.must(err)
	r, w, err := os.Pipe()
	h.must(err)
	daemon := exec.Command(argv[0], argv[1:]...)
	daemon.Stdout, daemon.Stderr = w, w
	h.must(daemon.Start())
	_ = w.Close()
	h.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // it was killed; the end of the host kills the rest
	})
	lines := bufio.NewScanner(r)
	for !strings.Contains(lines.Text(), ready) {
		if !lines.Scan() {
			text, _ := os.ReadFile(log.Name())
			h.Fatalf("%s exited before it was ready:\n%s", argv[0], text)
		}
		fmt.Fprintln(log, lines.Text())
	}
	go func() { // until the daemon exits
		for lines.Scan() {
			fmt.Fprintln(log, lines.Text())
		}
	}()
}

// userContainerd starts the containerd of a user, with the image of the user's Docker for pods, and returns its socket.
func (h *host) userContainerd() (socket string) {
	h.Helper()
	version := h.command("containerd", "--version")
	dir := h.newDir()
	socket = filepath.Join(dir, "c.sock")
	config := fmt.Sprintf("version = 3\nroot = %q\nstate = %q\n[grpc]\n  address = %q\n", filepath.Join(dir, "root"), filepath.Join(dir, "state"), socket) +
		fmt.Sprintf("[plugins.\"io.containerd.internal.v1.opt\"]\n  path = %q\n", filepath.Join(dir, "opt"))
	runtime := `plugins."io.containerd.cri.v1.runtime"`
	if old := regexp.MustCompile(` v?1\.[0-9]+\.`); old.MatchString(version) {
		config, runtime = strings.Replace(config, "version = 3", "version = 2", 1), `plugins."io.containerd.grpc.v1.cri"`
		config += fmt.Sprintf("[%s]\n  sandbox_image = %q\n", runtime, userImage)
	} else {
		config += fmt.Sprintf("[plugins.\"io.containerd.cri.v1.images\".pinned_images]\n  sandbox = %q\n[%s]\n", userImage, runtime)
	}
	config += "  disable_apparmor = true\n  restrict_oom_score_adj = true\n"
	config += fmt.Sprintf("  [%s.cni]\n    conf_dir = %q\n    %s\n", runtime, filepath.Join(dir, "cni"), `bin_dir = "/usr/lib/cni"`)
	conflist := fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "user", "plugins": [{"type": "bridge", "bridge": "user0", "isGateway": true, "ipMasq": false,
		"ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "10.99.0.0/16"}]]}}]}`, filepath.Join(dir, "addresses"))
	if !strings.HasPrefix(config, "version = 2") {
		config = strings.Replace(config, `bin_dir = "/usr/lib/cni"`, `bin_dirs = ["/usr/lib/cni"]`, 1)
	}
	err := os.Mkdir(filepath.Join(dir, "cni"), 0o755)
	for name, text := range map[string]string{"config.toml": config, "cni/user.conflist": conflist} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	h.must(err)
	h.daemon("containerd successfully booted", "containerd", "--config", filepath.Join(dir, "config.toml"))
	archive := filepath.Join(dir, "image.tar")
	h.command("docker", "save", "--output", archive, userImage)
	h.command("ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive)
	h.foreignPod(socket)
	return socket
}

// dial connects to a daemon to the end of the test.
func (h *host) dial(socket string) *grpc.ClientConn {
	h.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	h.must(err)
	h.Cleanup(func() { _ = conn.Close() })
	return conn
}

// foreignPod makes a pod with a container in the user's containerd. Their labels look like those of a run.
func (h *host) foreignPod(socket string) {
	h.Helper()
	h.cri = cri.NewRuntimeServiceClient(h.dial(socket))
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	defer cancel()
	labels := map[string]string{engine.Label: foreignRun, "touchstone.id": foreignName + "-t1-00001"}
	pod := &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: foreignName + "-t1-00001", Namespace: "touchstone", Uid: foreignName}, Labels: labels,
		LogDirectory: h.newDir(), Linux: &cri.LinuxPodSandboxConfig{},
	}
	sandbox, err := h.cri.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	h.must(err)
	container, err := h.cri.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: sandbox.PodSandboxId, SandboxConfig: pod, Config: &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: foreignName}, Image: &cri.ImageSpec{Image: userImage, UserSpecifiedImage: userImage}, Labels: labels,
		Command: probe.Ready(), LogPath: "log", Linux: &cri.LinuxContainerConfig{},
	}})
	if err == nil {
		_, err = h.cri.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: container.ContainerId})
	}
	h.must(err)
	h.awaitFollowed(probe.ReadyLine, "tail", "--follow=name", "--retry", "--lines=+1", filepath.Join(pod.LogDirectory, "log"))
}

// daemonObjects adds the objects in the user's containerd to the state.
func (h *host) daemonObjects(r inventory.Resources) {
	h.Helper()
	if h.cri == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pods, err := h.cri.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	h.must(err)
	for _, p := range pods.Items {
		r.Add("pod", p.Id+" "+p.Metadata.Name+" "+p.State.String())
	}
	containers, err := h.cri.ListContainers(ctx, &cri.ListContainersRequest{})
	h.must(err)
	for _, c := range containers.Containers {
		r.Add("container", c.Id+" "+c.Metadata.Name+" "+c.State.String())
	}
}

// live is a run that lives during a case. Its runtime is held in a call, so that it does not change the state of the host.
type live struct {
	p    *program
	w    *wrapped
	base inventory.Resources // the state before the run
}

// liveRun starts a run on several engines with private daemons, and holds it in its first trial.
func (h *host) liveRun(engines ...string) *live {
	h.Helper()
	l := &live{w: h.wrap(), base: h.before}
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
	h.must(os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600))
	l.p = h.startFor(3*time.Hour, dir, nil, benchmarkArgs("-f", "plan.yaml")...)
	l.w.reached(l.p)
	if slices.Contains(engines, "containerd") {
		h.collectGarbage()
	}
	h.acceptSettled()
	return l
}

// collectGarbage makes the private containerd of the only run remove the snapshots of deleted containers now. By itself it does so at any
// later time: it waits for 50 times as long as its collections take.
func (h *host) collectGarbage() {
	h.Helper()
	sockets, err := filepath.Glob("/run/touchstone/*/containerd/c.sock")
	if err != nil || len(sockets) != 1 {
		h.Fatalf("find the socket of the private containerd: %q, %v", sockets, err)
	}
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(h.Context(), "containerd-namespace", "k8s.io"), patience)
	defer cancel()
	// The end of a lease with Sync returns after a collection.
	client := leases.NewLeasesClient(h.dial(sockets[0]))
	_, err = client.Create(ctx, &leases.CreateRequest{ID: foreignName})
	if err == nil {
		_, err = client.Delete(ctx, &leases.DeleteRequest{ID: foreignName, Sync: true})
	}
	if err != nil {
		h.Fatalf("have containerd collect its garbage: %v", err)
	}
}

// finish lets a live run continue to its end, and checks that nothing has disturbed it. From then on the state before the run counts.
func (l *live) finish() {
	l.p.h.Helper()
	l.p.h.before = l.base
	l.w.release()
	defer time.AfterFunc(patience/2, func() { _ = l.p.cmd.Process.Kill() }).Stop()
	l.p.ends(0)
	if l.p.h.Failed() && len(l.p.h.runs(l.p.dir)) == 0 {
		return
	}
	run := l.p.h.run(l.p.dir)
	for i := range run.Trials {
		if t := &run.Trials[i]; t.Status != result.OK {
			l.p.h.row.Touched++
			l.p.h.wrong("a trial of the other run on %s is %s: %s", t.Target, t.Status, t.Reason)
		}
	}
}
