package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// startUI starts the pages, and returns the printed address and a function that ends them with their exit code.
func startUI(t *testing.T, args ...string) (address string, stop func() int) {
	t.Helper()
	reader, writer := io.Pipe()
	var notes bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	codes := make(chan int, 1)
	go func() {
		codes <- cli.New(cli.Environment{Stdout: writer, Stderr: &notes}).Run(ctx, append([]string{"ui"}, args...))
		_ = writer.Close()
	}()
	address, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatalf("touchstone ui %v ended with %d:\n%s", args, <-codes, notes.String())
	}
	return strings.TrimSpace(address), func() int {
		cancel()
		return <-codes
	}
}

// fetch returns the status and the text of a page.
func fetch(t *testing.T, address, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must.Do(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(r)
	must.Do(t, err)
	text, err := io.ReadAll(a.Body)
	must.Do(t, err, a.Body.Close())
	return a.StatusCode, string(text)
}

// The verb prints the address of the pages, and serves them until it is interrupted. Pages of a folder without results contain the remedy.
func TestUI(t *testing.T) {
	dir := t.TempDir()
	address, stop := startUI(t, "-d", dir, "--listen", "0")
	status, text := fetch(t, address, "")
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "create it with touchstone benchmark -d "+dir) {
		t.Errorf("without results: %d %s", status, text)
	}
	var out bytes.Buffer
	app := cli.New(cli.Environment{Stdout: &out, Stderr: &out, RunID: func() string { return "20261129-1" }})
	code := app.Run(t.Context(), []string{"benchmark", "--allow-concurrent", "-t", "fake/a,fake/b", "--filter", "operations.container.lifecycle", "-n", "2", "-d", dir})
	expect.Equal(t, "exit code of the run", 0, code)
	if status, text = fetch(t, address, ""); status != http.StatusOK || !strings.Contains(text, "/run/20261129-1") {
		t.Errorf("with a run: %d %s", status, text)
	}
	if status, text = fetch(t, address+"run/latest?format=table", ""); status != http.StatusOK || !strings.Contains(text, "operations.container.lifecycle") || strings.Contains(text, "\x1b") {
		t.Errorf("as a table: %d %s", status, text)
	}
	if status, text = fetch(t, address+"run/latest?format=export", ""); status != http.StatusOK || !json.Valid([]byte(text)) {
		t.Errorf("as an export: %d %s", status, text)
	}
	expect.Equal(t, "exit code", 0, stop())
}

// Pages that other machines reach need a token: a fresh one, which is printed, or the one of a file, which is not.
//
// Invariant page-token: At an address that other machines reach, a request without the token gets no results.
func TestUIToken(t *testing.T) {
	address, stop := startUI(t, "-d", t.TempDir(), "--listen", "0.0.0.0:0")
	site, token, ok := strings.Cut(address, "login?token=")
	if !ok || len(token) < 16 || strings.Contains(site, "0.0.0.0") { // no other machine reaches the last one
		t.Fatalf("the address is %s", address)
	}
	status, _ := fetch(t, site, "")
	expect.Equal(t, "without the token", http.StatusUnauthorized, status)
	status, _ = fetch(t, site, token)
	expect.Equal(t, "with the token", http.StatusServiceUnavailable, status) // no results
	status, _ = fetch(t, address, "")
	expect.Equal(t, "login", http.StatusSeeOther, status)
	expect.Equal(t, "exit code", 0, stop())

	const secret = "the-token-of-the-test"
	file := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	address, stop = startUI(t, "-d", t.TempDir(), "--listen", "0", "--token-file", file)
	if !strings.HasSuffix(address, "/login?token=TOKEN") {
		t.Errorf("the address is %s", address)
	}
	status, _ = fetch(t, strings.Replace(address, "TOKEN", secret, 1), "")
	expect.Equal(t, "login with the token of the file", http.StatusSeeOther, status)
	expect.Equal(t, "exit code", 0, stop())
}
