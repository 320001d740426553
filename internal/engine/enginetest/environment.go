package enginetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/record"
)

// The tests in this file check the environment that a Spec describes: writable directories, CPUs, limits and networks.

// written is the file that containers write. Its directory exists in the image.
const written = "/data/written"

// testWritable checks that writes of a container stay in that container.
func (s *suite) testWritable(t *testing.T) {
	s.needs(t, engine.CanWrite)
	writable := func(args []string) engine.Spec {
		spec := s.spec(args)
		spec.Writable = true
		return spec
	}
	for range 2 { // the program fails if the file exists
		s.complete(t, writable(probe.Write(written)))
	}
	wantReport(t, s.complete(t, writable(files(filepath.Dir(written)))).stdout)
	s.wantRootUnchanged(t)
}

// wantRootUnchanged checks that the shared root file system has no new file.
func (s *suite) wantRootUnchanged(t *testing.T) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(s.Rootfs, written)); err == nil {
		t.Errorf("a container has written %s to the shared root file system", written)
	}
}

// testTmpfs checks that a mount without a source is writable and is not shared.
func (s *suite) testTmpfs(t *testing.T) {
	s.needs(t, engine.CanTmpfs)
	dir := filepath.Dir(written)
	for range 2 {
		spec := s.spec(probe.Write(written))
		spec.Mounts = []engine.Mount{{Target: dir}}
		s.complete(t, spec)
	}
	s.wantRootUnchanged(t)
}

// lacks skips the test because this host does not let the target do something, or fails it if MustRun names the target.
func (s *suite) lacks(t *testing.T, what string, err error) {
	t.Helper()
	if name := s.engine.Info().Target; required(t, name) {
		t.Fatalf("%s names %s, which has no %s: %v", MustRun, name, what, err)
	}
	record.Skip(t, fmt.Sprintf("the target has no %s here: %v", what, err))
}

// testReadonlyPaths checks that a container on the host's kernel cannot set the kernel's parameters: no engine may leave the paths of
// engine.ReadonlyPaths open.
func (s *suite) testReadonlyPaths(t *testing.T) {
	if i := s.engine.Info().Isolation; i == engine.UserKernel || i == engine.VM {
		t.Skip("the parameters are of the container's own kernel")
	}
	out, err := probe.Parse([]byte(s.complete(t, s.spec(probe.Rights())).stdout.String()))
	must.Do(t, err)
	for _, file := range out.Texts("writable") {
		for _, dir := range engine.ReadonlyPaths() {
			if file == dir || strings.HasPrefix(file, dir+"/") {
				t.Errorf("the container may write %s", file)
			}
		}
	}
}

// testCPUSet checks that the container runs only on the CPU of its spec. A sandbox shows its own CPUs: only their number is
// checked.
func (s *suite) testCPUSet(t *testing.T) {
	var affinity unix.CPUSet
	must.Do(t, unix.SchedGetaffinity(0, &affinity))
	last := -1
	for cpu := range len(affinity) * 64 {
		if affinity.IsSet(cpu) {
			last = cpu
		}
	}
	spec := s.spec(probe.CPUs())
	spec.Resources.CPUSet = fmt.Sprint(last)
	got := strings.TrimSpace(s.complete(t, spec).stdout.String())
	switch s.engine.Info().Isolation {
	case engine.UserKernel, engine.VM:
		if got == "" || strings.ContainsAny(got, ",-") {
			t.Errorf("with one CPU the container may run on the CPUs %q, want one", got)
		}
	default:
		if got != spec.Resources.CPUSet {
			t.Errorf("the container may run on the CPUs %q, want %q", got, spec.Resources.CPUSet)
		}
	}
}

