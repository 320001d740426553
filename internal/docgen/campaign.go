package docgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Campaign records the results of the adversarial campaign, test/chaos. It is stored beside the pages, so that docs/reliability.md can be generated
// without a campaign.
type Campaign struct {
	Machine string `json:"machine"`
	Tool    string `json:"tool"`
	Date    string `json:"date"`
	Cases   []Case `json:"cases"`
}

// Case is the result of one case. Several cases may have the number of one case of the campaign.
type Case struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Tries  int    `json:"tries"`
	// Lost counts committed trials that are not in the database any more.
	Lost int `json:"lost"`
	// Left counts the resources that are on the host after the case and were not there before.
	Left int `json:"left"`
	// Touched counts the resources of others that are missing or changed after the case.
	Touched int `json:"touched"`
	// Fails has the first reason why the case does not reach its goal.
	Fails string `json:"fails,omitempty"`
	// Skipped has the reason why the case did not run.
	Skipped string `json:"skipped,omitempty"`
}

// WithCampaign returns a page with the table of a campaign.
func WithCampaign(page, campaign []byte) ([]byte, error) {
	var c Campaign
	if err := json.Unmarshal(campaign, &c); err != nil {
		return nil, fmt.Errorf("read the results of the campaign: %w", err)
	}
	if len(c.Cases) == 0 {
		return nil, errors.New("read the results of the campaign: there is no case; run make chaos")
	}
	return fill(page, "<!-- campaign -->\n", c.table())
}

func (c Campaign) table() string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nSeen on %s, by Touchstone %s on %s.\n\n", c.Machine, c.Tool, c.Date)
	w.WriteString("| case | | tries | lost trials | leftovers | foreign objects touched | result |\n|---:|---|---:|---:|---:|---:|---|\n")
	cases := slices.Clone(c.Cases)
	slices.SortStableFunc(cases, func(a, b Case) int { return a.Number - b.Number })
	for _, row := range cases {
		if row.Skipped != "" {
			fmt.Fprintf(&w, "| %d | %s | | | | | skipped: %s |\n", row.Number, cell(row.Name), cell(row.Skipped))
			continue
		}
		outcome := "passed"
		if row.Fails != "" {
			outcome = "failed: " + cell(strings.Join(strings.Fields(row.Fails), " "))
		}
		fmt.Fprintf(&w, "| %d | %s | %d | %d | %d | %d | %s |\n", row.Number, cell(row.Name), row.Tries, row.Lost, row.Left, row.Touched, outcome)
	}
	w.WriteString("\n")
	return w.String()
}
