package docgen_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/docgen"
	"github.com/touchstone-bench/touchstone/internal/must"
)

var campaign = flag.String("campaign", "", "a file with the results of a campaign; see scripts/chaos.sh")

func TestCampaignIsFresh(t *testing.T) {
	path := filepath.Join("testdata", "campaign.json")
	if *campaign != "" {
		text, err := os.ReadFile(*campaign)
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
		must.Do(t, err)
	}
	text, err := os.ReadFile(path)
	must.Do(t, err)
	file := filepath.Join(docs, "reliability.md")
	page, err := os.ReadFile(file)
	must.Do(t, err)
	want, err := docgen.WithCampaign(page, text)
	must.Do(t, err)
	compare(t, file, want)
}

func TestCampaignTable(t *testing.T) {
	const page = "<!-- campaign -->\n<!-- end -->\n"
	got, err := docgen.WithCampaign([]byte(page), []byte(`{"machine": "a CPU", "tool": "v9", "date": "2030-01-02", "cases": [
		{"number": 9, "name": "kills", "tries": 1000},
		{"number": 2, "name": "lies", "tries": 4, "lost": 1, "left": 2, "touched": 3, "fails": "a | b\n c"},
		{"number": 5, "name": "no FUSE", "skipped": "no device"}]}`))
	must.Do(t, err)
	for _, want := range []string{
		"Seen on a CPU, by Touchstone v9 on 2030-01-02.",
		"|---|\n| 2 | lies | 4 | 1 | 2 | 3 | failed: a \\| b c |\n| 5 | no FUSE | | | | | skipped: no device |\n| 9 | kills | 1000 | 0 | 0 | 0 | passed |\n\n<!-- end -->",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, bad := range []string{`{"cases": []}`, `[]`} {
		if _, err := docgen.WithCampaign([]byte(page), []byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if _, err := docgen.WithCampaign([]byte("a page"), []byte(`{"cases": [{}]}`)); err == nil {
		t.Error("a page without a place for the table is accepted")
	}
}
