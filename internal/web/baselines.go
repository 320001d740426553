package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// baselines lists the baselines.
func (s *server) baselines(ctx context.Context, db *store.Store, _ *http.Request) (view, error) {
	return view{address: "/baselines", document: func() (*document.Document, error) {
		list, err := db.Baselines(ctx)
		if err != nil {
			return nil, err
		}
		l := newListing("baselines", "Baselines", "baseline", "saved", "runs", "machines", "targets", "comparison")
		l.blocks = []document.Block{document.Text{Text: "touchstone baseline save NAME keeps a copy of runs under a name."}}
		for _, b := range list {
			var machines, targets []string
			var ids document.Cell
			for _, r := range b.Runs {
				machines, targets = append(machines, r.Machine), append(targets, r.Targets...)
				ids = append(ids, document.Span{Text: r.ID + ", " + wording.Counted(r.Trials, "trial")})
			}
			// Without an escape a page refuses the link for its colon.
			address := "compare?a=" + url.QueryEscape(archive.BaselinePrefix+b.Name) + "&b=" + store.Latest
			l.add(plain(b.Name), plain(shownTime(b.Saved)), ids, plain(joined(machines)), plain(joined(targets)), link("with the newest run", address))
		}
		return l.document(list), nil
	}}, nil
}

// joined joins the different texts of a list.
func joined(texts []string) string {
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ", ")
}
