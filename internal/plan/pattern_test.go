package plan

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestPatternsSelect(t *testing.T) {
	var found []target.Target
	for _, name := range []string{
		"native", "oci/runc", "oci/runsc", "oci/runsc@platform=kvm", "oci/runsc@platform=ptrace", "containerd/runc", "containerd/runsc", "containerd/runsc@platform=kvm", "crio/runc",
	} {
		found = append(found, mustTarget(t, name))
	}
	for pattern, want := range map[string]string{
		"all":                          "native oci/runc oci/runsc containerd/runc containerd/runsc crio/runc",
		"*/*":                          "oci/runc oci/runsc containerd/runc containerd/runsc crio/runc",
		"*/runc":                       "oci/runc containerd/runc crio/runc",
		"containerd/*":                 "containerd/runc containerd/runsc",
		"*/runsc@platform=ptrace":      "oci/runsc@platform=ptrace containerd/runsc@platform=ptrace",
		"*/runsc@platform=kvm,debug=x": "oci/runsc@debug=x,platform=kvm containerd/runsc@debug=x,platform=kvm",
		"crio/*@a=b":                   "crio/runc@a=b",
		"*/crun":                       "",
		"podman/*":                     "",
		"native":                       "native",
		"oci/runsc@platform=ptrace":    "oci/runsc@platform=ptrace",
		"oci/run":                      "",
	} {
		p := mustPatterns(t, pattern)[0]
		var got []string
		for _, f := range found {
			if match, ok := p.Select(f); ok {
				got = append(got, match.String())
			}
		}
		expect.Equal(t, pattern, want, strings.Join(got, " "))
		if _, exact := p.Exact(); exact == (pattern == "all" || strings.Contains(pattern, "*")) {
			t.Errorf("%s is exact: %t", pattern, exact)
		}
	}
	if got := found[5].String(); got != "containerd/runc" {
		t.Errorf("Select has changed what was found to %s", got)
	}
}

func FuzzParsePattern(f *testing.F) {
	for _, s := range []string{"all", "*/*", "*/runc@a=b", "containerd/*", "native", "*", "*/", "/*", "x/*y", "all/x", "*/x/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, problem := parsePattern(s)
		if problem != nil {
			if !strings.Contains(problem.message, quote(s)) {
				t.Errorf("the error of %q does not show it: %s", s, problem.message)
			}
			return
		}
		echo, problem := parsePattern(p.String())
		if problem != nil || echo.String() != p.String() {
			t.Errorf("%q is %s, which is read as %s (%v)", s, p, echo, problem)
		}
	})
}
