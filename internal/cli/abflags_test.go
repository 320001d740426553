package cli

import "testing"

// The value of an option may look like a path.
func TestBuildsOfFlags(t *testing.T) {
	for _, c := range []struct{ text, target, path string }{
		{"oci/runc", "oci/runc", ""},
		{"oci/runc@log-level=debug=/old dir/runc", "oci/runc@log-level=debug", "/old dir/runc"},
		{"oci/runsc@config=/etc/x", "oci/runsc@config=/etc/x", ""},
		{"oci/runsc@config=/etc/x=/bin/y", "oci/runsc@config=/etc/x", "/bin/y"},
	} {
		if b, err := parseBuild("--a", c.text); err != nil || b.Target.String() != c.target || b.Path != c.path {
			t.Errorf("%s is %+v, %v", c.text, b, err)
		}
	}
	if _, err := parseBuild("--a", "native=/x"); err == nil || codeOf(err) != ExitUsage {
		t.Errorf("native has a binary: got error %v, want an error of usage", err)
	}
}
