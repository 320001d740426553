package peer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// dial connects to a server without a handshake.
func dial(t *testing.T, machine remote.Place) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp4", machine.String())
	must.Do(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

// claim sends a client's two lines, the second one by the server's nonce, and returns the second answer with all that follows it.
func claim(t *testing.T, machine remote.Place, nonce string, second func(serverNonce string) request) string {
	t.Helper()
	conn, reader := dial(t, machine)
	var hello answer
	must.Do(t, errors.Join(send(conn, request{Version: "v1", Nonce: nonce}), receive(reader, &hello)))
	if want := (answer{Version: "v1", Nonce: hello.Nonce}); hello.Nonce == "" || hello.Machine != "" || hello.Error != want.Error || hello.About != nil {
		t.Errorf("the first answer is %+v", hello)
	}
	must.Do(t, send(conn, second(hello.Nonce)))
	rest, err := io.ReadAll(reader)
	must.Do(t, err)
	return string(rest)
}

// TestStrangers is the clients that do not have the secret: each gets one refusal, and nothing starts.
//
// Invariant peer-secret: Only a client with the secret starts a program of `touchstone peer`; the secret is in no output, record or environment
// of another program.
func TestStrangers(t *testing.T) {
	m := newMachine(t)
	refusal, err := json.Marshal(answer{Version: "v1", Error: errStranger.Error()})
	must.Do(t, err)
	want := string(refusal) + "\n"
	nonce := newNonce()
	proof := func(secret Secret, side string, server remote.Server) func(string) request {
		return func(serverNonce string) request {
			h := handshake{version: "v1", clientNonce: nonce, serverNonce: serverNonce, server: server}
			return request{Proof: h.proof(secret, side), Server: server}
		}
	}
	replayed := record(t, m, remote.Nginx)
	if len(m.started) != 1 {
		t.Fatalf("%d servers were started", len(m.started))
	}
	<-m.started[0].gone
	strangers := map[string]func(string) request{
		"no secret":        func(string) request { return request{Server: remote.Nginx} },
		"no secret, check": func(string) request { return request{} },
		"empty secret":     proof(secretOf(""), clientSide, remote.Nginx),
		"wrong secret":     proof(secretOf("another-secret-of-the-tests"), clientSide, remote.Nginx),
		"the server's own": proof(testSecret, serverSide, remote.Nginx),
		"reflected nonce":  func(serverNonce string) request { return request{Proof: serverNonce, Server: remote.Nginx} },
		"another server": func(serverNonce string) request {
			r := proof(testSecret, clientSide, remote.Iperf)(serverNonce)
			r.Server = remote.Nginx
			return r
		},
	}
	try := func() {
		t.Helper()
		for name, second := range strangers {
			if got := claim(t, m.at, nonce, second); got != want {
				t.Errorf("%s: the answer is %q, want %q", name, got, want)
			}
		}
		if got := claim(t, m.at, replayed[0].Nonce, func(string) request { return replayed[1] }); got != want {
			t.Errorf("a replayed handshake: the answer is %q, want %q", got, want)
		}
	}
	try()
	if len(m.started) != 1 {
		t.Errorf("strangers started %d servers", len(m.started)-1)
	}
	// A stranger does not learn that a trial is under way.
	s, err := m.Open(t.Context(), m.at, remote.Netserver)
	must.Do(t, err)
	try()
	must.Do(t, s.Close())
	conn, reader := dial(t, m.at)
	_, _ = io.Copy(conn, io.LimitReader(zeros{}, 1<<20)) // the server closes the connection before the end
	rest, _ := io.ReadAll(reader)
	if len(rest) > longestLine {
		t.Errorf("a huge message is answered by %d bytes", len(rest))
	}
	if _, err := m.Check(t.Context(), m.at); err != nil {
		t.Errorf("after all strangers: %v", err)
	}
	if text := strings.Join(m.messages, "\n"); strings.Count(text, "refused 127.0.0.1: ") != 1 || strings.Contains(text, testSecret.Reveal()) {
		t.Errorf("the messages are %q", m.messages)
	}
}

// zeros is an endless message.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// record returns the lines of a client in a session for a server.
func record(t *testing.T, m *machine, server remote.Server) []request {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must.Do(t, err)
	defer func() { _ = l.Close() }()
	var lines strings.Builder
	var wg sync.WaitGroup
	wg.Go(func() {
		inner, err := l.Accept()
		if err != nil {
			return
		}
		outer, err := net.Dial("tcp4", m.at.String())
		if err == nil {
			wg.Go(func() { _, _ = io.Copy(inner, outer); _ = inner.Close() })
			_, _ = io.Copy(io.MultiWriter(outer, &lines), inner)
			_ = outer.(*net.TCPConn).CloseWrite()
		}
	})
	s, err := m.Open(t.Context(), remote.Place{Host: "127.0.0.1", Port: netip.MustParseAddrPort(l.Addr().String()).Port()}, server)
	if err == nil {
		err = s.Close()
	}
	must.Do(t, err)
	wg.Wait()
	var requests []request
	for line := range strings.Lines(lines.String()) {
		var r request
		must.Do(t, json.Unmarshal([]byte(line), &r))
		requests = append(requests, r)
	}
	if len(requests) != 2 || requests[1].Proof == "" || strings.Contains(lines.String(), testSecret.Reveal()) {
		t.Fatalf("the lines of a client are %s", lines.String())
	}
	return requests
}

// A client refuses a program that has not the secret, also one that sends back what it gets.
//
// Invariant peer-secret.
func TestImpostors(t *testing.T) {
	for name, tt := range map[string]struct {
		secret    Secret
		impostors func(first, second request) answer // the answer to the second line
		want      string
	}{
		"no proof":          {testSecret, func(_, _ request) answer { return answer{} }, "does not have this secret"},
		"a reflected proof": {testSecret, func(_, second request) answer { return answer{Proof: second.Proof} }, "does not have this secret"},
		"a proof of another secret": {testSecret, func(first, second request) answer {
			h := handshake{version: "v1", clientNonce: first.Nonce, serverNonce: first.Nonce, server: second.Server}
			return answer{Proof: h.proof(secretOf("another-secret-of-the-tests"), serverSide)}
		}, "does not have this secret"},
		"a client without a secret": {Secret{}, nil, SecretVariable},
	} {
		t.Run(name, func(t *testing.T) {
			clientConn, serverConn := net.Pipe()
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = serverConn.Close() }()
				reader := bufio.NewReader(serverConn)
				var first, second request
				if receive(reader, &first) != nil || send(serverConn, answer{Version: "v1", Nonce: first.Nonce}) != nil || receive(reader, &second) != nil {
					return
				}
				reply := tt.impostors(first, second)
				reply.Version = "v1"
				_ = send(serverConn, reply)
			})
			c := client("v1")
			c.Secret = tt.secret
			err := c.authenticate(t.Context(), clientConn, bufio.NewReader(clientConn), remote.Nginx)
			_ = clientConn.Close()
			wg.Wait()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("authenticate() = %v, want %q", err, tt.want)
			}
		})
	}
}

