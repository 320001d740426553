package html_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/html"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

func TestReproductionGolden(t *testing.T) {
	var b bytes.Buffer
	if err := html.WriteReproduction(&b, reporttest.Study(), []string{"report-study.html"}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	golden(t, "testdata/study.golden.html", page)
	if strings.Contains(page, "<b>nicer") || strings.Contains(page, "\x1b") || strings.Contains(page, "<script") {
		t.Error("text of the study is not escaped")
	}
	if claims, tables := strings.Index(page, `id="claims"`), strings.Index(page, `id="table-1"`); claims < 0 || tables < claims {
		t.Error("the claims are not before the tables")
	}
}
