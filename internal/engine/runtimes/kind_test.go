package runtimes

import (
	"bytes"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestAnswerIsBounded(t *testing.T) {
	var a Answer
	part := bytes.Repeat([]byte("x"), longestAnswer-1)
	for range 3 {
		if n, err := a.Write(part); n != len(part) || err != nil {
			t.Errorf("wrote %d bytes of %d: %v", n, len(part), err)
		}
	}
	if a.Len() != longestAnswer {
		t.Errorf("%d bytes are kept, want %d", a.Len(), longestAnswer)
	}
}

// The versions are from real runtimes, and from programs that resemble them.
func TestKindOf(t *testing.T) {
	for version, want := range map[string]string{
		"runc version 1.1.5+ds1":                           "runc",
		"crun version 1.8.1":                               "crun",
		"youki version: 0.7.0":                             "youki",
		"runsc version v0.0.0-20260905035102-160fafc42237": "runsc",
		"kata-runtime  : 3.2.0":                            "kata-runtime",
		"runcx version 1":                                  "",
		"my-runc version 1":                                "",
		"RUNC version 1":                                   "",
		"version 1.0 of runc":                              "",
		"":                                                 "",
	} {
		if got := KindOf(version); got.Name != want {
			t.Errorf("KindOf(%q) = %q, want %q", version, got.Name, want)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		target string
		want   []string
		reason string
	}{
		{"oci/runc", nil, ""},
		{"oci/runsc@platform=ptrace,overlay2=root:memory", []string{"--overlay2=root:memory", "--platform=ptrace"}, ""},
		{"oci/crun@cgroup-manager=systemd", []string{"--cgroup-manager=systemd"}, ""},
		{"oci/runc@root=/run/runc", nil, "the option root is set by Touchstone itself; leave it out"},
		{"oci/runc@log=x", nil, "the option log is set by Touchstone itself; leave it out"},
		{"oci/runc@log-format=text", nil, "the option log-format is set by Touchstone itself; leave it out"},
		{"oci/runsc@debug=true", nil, "the option debug is set by Touchstone itself; leave it out"},
		{"oci/runsc@debug-log=x", nil, "the option debug-log is set by Touchstone itself; leave it out"},
		{"oci/runc@rootless=true", nil, "the option rootless is set by Touchstone itself; leave it out"},
		{"oci/runsc@platform=kvm,root=x", nil, "the option root is set by Touchstone itself; leave it out"},
	} {
		parsed, err := target.Parse(tt.target)
		must.Do(t, err)
		got, err := Flags(parsed)
		if tt.reason == "" {
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("flags of %s = %q, %v; want %q", tt.target, got, err, tt.want)
			}
			continue
		}
		if !engine.Unsupported(err) || err.Error() != tt.target+": "+tt.reason {
			t.Errorf("flags of %s: %v; want %s", tt.target, err, tt.reason)
		}
	}
}
