package textfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/textfile"
)

func TestBlemishes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"version: 1\ntargets: [native, oci/runc]\n", ""},
		{"version:\u00a01\n", "1:9 no-break space"},
		{"a: [x,\u202fy]\n", "1:7 narrow no-break space"},
		{"a:\u2009b\r\nc:\u3000d\r\n", "1:3 thin space, 2:3 ideographic space"},
		{"a\u200b: b\n", "1:2 zero width space"},
		{"x: 1\n\ufeffversion: 1\n", "2:1 byte order mark"},
		{"a: b\u2028c: d", "1:5 U+2028"},
		{"a: b\u00adc", "1:5 soft hyphen"},
		{"ä: ö\u00a0ü\n", "1:5 no-break space"}, // columns count characters

		{"a: 'b\u00a0c'\n", ""},
		{"a: 'it''s\u00a0c'\n", ""},
		{"a: b # c\u00a0d\n", ""},
		{"# “a”\u00a0\n", ""},
		{"a: 'b\n  c\u00a0d'\ne:\u00a0f\n", "3:3 no-break space"},
		{"a: it's b\u00a0c\n", "1:10 no-break space"}, // an apostrophe opens no quotation

		{"a:\n\tb: c\n", "2:1 a tab"},
		{"a:\n\t\n\tb\n", "3:1 a tab"},
		{"a:\tb\n", ""},
		{"a: 'b\n\tc'\n", ""},

		{"name: “my plan”\n", "1:7 “"},
		{"targets: [‘native’, „oci/runc“]\n", "1:11 ‘, 1:21 „"},
		{"- «a»\n", "1:3 «"},
		{"summary: the user’s “program”\n", ""},

		{"targets:\n  – native\n", "2:3 –"},
		{"blocks: −5\n", "1:9 −"},
		{"summary: a – b\n", ""},
	} {
		var got []string
		for _, b := range textfile.Blemishes(tt.text) {
			got = append(got, fmt.Sprintf("%d:%d %s", b.Line, b.Column, b.Problem))
			if b.Advice == "" {
				t.Errorf("%q has no advice", b.Problem)
			}
		}
		want := strings.Split(tt.want, ", ")
		if tt.want == "" {
			want = nil
		}
		if len(got) != len(want) {
			t.Errorf("%q has %q, want %q", tt.text, got, want)
			continue
		}
		for i := range want {
			position, name, _ := strings.Cut(want[i], " ")
			if !strings.HasPrefix(got[i], position+" ") || !strings.Contains(got[i], name) {
				t.Errorf("%q has %q, want %q", tt.text, got, want)
			}
		}
	}
	for _, b := range textfile.Blemishes("a:\u00a0b") {
		if !strings.Contains(b.Advice, `sed -i 's/\xc2\xa0/ /g' FILE`) {
			t.Errorf("the advice is %s", b.Advice)
		}
	}
}
