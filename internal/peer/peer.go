// Package peer joins a run on this machine with the servers of network benchmarks on another machine.
//
// A [Server] listens on one TCP port, for touchstone peer. A [Client] opens a [Session] for each use of a server: the other machine starts
// a fresh iperf3, netserver or nginx, answers when it listens, and kills it when the connection ends. So each trial has a server of its own,
// as on one machine, and a client that dies leaves nothing. The server serves one session at a time: two clients would measure each other.
//
// Requests and answers are lines of JSON. Neither side sends a time: only the clock of the client's machine measures.
//
// Both sides have the same [Secret], and each proves it to the other before anything else. The connection is neither encrypted nor protected
// after that.
//
// Both sides refuse lines that are too long or late, other versions of Touchstone, and unknown servers. The text of the other side is
// untrusted.
//
// Rejected: servers that run on, without a Server. An iperf3 that lost its client stays busy, a program of another version has the same
// port, and nothing keeps two runs apart.
package peer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// request is a line of a client. The first one has a version and a nonce, and the second one a server and a proof.
//
// Invariant one-clock: The clock of another machine is never compared with the host's: requests and answers contain no time.
type request struct {
	// Version is Touchstone's, so that both sides have the same programs.
	Version string `json:"touchstone,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
	Proof   string `json:"proof,omitempty"`
	// Server is the server to start. It is empty in a check.
	Server remote.Server `json:"server,omitempty"`
}

// answer is a line of a server: of the handshake, the description of the machine, or the reason of a failure.
//
// Invariant one-clock.
type answer struct {
	Version string `json:"touchstone"`
	Error   string `json:"error,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
	Proof   string `json:"proof,omitempty"`
	// Machine identifies the running kernel.
	Machine string `json:"machine,omitempty"`
	// About describes the machine: AboutMachine and the like.
	About map[string]string `json:"about,omitempty"`
}

// The keys of a server's description of itself.
const (
	AboutMachine   = "machine"
	AboutInterface = "interface"
	AboutImage     = "image"
)

// Limits of the protocol.
const (
	longestRequest = 1 << 10 // bytes
	longestLine    = 8 << 10 // bytes of an answer
	longestText    = 500     // bytes of one text in a line
	// handshakeLimit bounds the handshake and the writing of an answer, and closeLimit the end of a session.
	handshakeLimit = 10 * time.Second
	closeLimit     = 20 * time.Second
)

// keepAlive finds a lost machine after 25 seconds without an answer to TCP's probes.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// errLate is the cause of a context whose limit is over.
var errLate = errors.New("no answer in time")

// within calls f, which uses the connection, and breaks the connection if f takes longer than a limit or ctx ends before. The error is then
// the context's cause.
func within(ctx context.Context, conn net.Conn, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err := f()
	if !stop() && err != nil {
		return context.Cause(ctx)
	}
	return err
}

// send writes one line.
func send(conn net.Conn, message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n'))
	return err
}

// errForeign reports a line that is not Touchstone's.
var errForeign = errors.New("not a line of touchstone")

// receive reads one line. The error is io.EOF if the connection ends before the first byte.
func receive(r *bufio.Reader, value any) error {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, io.EOF) && len(line) > 0:
		return fmt.Errorf("%w: %.40q", errForeign, line)
	case err != nil:
		return err
	}
	if err := json.Unmarshal(line, value); err != nil {
		return fmt.Errorf("%w: %.40q", errForeign, strings.TrimSpace(string(line)))
	}
	return nil
}

// Machine identifies the running kernel of this machine, without its boot ID.
func Machine() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("identify this machine: %w", err)
	}
	sum := sha256.Sum256(append([]byte("touchstone peer\n"), boot...))
	return hex.EncodeToString(sum[:8]), nil
}

// Own lists the IPv4 addresses of this machine, as this process sees them.
func Own() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	var addrs []netip.Addr
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			addrs = append(addrs, prefix.Addr())
		}
	}
	return addrs, nil
}

// Listen listens at an address of this machine: an IPv4 address that other machines can reach.
func Listen(ctx context.Context, addr netip.AddrPort) (net.Listener, error) {
	if err := remote.Check(addr.Addr()); err != nil {
		return nil, fmt.Errorf("listen on %s: %w; name the address of the interface to the other machine", addr, err)
	}
	addrs, err := Own()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(addrs, addr.Addr()) {
		return nil, fmt.Errorf("listen on %s: it is not an address of this machine, which has %s", addr, listed(addrs))
	}
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := config.Listen(ctx, "tcp4", addr.String())
	if err != nil {
		return nil, fmt.Errorf("%w; name another port: --listen %s:PORT", err, addr.Addr())
	}
	return l, nil
}

// listed lists the addresses that other machines may reach.
func listed(addrs []netip.Addr) string {
	var texts []string
	for _, a := range addrs {
		if !a.IsLoopback() {
			texts = append(texts, a.String())
		}
	}
	if texts == nil {
		return "only loopback addresses"
	}
	return strings.Join(texts, ", ")
}
