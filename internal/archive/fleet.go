package archive

import (
	"context"
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/store"
)

// Fleet returns the IDs of the runs of a fleet, in the order of their nodes' starts. ref is the ID of a fleet, the unambiguous beginning of one that no run has, or
// [store.Latest] if the newest run belongs to a fleet. Other references have no runs. A fleet of one node has none either, because the report of its run says more.
func Fleet(ctx context.Context, db *store.Store, ref string) ([]string, error) {
	runs, err := db.Runs(ctx)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	hasPrefix := func(id string) bool { return len(id) >= len(ref) && strings.EqualFold(id[:len(ref)], ref) }
	var fleets []string
	members := map[string][]string{}
	isRun := false
	for i := len(runs) - 1; i >= 0; i-- {
		isRun = isRun || hasPrefix(runs[i].ID)
		if node := runs[i].Node; node != nil {
			if members[node.Fleet] == nil {
				fleets = append(fleets, node.Fleet)
			}
			members[node.Fleet] = append(members[node.Fleet], runs[i].ID)
		}
	}
	fleet := ref
	if node := runs[0].Node; ref == store.Latest && node != nil {
		fleet = node.Fleet
	}
	if members[fleet] == nil && !isRun && ref != "" {
		var matches []string
		for _, id := range fleets {
			if hasPrefix(id) {
				matches = append(matches, id)
			}
		}
		if len(matches) > 1 {
			return nil, fmt.Errorf("%q is the beginning of several fleets: %s; name one of them", ref, strings.Join(matches, ", "))
		}
		fleet = strings.Join(matches, "")
	}
	if len(members[fleet]) < 2 {
		return nil, nil
	}
	return members[fleet], nil
}
