package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// NodeDocument is the report of a node's run. It begins with a link to the page of the fleet.
func NodeDocument(r *report.Report, page string) *document.Document {
	d := runs.Document(r)
	d.Blocks = slices.Insert(d.Blocks, 0, document.Block(BackLink(r.Runs[0].Host.Node, page)))
	return d
}

// BackLink is the link from a page about a node to the page of its fleet.
func BackLink(node *result.Node, page string) document.Text {
	return document.Text{Text: fmt.Sprintf("All nodes of the cluster run %s; this is %s", node.Fleet, cmp.Or(node.Name, "one of them")), Link: page}
}