// testLimits checks that the limits of a container are set at its creation and by updates, that an update keeps the limits that it does not name, and
// that the container is below the cgroup of SetCgroupParent.
func (s *suite) testLimits(t *testing.T) {
	if s.Limits == nil {
		s.lacks(t, "limits", errors.New("the cgroups of its containers are not known"))
	}
	parent := "/" + engine.Prefix + s.RunID
	if placer, ok := s.engine.(engine.CgroupPlacer); ok {
		parent += "/trial"
		Check(t, placer.SetCgroupParent(parent))
		t.Cleanup(func() { Check(t, placer.SetCgroupParent("")) }) // after the removal of the container
	}
	spec := s.spec(probe.Ready())
	spec.Resources = engine.Resources{CPU: 0.5, Memory: 256 << 20}
	b := s.start(t, spec)
	s.wantReady(t, b)
	s.wantLimits(t, parent, b, spec.Resources)
	info := s.engine.Info()
	if s.engine.Supports(engine.CanUpdate) == nil && info.Isolation != engine.VM && info.Target.Runtime != "youki" { // its update may change nothing
		want := spec.Resources
		for _, r := range []engine.Resources{{CPU: 0.1}, {CPU: 1.5, Memory: 384 << 20}, {Memory: 192 << 20}} {
			if err := optional[engine.Updater](t, b).Update(s.context(t), r); err != nil {
				t.Fatalf("Update(%+v): %v", r, err)
			}
			want.CPU, want.Memory = cmp.Or(r.CPU, want.CPU), cmp.Or(r.Memory, want.Memory)
			s.wantLimits(t, parent, b, want)
		}
	}
	s.kill(t, b, killed)
}

// wantLimits checks the limits of a container in the host's cgroups.
func (s *suite) wantLimits(t *testing.T, parent string, b testContainer, r engine.Resources) {
	t.Helper()
	atHost := engine.Resources{CPU: r.CPU + s.Overhead.CPU, Memory: r.Memory + s.Overhead.Memory}
	if got, want := s.Limits(t, parent, b.ID()), fmt.Sprint(atHost.CPUQuota(), " 100000 ", atHost.Memory); got != want {
		t.Errorf("the container's CPU quota, period and memory limit are %q, want %q", got, want)
	}
	limiter, ok := b.Container.(engine.Limited)
	if !ok {
		return
	}
	got, err := limiter.Limits(s.context(t))
	if engine.Unsupported(err) && s.engine.Info().Isolation == engine.VM {
		return // the guest has the limits
	}
	if err != nil || got.CPU != r.CPU || got.Memory != r.Memory {
		t.Errorf("the cgroup of the container's process has the limits %+v, %v; want %+v", got, err, r)
	}
}

// sandboxLimit is the wait for a sandbox that may start no more processes. A sandbox that still runs has stopped, and the test passes: a busy
// host cannot fail it.
const sandboxLimit = 10 * time.Second

// testProcessLimit checks that a program below its limit of processes works. Above the limit the kernel refuses the program's
// processes. A sandbox has its own processes under the limit, and one that may start no more fails as a whole or stops: then the
// program must at least not succeed.
func (s *suite) testProcessLimit(t *testing.T) {
	const limit = 256
	spec := s.spec(probe.Syscall(8, 10*time.Millisecond).Args)
	spec.Resources.PIDs = limit
	wantReport(t, s.complete(t, spec).stdout)

	spec = s.spec(probe.Syscall(limit, 10*time.Millisecond).Args)
	spec.Resources.PIDs = limit
	b := s.start(t, spec)
	sharesKernel := s.engine.Info().Isolation == engine.SharedKernel || s.engine.Info().Isolation == engine.NoIsolation
	ctx := s.context(t)
	if !sharesKernel {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, sandboxLimit)
		defer cancel()
	}
	exit, err := b.Wait(ctx)
	if hasStopped := !sharesKernel && ctx.Err() != nil; !hasStopped && (err != nil || exit.OK()) {
		t.Errorf("Wait = %v, %v; want a failure: the program has more processes than its limit of %d", exit, err, limit)
	}
	s.delete(t, b)
	if sharesKernel {
		if got := b.stderr.String(); !strings.Contains(got, "EAGAIN") {
			t.Errorf("the program wrote %q, want the kernel's refusal EAGAIN", got)
		}
	}
}

