package chaos

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/test/cells"
)

// attacks are the tests that attack Touchstone, by the package of their program. Each package has the attack, so that every change runs it.
var attacks = map[string][]string{
	"native": {"TestImageSeesNoProcessOfTheHost", "TestImageHasNoRightsOnTheHost", "TestUnprivileged"},
	"peer":   {"TestStrangers", "TestImpostors", "TestSilentStrangers", "TestFewWait"},
	"store":  {"TestSchema", "TestValuesAreLimited"},
	"turn":   {"TestSeizeFromOtherUsers", "TestForgedNamesAndMessages", "TestFullQueue"},
}

// TestAttacks runs the attacks beside bystanders. A defended attack leaves nothing and touches nothing foreign.
func TestAttacks(t *testing.T) {
	cells.Need(t, "chaos/attacks")
	onHost(t, 13, "attacks by programs of images, clients of touchstone peer, results files and other users", func(h *host) {
		h.bystanders()
		h.command("ip", "address", "add", "192.0.2.1/32", "dev", "lo") // netperf resolves no address on a host that has only 127.0.0.1
		h.watch()
		for program, tests := range attacks {
			for _, test := range tests {
				h.attack(program, test)
			}
		}
	})
}

// attack runs a test. It must pass: a skipped attack shows nothing.
func (h *host) attack(program, test string) {
	h.Helper()
	cmd := exec.Command(program+".test", "-test.v", "-test.run", "^"+test+"$", "-test.timeout", patience.String())
	cmd.Dir = h.newDir()
	out, err := cmd.CombinedOutput()
	h.tried(1)
	if err != nil || !strings.Contains(string(out), "\n--- PASS: "+test+" ") {
		h.wrong("%s of %s: %v\n%s", test, program, err, out)
	}
}