// A client that is silent or slow does not keep its place.
//
// Invariant peer-secret.
func TestSilentStrangers(t *testing.T) {
	for name, text := range map[string]string{
		"silent": "", "half a line": `{"touchstone"`, "after the nonce": fmt.Sprintf(`{"touchstone":"v1","nonce":%q}`+"\n", newNonce()),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clientConn, serverConn := net.Pipe()
				s := &Server{Version: "v1", Secret: testSecret}
				start := time.Now()
				go s.client(t.Context(), serverConn, netip.AddrPort{}, netip.Addr{}, func() { t.Error("it is admitted") })
				if _, err := io.WriteString(clientConn, text); err != nil {
					t.Error(err)
				}
				_, _ = io.Copy(io.Discard, clientConn)
				if took := time.Since(start); took != handshakeLimit {
					t.Errorf("the connection ends after %v, want %v", took, handshakeLimit)
				}
			})
		})
	}
}

// The connections that wait are few, and few of one address.
//
// Invariant peer-secret.
func TestFewWait(t *testing.T) {
	var s Server
	var leaves []func()
	fill := func(last byte, want int) {
		t.Helper()
		n := 0
		for ; ; n++ {
			leave, ok := s.wait(netip.AddrFrom4([4]byte{192, 0, 2, last}))
			if !ok {
				break
			}
			leaves = append(leaves, leave)
		}
		if n != want {
			t.Errorf("of address %d wait %d, want %d", last, n, want)
		}
	}
	fill(1, mostWaitingFrom)
	leaves[0]()
	leaves[0]() // a connection leaves once
	fill(1, 1)
	for i := range byte(mostWaiting/mostWaitingFrom - 1) {
		fill(2+i, mostWaitingFrom)
	}
	fill(100, 0)
	for _, leave := range leaves {
		leave()
	}
	if len(s.waiting) > 0 {
		t.Errorf("at the end wait %v", s.waiting)
	}
}

// A secret is on no output.
//
// Invariant peer-secret.
func TestSecretIsHidden(t *testing.T) {
	holder := struct {
		Shown  Secret
		hidden Client
	}{testSecret, client("v1")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{testSecret, &testSecret, holder, &holder} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, testSecret.Reveal()) || strings.Contains(text, fmt.Sprintf("%x", testSecret.Reveal())) {
				t.Errorf("%s of %T is %s", verb, value, text)
			}
		}
	}
	if text, err := json.Marshal(holder); err != nil || strings.Contains(string(text), testSecret.Reveal()) {
		t.Errorf("in JSON: %s, %v", text, err)
	}
}

func TestReadSecret(t *testing.T) {
	if secret := NewSecret(); secret.Reveal() == NewSecret().Reveal() || len(secret.Reveal()) < shortestSecret {
		t.Errorf("a fresh secret is %q", secret.Reveal())
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, mode)))
		return file
	}
	fifo := filepath.Join(dir, "fifo")
	must.Do(t, unix.Mkfifo(fifo, 0o600))
	s, err := ReadSecret(write("good", "  abcdefghijklmnop\n", 0o600))
	if err != nil || s.Reveal() != "abcdefghijklmnop" {
		t.Errorf("ReadSecret() = %q, %v", s.Reveal(), err)
	}
	for name, tt := range map[string]struct{ file, want string }{
		"missing":   {filepath.Join(dir, "missing"), "no such file"},
		"empty":     {write("empty", "", 0o600), "this one has 0"},
		"short":     {write("short", "abc\n", 0o600), "16 to 200 characters"},
		"long":      {write("long", strings.Repeat("a", 1<<20), 0o600), "16 to 200 characters"},
		"two words": {write("words", "abcdefghijkl mnopqrstuvw\n", 0o600), "one word"},
		"binary":    {write("binary", "abcdefghijkl\x00mnopqrstuvw", 0o600), "one word"},
		"readable":  {write("readable", "abcdefghijklmnop", 0o640), "chmod 600"},
		"writable":  {write("writable", "abcdefghijklmnop", 0o622), "can be changed by other users"},
		"directory": {dir, "not a regular file"},
		"FIFO":      {fifo, "not a regular file"},
	} {
		_, err := ReadSecret(tt.file)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "abcdefghijkl") {
			t.Errorf("%s: ReadSecret() = %v, want %q", name, err, tt.want)
		}
	}
}
