package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// listener is the descriptor of the listening socket in the command of listen.
const listener = 3

// listen listens on a free port of the loopback address, writes the port to a file, and executes a command with the socket as descriptor 3.
// The command may enter another network namespace: the socket stays in this one.
func listen(file string, command []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	if err != nil {
		return err
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(file, []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
		return err
	}
	// Descriptor 3 may belong to Go's poller, which is not used any more. A descriptor cannot be duplicated onto itself.
	if socket.Fd() == listener {
		_, err = unix.FcntlInt(listener, unix.F_SETFD, 0)
	} else {
		err = unix.Dup3(int(socket.Fd()), listener, 0)
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, command, os.Environ()))
}

// forward accepts connections on a listening socket, and connects each with an address in the network namespace of this process.
func forward(descriptor, address string) error {
	fd, err := strconv.Atoi(descriptor)
	if err != nil {
		return err
	}
	l, err := net.FileListener(os.NewFile(uintptr(fd), "listener"))
	if err != nil {
		return err
	}
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go connect(client, address)
	}
}

// connect copies bytes in both directions until both sides have ended their output. Without the server it closes the connection.
func connect(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address) //nolint:noctx // it ends with the connection
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		transfer(server, client)
	}()
	transfer(client, server)
	<-done
}

// transfer copies the source to the destination, and then the end of the source.
func transfer(destination, source net.Conn) {
	_, _ = io.Copy(destination, source)
	_ = destination.(*net.TCPConn).CloseWrite()
}
