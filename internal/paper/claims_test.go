package paper

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// TestClaims checks that each claim is about existing benchmarks, metrics, parameters and targets, and that its margin has a reason.
func TestClaims(t *testing.T) {
	for _, file := range []string{"espe.yaml", "nishimura.yaml", "wang.yaml", "sateri.yaml"} {
		var p Paper
		must.Do(t, p.readClaims(file))
		if len(p.Claims) < 10 {
			t.Errorf("%s has %d claims, want at least 10", file, len(p.Claims))
		}
		names := map[string]bool{}
		for _, f := range p.Figures {
			if problem := problemOfValues(f.Of); names[f.Name] || f.Title == "" || len(f.Of) == 0 || problem != "" {
				t.Errorf("%s: %s has no title, values or name of its own, or %s", file, f.Name, problem)
			}
			names[f.Name] = true
		}
		for _, c := range p.Claims {
			if names[c.Name] {
				t.Errorf("%s: two claims are named %s", file, c.Name)
			}
			names[c.Name] = true
			if problem := problemOf(c); problem != "" {
				t.Errorf("%s: claim %s %s", file, c.Name, problem)
			}
		}
	}
}

func problemOf(c Claim) string {
	switch {
	case c.Text == "" || c.Place == "" || len(c.Of) == 0 || len(c.Compared()) == 0:
		return "has no text, place, value or target"
	case !slices.Contains([]Relation{Better, Worse, Similar}, c.Relation):
		return "has the unknown relation " + string(c.Relation)
	case c.Margin < 1:
		return "has a margin below 1"
	case c.Margin > 1 && c.Note == "":
		return "has a margin without a note"
	case c.Arch != "" && c.Arch != "amd64" && c.Arch != "arm64":
		return "is about the unknown architecture " + c.Arch
	}
	for _, pair := range c.Compared() {
		for _, name := range pair {
			if _, err := target.Parse(name); err != nil {
				return err.Error()
			}
		}
	}
	for _, ref := range c.Of {
		b, _ := catalogue.Catalogue{}.Lookup(ref.Benchmark)
		index := slices.IndexFunc(b.Metrics, func(m result.Metric) bool { return m.Name == ref.Metric })
		if index >= 0 && b.Metrics[index].DerivedFrom != "" {
			return "names the derived metric " + ref.Metric + ", which has no ratio"
		}
	}
	return problemOfValues(c.Of)
}

func problemOfValues(values []Of) string {
	for _, ref := range values {
		b, ok := catalogue.Catalogue{}.Lookup(ref.Benchmark)
		if !ok {
			return "names the unknown benchmark " + ref.Benchmark
		}
		if _, err := b.Resolve(ref.Params, false); err != nil {
			return err.Error()
		}
		has := slices.ContainsFunc(b.Monitored().Metrics, func(m result.Metric) bool { return m.Name == ref.Metric })
		if !has && ref.Unmeasured == "" {
			return "names the unknown metric " + ref.Metric
		}
	}
	return ""
}

func TestCompared(t *testing.T) {
	c := Claim{Targets: []string{"a", "b"}, Others: []string{"c", "d"}, Pairs: [][2]string{{"e", "f"}}}
	want := [][2]string{{"a", "c"}, {"a", "d"}, {"b", "c"}, {"b", "d"}, {"e", "f"}}
	if got := c.Compared(); !slices.Equal(got, want) {
		t.Errorf("the comparisons are %v, want %v", got, want)
	}
}
