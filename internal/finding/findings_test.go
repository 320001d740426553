package finding

import "testing"

// Every comparison of several runs is counted once.
func TestAgreementOfRuns(t *testing.T) {
	pair, first, second := []int{0, 1}, []int{0}, []int{1}
	base := []evidence{
		{better: pair}, {worse: pair}, {worse: pair}, {better: first, worse: second}, {better: first, none: second}, {none: pair},
	}
	for _, c := range []struct {
		name string
		all  []evidence
		want string
	}{
		{"no comparison", nil, ""},
		{"no mixed verdict", base, "Two runs or more share 6 comparisons with the baseline: 3 show the same difference in each run, 1 opposite ones, " +
			"1 a difference in some runs only, and 1 none, which is no proof of equality."},
		{
			"mixed verdicts", append(base, evidence{mixed: pair}, evidence{mixed: first, none: second}, evidence{mixed: first, better: second}),
			"Two runs or more share 9 comparisons with the baseline: 3 show the same difference in each run, 1 opposite ones, " +
				"3 with parts that differ in both directions, 1 a difference in some runs only, and 1 none, which is no proof of equality.",
		},
	} {
		if got := agreement(c.all); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}
