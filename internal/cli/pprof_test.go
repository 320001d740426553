package cli_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// get returns the body of a page.
func get(t *testing.T, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.Do(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", url, response.Status)
	}
	return string(body), err
}

// TestProfilesOfRun reads profiles while a run is under way: the pipe of its lines is full until the test reads on. The server of the profiles
// ends with the run.
func TestProfilesOfRun(t *testing.T) {
	t.Parallel()
	p := startNarrow(t, t.TempDir(), append([]string{"touchstone"}, append(longRun, "--pprof", "0")...)...)
	p.awaitProgress()
	match := regexp.MustCompile(`(?m)^profiles of this program: (http://127\.0\.0\.1:[0-9]+/debug/pprof/)$`).FindStringSubmatch(p.said.String())
	if match == nil {
		t.Fatalf("no address of the profiles in\n%s", p.said.String())
	}
	url := match[1]
	for page, want := range map[string]string{
		"": "full goroutine stack dump", "cmdline": "--pprof", "goroutine?debug=1": "internal/runner.Run", "heap?debug=1": "heap profile",
	} {
		body, err := get(t, url+page)
		must.Do(t, err)
		if !strings.Contains(body, want) {
			t.Errorf("%s has no %q:\n%.2000s", url+page, want, body)
		}
	}
	p.signal(syscall.SIGINT)
	p.ends(130)
	if _, err := get(t, url); err == nil {
		t.Errorf("%s is there after the end of the run", url)
	}
}
