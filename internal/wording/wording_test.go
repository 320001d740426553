package wording

import "testing"

// A count has the plural of its noun, and one thing has none. A list has commas, and an "and" before its last name.
func TestWording(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Counted(1, "CPU"), "1 CPU"},
		{Counted(0, "CPU"), "0 CPUs"},
		{Counted(2, "family"), "2 families"},
		{Counted(3, "process"), "3 processes"},
		{Clause("node a is not measured: it is cordoned; uncordon it"), "node a is not measured"},
		{Capital(""), ""},
		{Capital("the clock"), "The clock"},
		{Capital("élan"), "Élan"},
		{Capital("k8s/runc has no value"), "k8s/runc has no value"},
		{Listed(nil), ""},
		{Listed([]string{"a"}), "a"},
		{Listed([]string{"a", "b"}), "a and b"},
		{Listed([]string{"a", "b", "c"}), "a, b and c"},
		{Shortlist([]string{"a", "b", "c", "d"}, "nodes"), "a, b, c, d"},
		{Shortlist([]string{"a", "b", "c", "d", "e"}, "nodes"), "a, b, c and 2 more nodes"},
	} {
		if tt.got != tt.want {
			t.Errorf("the words are %q, want %q", tt.got, tt.want)
		}
	}
}
