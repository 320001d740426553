package archive

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// Fleet returns the runs of a fleet, the first start first. ref is the ID of a fleet, the beginning of one fleet's ID and of no run outside
// it, or [store.Latest] if the newest run belongs to a fleet. Other references have no runs, among them the beginning of a single run's ID. A fleet of one node has none either, because
// the report of its run says more.
func Fleet(ctx context.Context, db *store.Store, ref string) ([]store.Summary, error) {
	runs, err := db.Runs(ctx)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	slices.Reverse(runs)
	var fleets []string
	members := map[string][]store.Summary{}
	for _, r := range runs {
		if r.Node != nil {
			if members[r.Node.Fleet] == nil {
				fleets = append(fleets, r.Node.Fleet)
			}
			members[r.Node.Fleet] = append(members[r.Node.Fleet], r)
		}
	}
	fleet := ref
	if newest := runs[len(runs)-1].Node; ref == store.Latest && newest != nil {
		fleet = newest.Fleet
	}
	if members[fleet] == nil && ref != "" {
		hasPrefix := func(id string) bool { return len(id) >= len(ref) && strings.EqualFold(id[:len(ref)], ref) }
		ids := lists.Filter(lists.Convert(runs, func(r *store.Summary) string { return r.ID }), hasPrefix)
		matches := lists.Filter(fleets, hasPrefix)
		isOutside := func(id string) bool {
			return !slices.ContainsFunc(members[matches[0]], func(r store.Summary) bool { return r.ID == id })
		}
		switch {
		case len(matches) == 0 || len(ids) == 1 || len(matches) == 1 && slices.ContainsFunc(ids, isOutside):
			return nil, nil
		case len(matches) > 1:
			return nil, fmt.Errorf("%q is the beginning of several fleets: %s; name one of them", ref, strings.Join(matches, ", "))
		}
		fleet = matches[0]
	}
	if len(members[fleet]) < 2 {
		return nil, nil
	}
	return members[fleet], nil
}