// reachLimit bounds the attempts of a program to reach another one, which listens already. It is a limit for a network that loses every
// packet.
const reachLimit = 2 * time.Minute

// link returns the network of bridged containers.
func (s *suite) link(t *testing.T) engine.Link {
	t.Helper()
	if err := s.engine.Supports(engine.NetworkBridge); err != nil {
		s.lacks(t, "bridged network", err)
	}
	networker, ok := s.engine.(engine.Networker)
	if !ok {
		t.Fatalf("the engine lacks an interface that Supports promises: %T", (*engine.Networker)(nil))
	}
	link, err := networker.Link(s.context(t))
	if engine.Unsupported(err) {
		s.lacks(t, "bridged network", err)
	}
	if err != nil {
		t.Fatalf("Link: %v", err)
	}
	return link
}

// servingPort waits for a server's first line and returns its port.
func (s *suite) servingPort(t *testing.T, server testContainer) uint16 {
	t.Helper()
	line, err := server.stdout.firstLine(s.context(t))
	if err != nil {
		t.Fatalf("first line of output: %v; Stderr: %s", err, server.stderr)
	}
	port, err := probe.ParseServing(line)
	must.Do(t, err)
	return uint16(port)
}

func (s *suite) bridged(args []string) engine.Spec {
	spec := s.spec(args)
	spec.Network = engine.Bridged
	return spec
}

func (s *suite) address(t *testing.T, b testContainer) netip.Addr {
	t.Helper()
	address, err := optional[engine.Addressed](t, b).Address(s.context(t))
	if err != nil || !address.Is4() || address.IsLoopback() {
		t.Fatalf("Address = %v, %v; want an IPv4 address that others can reach", address, err)
	}
	return address
}

// testBridge checks that containers reach each other, and do not reach an exited one.
func (s *suite) testBridge(t *testing.T) {
	link := s.link(t)
	for _, name := range []string{"interface", "mtu"} {
		if link.About[name] == "" {
			t.Errorf("Link describes the network by %v, without its %s", link.About, name)
		}
	}
	server := s.start(t, s.bridged(probe.ServeAny(0)))
	addr := netip.AddrPortFrom(s.address(t, server), s.servingPort(t, server))
	for range 2 { // a later container has another network than an earlier one
		s.complete(t, s.bridged(probe.Reach(addr, reachLimit)))
	}
	s.kill(t, server, killed)
	s.delete(t, server)
	client := s.start(t, s.bridged(probe.Reach(addr, 50*time.Millisecond)))
	if exit, err := client.Wait(s.context(t)); err != nil || exit.Code != 1 {
		t.Errorf("Wait = %v, %v; want code 1: the server at %v has exited", exit, err, addr)
	}
	if recheck, err := s.engine.(engine.Networker).Link(s.context(t)); err != nil || recheck.Host != link.Host || recheck.Namespace != link.Namespace {
		t.Errorf("Link changed from %+v to %+v, %v", link, recheck, err)
	}
}

// testHostEnd checks that a program at the host's end and a container reach each other.
func (s *suite) testHostEnd(t *testing.T) {
	link := s.link(t)
	if s.Host == nil {
		t.Fatal("the engine has bridged networks: the suite needs the native engine for the host's end")
	}
	host := func(args []string) testContainer {
		spec := s.spec(args)
		spec.Network, spec.Join = engine.HostNet, link.Namespace
		return s.started(t, s.createOn(t, s.Host, spec))
	}
	server := s.start(t, s.bridged(probe.ServeAny(0)))
	containerAddr := netip.AddrPortFrom(s.address(t, server), s.servingPort(t, server))
	s.wantExit(t, host(probe.Reach(containerAddr, reachLimit)), engine.Exit{})

	hostServer := host(probe.ServeAny(0))
	addr := netip.AddrPortFrom(link.Host, s.servingPort(t, hostServer))
	s.complete(t, s.bridged(probe.Reach(addr, reachLimit)))
	s.kill(t, hostServer, killed)
}
