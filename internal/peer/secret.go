package peer

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/trust"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// SecretVariable is the environment variable with the secret of both machines.
const SecretVariable = "TOUCHSTONE_PEER_SECRET"

// Secret is shared by a server and its clients. The zero value is none. It formats as a placeholder or an address, so that no message
// contains its text, also if it prints a structure with a Secret.
type Secret struct{ text *string }

// The lengths of a secret. A short one could be guessed from a recorded handshake.
const (
	shortestSecret = 16
	longestSecret  = 200
)

// NewSecret returns a random secret.
func NewSecret() Secret { return secretOf(rand.Text()) }

func secretOf(text string) Secret { return Secret{&text} }

// ParseSecret reads a secret without the white space around it.
func ParseSecret(text string) (Secret, error) {
	text = strings.TrimSpace(text)
	isForeign := func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }
	switch {
	case len(text) < shortestSecret || len(text) > longestSecret:
		return Secret{}, fmt.Errorf("a secret has %d to %d characters, and this one has %d; use the one that touchstone printed", shortestSecret, longestSecret, len(text))
	case strings.ContainsFunc(text, isForeign):
		return Secret{}, errors.New("a secret is one word of printable ASCII characters, and this one is not; use the one that touchstone printed")
	}
	return secretOf(text), nil
}

// ReadSecret reads a file with a secret. Other users can neither change nor read it.
func ReadSecret(file string) (Secret, error) {
	f, err := trust.Open(file)
	if err != nil {
		return Secret{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return Secret{}, err
	case info.Mode().Perm()&0o077 != 0:
		return Secret{}, fmt.Errorf("%s can be read by other users; run chmod 600 %[1]s", file)
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*longestSecret))
	if err != nil {
		return Secret{}, err
	}
	s, err := ParseSecret(string(text))
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// Reveal returns the text, for the one message that tells it to the user, and to hide it elsewhere. It is empty without a secret.
func (s Secret) Reveal() string {
	if !s.Given() {
		return ""
	}
	return *s.text
}

// Given reports whether there is a secret.
func (s Secret) Given() bool { return s.text != nil }

// String and GoString hide the text from messages.
func (Secret) String() string { return "(secret)" }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the text from files.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The handshake authenticates both sides. A replay fails, because each side chooses a random number, and so does a reflection, because the proofs
// of the two sides differ. A client proves itself first, so that a stranger who connects gets nothing to guess the secret from. A stranger who listens
// in the place of the server gets the client's proof.
//
//	client: version, nonce
//	server: version, nonce       or the reason of a refusal: another version
//	client: proof, server
//	server: version, proof       or the reason of a refusal: the proof
//
// Each proof is the HMAC-SHA256 of the side, the version, both nonces and the server that the client requests.

// nonceBytes is the length of a random number.
const nonceBytes = 32

// newNonce returns a random number in hexadecimal digits.
func newNonce() string {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// isNonce reports whether a text is a random number.
func isNonce(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == nonceBytes
}

// The sides of a handshake.
const (
	clientSide = "client"
	serverSide = "server"
)

// handshake is the content of the first lines of both sides, and the request.
type handshake struct {
	version                  string
	clientNonce, serverNonce string
	server                   remote.Server
}

// proof is a side's proof that it has the secret.
func (h handshake) proof(secret Secret, side string) string {
	text, _ := json.Marshal([]string{"touchstone peer", side, h.version, h.clientNonce, h.serverNonce, string(h.server)}) // strings cannot fail
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	_, _ = mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

// proves reports whether a proof is the side's. The time does not depend on the content of the proof.
func (h handshake) proves(secret Secret, side, proof string) bool {
	return secret.Given() && hmac.Equal([]byte(proof), []byte(h.proof(secret, side)))
}

// refusalError is an answer to a client before the end of its handshake. It tells nothing about the machine.
type refusalError string

func (e refusalError) Error() string { return string(e) }

// errStranger is the one answer to all who do not have the secret.
var errStranger = refusalError("the secret is missing or another: set " + SecretVariable + ", or name a file with --secret-file; touchstone peer prints the secret at its start")

// admit is the server's part of a handshake. It returns the server that an authenticated client requests. The error is io.EOF if the client
// closes the connection before its first byte.
func (s *Server) admit(conn net.Conn, reader *bufio.Reader) (remote.Server, error) {
	var hello request
	if err := receive(reader, &hello); err != nil {
		return "", err
	}
	if hello.Version != s.Version {
		return "", refusalError(fmt.Sprintf("this is touchstone %.50s, and the client is %.50s: install one version on both machines", s.Version, hello.Version))
	}
	if !isNonce(hello.Nonce) {
		return "", errForeign
	}
	h := handshake{version: s.Version, clientNonce: hello.Nonce, serverNonce: newNonce()}
	if err := send(conn, answer{Version: s.Version, Nonce: h.serverNonce}); err != nil {
		return "", err
	}
	var claim request
	if err := receive(reader, &claim); err != nil {
		return "", err
	}
	h.server = claim.Server
	if !h.proves(s.Secret, clientSide, claim.Proof) {
		return "", errStranger
	}
	return h.server, send(conn, answer{Version: s.Version, Proof: h.proof(s.Secret, serverSide)})
}

// authenticate is the client's part of a handshake.
func (c Client) authenticate(ctx context.Context, conn net.Conn, reader *bufio.Reader, server remote.Server) error {
	h := handshake{version: c.Version, clientNonce: newNonce(), server: server}
	hello, err := c.ask(ctx, conn, reader, request{Version: c.Version, Nonce: h.clientNonce})
	switch {
	case err != nil:
		return err
	case !isNonce(hello.Nonce):
		return fmt.Errorf("the program there is not touchstone peer (%w); name the address and the port that touchstone peer prints", errForeign)
	case !c.Secret.Given():
		return errStranger
	}
	h.serverNonce = hello.Nonce
	reply, err := c.ask(ctx, conn, reader, request{Proof: h.proof(c.Secret, clientSide), Server: server})
	switch {
	case err != nil:
		return err
	case !h.proves(c.Secret, serverSide, reply.Proof):
		return errors.New("touchstone peer there does not have this secret: it is another program; check the address, and set " + SecretVariable + " to the secret that touchstone peer prints")
	}
	return nil
}
