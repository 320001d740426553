package document_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// TestWithoutDetails: other formats than a page have neither details, titles of frames, items above a limit nor details of cells, and the
// document keeps them.
func TestWithoutDetails(t *testing.T) {
	items := func(texts ...string) (items []document.Item) {
		for _, text := range texts {
			items = append(items, document.Item{Span: document.Span{Text: text, Tone: document.Alarm}})
		}
		return items
	}
	build := func() []document.Block {
		return []document.Block{
			document.Section{ID: "plots", Detail: true},
			document.Section{Title: "Suite", Frame: true, Blocks: []document.Block{document.Section{ID: "inner"}, document.Section{Detail: true}}},
			document.List{Items: items("a", "b", "c"), Most: 2, More: "and %d more"},
			document.List{Items: items("a", "b", "c", "d"), Most: 2, More: "and %d more"},
			document.Table{Rows: [][]document.Cell{{nil, {{Text: "value"}, {Text: "n = 10", Detail: true}, {Text: "faint"}}}}},
		}
	}
	blocks := build()
	want := []document.Block{
		document.Section{ID: "inner"},
		document.List{Items: items("a", "b", "c"), Most: 2, More: "and %d more"},
		document.List{Items: items("a", "b", "and 2 more"), Most: 2, More: "and %d more"},
		document.Table{Rows: [][]document.Cell{{nil, {{Text: "value"}, {Text: "faint"}}}}},
	}
	if diff := cmp.Diff(want, document.WithoutDetails(blocks)); diff != "" {
		t.Errorf("the blocks differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(build(), blocks); diff != "" {
		t.Errorf("the document changed (-want +got):\n%s", diff)
	}
}

// TestDrawn: a page has what Draw returns behind the other blocks of a section, and no other format calls Draw.
func TestDrawn(t *testing.T) {
	calls := 0
	plot := document.Section{Detail: true, Blocks: []document.Block{document.Text{Text: "caption"}}, Draw: func() []document.Block {
		calls++
		return []document.Block{document.Section{ID: "plot"}}
	}}
	blocks := []document.Block{document.Section{Title: "Suite", Blocks: []document.Block{plot}}}
	document.WithoutDetails(blocks)
	document.WithoutDetails(blocks[0].(document.Section).Blocks)
	if calls != 0 {
		t.Error("a format without details has drawn")
	}
	want := []document.Block{document.Section{Title: "Suite", Blocks: []document.Block{document.Section{Detail: true, Blocks: []document.Block{
		document.Text{Text: "caption"}, document.Section{ID: "plot", Blocks: []document.Block{}},
	}}}}}
	if diff := cmp.Diff(want, document.Drawn(blocks)); diff != "" {
		t.Errorf("the blocks differ (-want +got):\n%s", diff)
	}
}
