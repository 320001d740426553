package text_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/text"
)

func TestReproductionGolden(t *testing.T) {
	for name, opts := range map[string]text.Options{"study": {Width: 100}, "study-color": {Width: 80, Color: true}} {
		var b bytes.Buffer
		if err := text.WriteReproduction(&b, reporttest.Study(), opts); err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".golden"
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s differs (-want +got); if it should, run go test -update:\n%s", file, diff)
		}
		if !opts.Color && strings.Contains(b.String(), "\x1b") {
			t.Error("text of the study reaches the terminal")
		}
	}
}
