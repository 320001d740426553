package result

import (
	"fmt"
	"strings"
	"time"
)

// budgetCaveat is the beginning of a caveat about a spent budget. The budget and the outcome follow.
const budgetCaveat = "the budget of "

// BudgetCaveat is the caveat of a run whose budget ended before its plan: "the budget of 5m0s ended after 4 of 10 blocks".
func BudgetCaveat(budget time.Duration, outcome string) string {
	return fmt.Sprintf("%s%v ended %s", budgetCaveat, budget, outcome)
}

// IsBudgetCaveat reports whether BudgetCaveat made a caveat. Fewer blocks widen the intervals of a run, and bias nothing.
func IsBudgetCaveat(caveat string) bool {
	rest, ok := strings.CutPrefix(caveat, budgetCaveat)
	budget, _, hasOutcome := strings.Cut(rest, " ended ")
	_, err := time.ParseDuration(budget)
	return ok && hasOutcome && err == nil
}
