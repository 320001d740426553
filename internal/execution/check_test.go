package execution

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
)

func TestResumeRequiresSameImages(t *testing.T) {
	then := []result.Image{{Name: "workload", Digest: "sha256:1"}, {Name: "mine", Unavailable: "no"}}
	for name, tt := range map[string]struct {
		now []result.Image
		err string
	}{
		"the same":         {slices.Clone(then), ""},
		"one more":         {append(slices.Clone(then), result.Image{Name: "more"}), ""},
		"another digest":   {[]result.Image{{Name: "workload", Digest: "sha256:2"}}, "image workload was sha256:1 when the run started and is sha256:2 now"},
		"none":             {nil, "image workload was available when the run started and is not available now"},
		"unavailable":      {[]result.Image{{Name: "workload", Unavailable: "no"}}, "is not available now"},
		"available now":    {[]result.Image{then[0], {Name: "mine", Digest: "sha256:3"}}, ""},
		"in another order": {[]result.Image{then[1], then[0]}, ""},
	} {
		err := sameImages(then, tt.now)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
	}
}
