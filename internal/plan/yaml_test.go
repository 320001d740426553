package plan

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestYAMLGolden(t *testing.T) {
	got := mustParse(t, "p", whole).YAML()
	golden := filepath.Join("testdata", "whole.golden.yaml")
	if *update {
		must.Do(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	must.Do(t, err)
	expect.Equal(t, "the result", string(want), string(got))
}

func TestYAMLKeepsEveryPlan(t *testing.T) {
	odd := mustParse(t, "p", "version: 1\n")
	odd.Name = `# "it's": {a: [b, &c, *d]} - ! | > % @ é 中`
	odd.Benchmarks = []Item{
		{Name: "5"},
		{Name: "1.5"},
		{Name: "true"},
		{Name: "null"},
		{Name: "-"},
		{Name: "0x1F"},
		{Name: "1_000"},
		{Name: "2026-01-01"},
		{Name: "a", Params: bench.Params{
			"null": "~", "true": "false", "y": "null", "n": "1e3", "on": ".inf", "a": "-", "b": "2%", "c": "[", "d": "'", "e": `"`, "f": `\`, "g": "#x",
			"h": "a:", "i": "0o17", "j": "!x", "k": "&x", "l": "*x", "m": "?", "o": "|", "p": "@x", "q": "`", "r": "<<", "s": "0b1", "t": "+1", "u": "12:30:45",
			"v": ":", "w": "---", "x": "...", "z": "=",
		}},
	}
	odd.Runtimes = map[string]target.Runtime{
		"1": {Path: "/1"}, "true": {Path: "/a b: c"}, "null": {Path: "/#x"}, "0x1": {Path: "/'\""}, "1.5": {Path: "/ #"}, "2026-01-01": {Path: "/é"}, "1e3": {Path: "/x\\"},
		"a-1": {Type: "a.-.1"}, "y": {Options: []target.Option{{Name: "1", Value: "true"}, {Name: "null", Value: "~"}, {Name: "x", Value: "{a:b}#"}}},
	}
	odd.Engines.Sockets = map[string]string{"null": "unix://'", "1e3": "/a b: c"}
	odd.Engines.Binaries = map[string]string{"true": "/#x"}
	odd.Targets = mustPatterns(t, "all", "*/runc", "containerd/*", "*/*", "null/*", "*/true@a=b", "*/*@1=null")
	for _, p := range []Plan{Quick(), mustParse(t, "p", whole), odd} {
		text := p.YAML()
		if diff := cmp.Diff(p, mustParse(t, "other", string(text)), same); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, text)
		}
	}
}

func TestPercentIsExact(t *testing.T) {
	for text, want := range map[string]Share{"2%": 0.02, "7%": 0.07, "0.5%": 0.005, "100%": 1, "12.5%": 0.125, "0.001%": 0.00001} {
		share, f := parsePercent(text)
		if f != nil || share != want {
			t.Errorf("%s is read as %v (%v), want %v", text, share, f, want)
		}
		if got := formatPercent(want); got != text {
			t.Errorf("%v is written %s, want %s", want, got, text)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		digits := random.IntN(1_000_000) + 1
		share := Share(float64(digits) / 1_000_000)
		if got, f := parsePercent(formatPercent(share)); f != nil || got != share {
			t.Fatalf("%v is written %s and read %v", share, formatPercent(share), got)
		}
	}
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || paths == nil {
		f.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must.Do(f, err)
		f.Add(text)
	}
	f.Add([]byte(whole))
	for _, c := range invalid {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("p", text)
		if err != nil {
			return
		}
		canonical := p.YAML()
		echo, err := Parse("other", canonical)
		if err != nil {
			t.Fatalf("the canonical plan is refused: %v\n%s", err, canonical)
		}
		if diff := cmp.Diff(p, echo, same); diff != "" {
			t.Fatalf("(-want +got):\n%s\n%s", diff, canonical)
		}
		_, _ = p.Resolve(testCatalogue()) // it must not panic on any input
	})
}
