package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// Nothing is said of the page cache, and nobody may drop it, unless something reads cold files.
func TestCachesAreDroppedForColdFilesOnly(t *testing.T) {
	for cache, want := range map[string]bool{"": false, "warm": false, "cold": true} {
		var stderr bytes.Buffer
		allowed := true
		r := &execution{app: &App{env: Environment{Stderr: &stderr}}, plan: plan.Plan{DropCaches: &allowed}, work: []plan.Work{{}, {Params: bench.Params{"cache": cache}}}}
		r.session = &session{dir: &workdir.Dir{}}
		var config runner.Config
		r.allow(&config)
		if said := strings.Contains(stderr.String(), "page cache"); said != want || config.DropCaches != nil && !want {
			t.Errorf("cache=%s: it says %q", cache, stderr.String())
		}
	}
}
