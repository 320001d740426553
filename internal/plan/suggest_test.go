package plan

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"crun", "crun", 0},
		{"crn", "crun", 1},
		{"cruun", "crun", 1},
		{"crun", "runc", 2},
		{"tragets", "targets", 1},
		{"kitten", "sitting", 3},
		{"targets", "blocks", 6},
	} {
		if got := distance(c.a, c.b, 99); got != c.want {
			t.Errorf("from %q to %q it is %d, want %d", c.a, c.b, got, c.want)
		}
		if got := distance(c.b, c.a, 99); got != c.want {
			t.Errorf("from %q to %q it is %d, want %d", c.b, c.a, got, c.want)
		}
	}
	if got := distance("kitten", "sitting", 2); got != 2 {
		t.Errorf("beyond the limit it is %d, want the limit 2", got)
	}
}

func TestDidYouMean(t *testing.T) {
	candidates := []string{"oci/runc", "oci/crun", "native"}
	for name, want := range map[string]string{
		"oci/cruun": "did you mean oci/crun?",
		"nativ":     "did you mean native?",
		"kata":      "else",
		"":          "else",
	} {
		if got := didYouMean(name, candidates, "else"); got != want {
			t.Errorf("%q gives %q, want %q", name, got, want)
		}
	}
}
