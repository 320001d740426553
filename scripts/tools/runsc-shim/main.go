// Command containerd-shim-runsc-v1 is gVisor's shim for containerd but for how it starts.
// Upstream's gives itself an OOM score of -999, which fails without CAP_SYS_RESOURCE, and
// tells its address in JSON, which containerd 1.6 does not read.
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

const oomScore = -999 // as upstream: the last but one to be killed

func main() {
	shim.Run(context.Background(), manager{runsc.NewShimManager("io.containerd.runsc.v1")})
}

type manager struct{ shim.Manager }

// Start starts the shim of container id as a process of its own, writes its address to
// standard output and exits: after a return, shim.Run would write it in JSON. Upstream's
// option "grouping" is not there: each container has a shim.
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
	// The shim removes the socket that this file names.
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
	if err := settle(cmd.Process.Pid); err != nil {
		return "", errors.Join(err, cmd.Process.Kill())
	}
	return address, nil
}

// listen makes the socket of a shim, also where a shim that was killed has left its own.
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

// settle tells containerd the shim's process, and the kernel to spare it as far as we may.
func settle(pid int) error {
	if err := shim.WritePidFile("shim.pid", pid); err != nil {
		return err
	}
	if err := sys.SetOOMScore(pid, oomScore); err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("set the shim's OOM score: %w", err)
	}
	return nil
}
