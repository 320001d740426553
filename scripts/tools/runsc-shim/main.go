// Command containerd-shim-runsc-v1 is gVisor's shim for containerd with another start. Upstream's shim
// sets its OOM score to -999, which fails without CAP_SYS_RESOURCE. It also reports its address in JSON,
// which containerd 1.6 cannot read.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/sys"
	runsc "gvisor.dev/gvisor/pkg/shim/v1"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // registers the service that the shim serves
)

const oomScore = -999 // as upstream: only -1000 protects a process more

func main() {
	shim.Run(context.Background(), manager{runsc.NewShimManager("io.containerd.runsc.v1")})
}

type manager struct{ shim.Manager }

// Start starts the shim of a container as a separate process, writes its address to standard output, and
// exits. If it returned, shim.Run would write the address in JSON. Upstream's option "grouping" is missing:
// each container has a shim.
func (manager) Start(ctx context.Context, id string, opts shim.StartOpts) (shim.BootstrapParams, error) {
	address, err := start(ctx, id, opts)
	if err != nil {
		return shim.BootstrapParams{}, err
	}
	if _, err := fmt.Print(address); err != nil {
		return shim.BootstrapParams{}, err
	}
	os.Exit(0)
	panic("unreachable")
}

func start(ctx context.Context, id string, opts shim.StartOpts) (address string, err error) {
	namespace, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	address, err = shim.SocketAddress(ctx, opts.Address, id, opts.Debug)
	if err != nil {
		return "", err
	}
	socket, err := listen(address)
	if err != nil {
		return "", fmt.Errorf("listen on the shim's socket: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, shim.RemoveSocket(address))
		}
	}()
	file, err := socket.File()
	if err != nil {
		return "", err
	}
	// At its exit the shim removes the socket in this file.
	if err := os.WriteFile("address", []byte(address), 0o644); err != nil {
		return "", err
	}

	args := []string{"-namespace", namespace, "-address", opts.Address, "-id", id}
	if opts.Debug {
		args = append(args, "-debug")
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if err := record(cmd.Process.Pid); err != nil {
		return "", errors.Join(err, cmd.Process.Kill())
	}
	return address, nil
}

// listen makes the socket of a shim. It replaces the stale socket of a killed shim.
func listen(address string) (*net.UnixListener, error) {
	socket, err := shim.NewSocket(address)
	if shim.SocketEaddrinuse(err) && !shim.CanConnect(address) {
		if err := shim.RemoveSocket(address); err != nil {
			return nil, err
		}
		return shim.NewSocket(address)
	}
	return socket, err
}

// record writes the shim's PID for containerd, and sets its OOM score if the kernel permits it.
func record(pid int) error {
	if err := shim.WritePidFile("shim.pid", pid); err != nil {
		return err
	}
	if err := sys.SetOOMScore(pid, oomScore); err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("set the shim's OOM score: %w", err)
	}
	return nil
}
