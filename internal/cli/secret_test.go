package cli

import (
	"os"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/peer"
)

// The programs that Touchstone starts inherit its environment, and so no secret.
func TestSecretLeavesTheEnvironment(t *testing.T) {
	t.Setenv(peer.SecretVariable, "a-secret-of-the-tests")
	app := New(System())
	if value, found := os.LookupEnv(peer.SecretVariable); found {
		t.Errorf("the environment still has %q", value)
	}
	if s, err := app.peerSecret(""); err != nil || s.Reveal() != "a-secret-of-the-tests" {
		t.Errorf("the secret is %q, %v", s.Reveal(), err)
	}
}
