package bench_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
)

var sized = bench.Benchmark{
	Name: "test.memory.size",
	Params: []bench.Param{
		{Name: "size", Quick: "1", Paper: "64", Check: bench.IntRange(1, 100)},
		{Name: "mode", Quick: "cold", Paper: "warm", Check: bench.OneOf("cold", "warm")},
		{Name: "label", Quick: "", Paper: "", Canonical: func(value string) string { return strings.ReplaceAll(value, "_", " ") }},
	},
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		name  string
		given bench.Params
		paper bool
		want  string
	}{
		{"quick values", nil, false, "label= mode=cold size=1"},
		{"the paper's", nil, true, "label= mode=warm size=64"},
		{"another spelling", bench.Params{"label": "a_b"}, false, "label=a b mode=cold size=1"},
		{"given ones go first", bench.Params{"size": "7", "label": "a b"}, true, "label=a b mode=warm size=7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			original := bench.Params{}
			for k, v := range tt.given {
				original[k] = v
			}
			got, err := sized.Resolve(tt.given, tt.paper)
			if err != nil || got.String() != tt.want {
				t.Errorf("Resolve() = %s, %v; want %s", got, err, tt.want)
			}
			if len(tt.given) > 0 && !cmp.Equal(original, tt.given) {
				t.Errorf("Resolve changed its argument to %v", tt.given)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, tt := range []struct {
		benchmark bench.Benchmark
		given     bench.Params
		want      string
	}{
		{sized, bench.Params{"size": "0"}, "parameter size=0 of test.memory.size: must be a whole number from 1 to 100"},
		{sized, bench.Params{"size": "101"}, "parameter size=101 of test.memory.size: must be a whole number from 1 to 100"},
		{sized, bench.Params{"size": "1e1"}, "parameter size=1e1 of test.memory.size: must be a whole number from 1 to 100"},
		{sized, bench.Params{"size": ""}, "parameter size= of test.memory.size: must be a whole number from 1 to 100"},
		{sized, bench.Params{"mode": "Warm"}, "parameter mode=Warm of test.memory.size: must be one of cold, warm"},
		{sized, bench.Params{"sise": "1"}, "parameter sise=1 of test.memory.size: unknown name; the benchmark has size, mode, label"},
		{bench.Benchmark{Name: "test.a.b"}, bench.Params{"x": "1"}, "parameter x=1 of test.a.b: unknown name; the benchmark has no parameters"},
	} {
		got, err := tt.benchmark.Resolve(tt.given, false)
		var paramErr *bench.ParamError
		if !errors.As(err, &paramErr) || err.Error() != tt.want || got != nil {
			t.Errorf("Resolve(%v) = %v, %v; want %s", tt.given, got, err, tt.want)
		}
	}
}

// The text of parameters identifies a cell, so it must not depend on their order.
func TestStringOfParamsIsOrdered(t *testing.T) {
	params := bench.Params{"zeta": "1", "alpha": "2", "mid": ""}
	for range 20 { // the order of a map is random
		if got := params.String(); got != "alpha=2 mid= zeta=1" {
			t.Fatalf("String() = %q", got)
		}
	}
	if got := (bench.Params{}).String(); got != "" {
		t.Errorf("String() of none = %q", got)
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		filter, name string
		want         bool
	}{
		{"scalability", "scalability.runtime.5", true},
		{"scalability.runtime", "scalability.runtime.5", true},
		{"scalability.runtime.5", "scalability.runtime.5", true},
		{"scalability.runtime.5", "scalability.runtime.50", false},
		{"scalability.run", "scalability.runtime.5", false},
		{"scalability.runtime.5.x", "scalability.runtime.5", false},
		{"", "scalability.runtime.5", false},
		{"runtime", "scalability.runtime.5", false},
	} {
		if got := bench.Matches(tt.filter, tt.name); got != tt.want {
			t.Errorf("Matches(%q, %q) = %v", tt.filter, tt.name, got)
		}
	}
}

func TestTypedParams(t *testing.T) {
	params := bench.Params{"mib": "64", "duration": "2s", "on": "bind"}
	if n, d := params.Int("mib"), params.Duration("duration"); n != 64 || d != 2*time.Second {
		t.Errorf("Int = %d and Duration = %v, want 64 and 2s", n, d)
	}
	for _, name := range []string{"on", "none"} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, name) {
					t.Errorf("Int of %s: %s", name, text)
				}
			}()
			params.Int(name)
		}()
	}
}
