package text_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/text"
)

// TestListing: a row that is too wide is broken at spaces, or its last columns continue below it.
func TestListing(t *testing.T) {
	header := []string{"RUN", "STATE", "TARGETS"}
	rows := [][]string{
		{"20261129-010000-lfhz", "complete", "native oci/runc oci/crun oci/youki oci/runsc containerd/runc crio/runc"},
		{"quick"},
		{"20261129-020000-abcd", "killed", "native"},
	}
	for width, want := range map[int]string{
		0: `RUN                     STATE     TARGETS
20261129-010000-lfhz    complete  native oci/runc oci/crun oci/youki oci/runsc containerd/runc
                                  crio/runc
quick
  20261129-020000-abcd  killed    native
`,
		80: `RUN                     STATE     TARGETS
20261129-010000-lfhz    complete  native oci/runc oci/crun oci/youki oci/runsc
                                  containerd/runc crio/runc
quick
  20261129-020000-abcd  killed    native
`,
	} {
		var out bytes.Buffer
		must.Do(t, text.Listing(&out, header, rows, width))
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("at a width of %d (-want +got):\n%s", width, diff)
		}
	}
}

// TestListingBreaksAfterCommas: a phrase of an entry stays together.
func TestListingBreaksAfterCommas(t *testing.T) {
	var out bytes.Buffer
	must.Do(t, text.Listing(&out, []string{"NAME", "VERSION"}, [][]string{{"containerd/runsc", "containerd 1.6.20~ds1, runsc version 0.0~20221219.0"}}, 60))
	want := `NAME              VERSION
containerd/runsc  containerd 1.6.20~ds1,
                  runsc version 0.0~20221219.0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestListingFits: no line is wider than the terminal, and no word is lost.
func TestListingFits(t *testing.T) {
	header := []string{"NAME", "PLATFORM", "MB", "MEASURES", "LAST", "TARGETS"}
	rows := [][]string{
		{"operations.container.lifecycle", "linux/amd64", "52.1", "create, start, kill and delete one container", "2026-11-29 01:03:51", "native oci/runc"},
		{"limits.cpu.scaling", "linux/arm64/v8", "–", strings.Repeat("a CPU limit raised step by step ", 9), "unknown", "containerd/runsc@platform=systrap podman/runc"},
	}
	for width := 60; width <= 200; width += 5 {
		var out bytes.Buffer
		must.Do(t, text.Listing(&out, header, rows, width))
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("at a width of %d: a line of %d columns: %s", width, n, line)
			}
		}
		words := map[string]int{}
		for word := range strings.FieldsSeq(out.String()) {
			words[word]--
		}
		for _, row := range append([][]string{header}, rows...) {
			for word := range strings.FieldsSeq(strings.Join(row, " ")) {
				words[word]++
			}
		}
		for word, count := range words {
			if count != 0 {
				t.Errorf("at a width of %d: %q is printed %d times less than given", width, word, count)
			}
		}
	}
}
