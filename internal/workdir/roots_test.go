package workdir

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// A user without a home, as in services and containers, has roots too.
func TestRootsWithoutHome(t *testing.T) {
	fallback := filepath.Join("/var/tmp", "touchstone-"+strconv.Itoa(os.Getuid()))
	for name, c := range map[string]struct{ home, cache, want string }{
		"a home":                   {"/home/u", "", "/home/u/.cache/touchstone/runs"},
		"a cache without a home":   {"", "/cache", "/cache/touchstone/runs"},
		"neither":                  {"", "", fallback},
		"a relative path of cache": {"/home/u", "cache", fallback},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_CACHE_HOME", c.cache)
		if roots := userRoots(); roots.Data != c.want || !filepath.IsAbs(roots.State) {
			t.Errorf("%s: the roots are %+v, want data in %s", name, roots, c.want)
		}
	}
}
