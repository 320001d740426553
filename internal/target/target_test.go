package target_test

import (
	"errors"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestParsePrintsCanonically(t *testing.T) {
	for in, want := range map[string]string{
		"native":   "native",
		"oci/crun": "oci/crun",
		"oci/runsc@platform=systrap,network=none": "oci/runsc@network=none,platform=systrap",
		"containerd/io.containerd.kata.v2":        "containerd/io.containerd.kata.v2",
		"oci/runsc@overlay2=root:memory":          "oci/runsc@overlay2=root:memory",
	} {
		got, err := target.Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		if got.String() != want {
			t.Errorf("Parse(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		"", "oci", "oci/", "/runc", "native/runc", "oci/runc@", "oci/runc@platform", "oci/runc@platform=",
		"oci/runc@=x", "oci/../../bin/sh", "oci/-runc", "oci/runsc@a=1,a=2", "oci/runsc@a=b c", "oci/runsc@a=b\x00",
	} {
		got, err := target.Parse(in)
		var syntax *target.SyntaxError
		if !errors.As(err, &syntax) || syntax.Input != in {
			t.Errorf("Parse(%q) = %q, %v; want a SyntaxError that names it", in, got, err)
		}
	}
}

func TestWithLeavesTheReceiverAlone(t *testing.T) {
	a, err := target.Parse("oci/runsc@network=none,platform=ptrace")
	must.Do(t, err)
	b := a.With("platform", "systrap")
	if a.String() != "oci/runsc@network=none,platform=ptrace" || b.String() != "oci/runsc@network=none,platform=systrap" {
		t.Errorf("With changed %q to %q", a, b)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("oci/runsc@platform=systrap,network=none")
	f.Add("native")
	f.Fuzz(func(t *testing.T, s string) {
		first, err := target.Parse(s)
		if err != nil {
			return
		}
		echo, err := target.Parse(first.String())
		if err != nil || echo.String() != first.String() {
			t.Errorf("Parse(%q).String() = %q, which parses to %q, %v", s, first, echo, err)
		}
	})
}
