package result_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/result"
)

func TestWhy(t *testing.T) {
	for _, tt := range []struct{ reason, output, want string }{
		{"exit code 127", "starting\nsh: cat: not found\n", "exit code 127; the output ends with: sh: cat: not found"},
		{"exit code 1", "{\n \"error\": 5\n}\n\n", "exit code 1; the output ends with: \"error\": 5"},
		{"exit code 1", "50%\r100%\r\n", "exit code 1; the output ends with: 50% 100%"},
		{"exit code 1", "\x1b[31mno\x1b]0;x\a\u202e\xff\n", "exit code 1; the output ends with: \ufffd[31mno\ufffd]0;x\ufffd\ufffd\ufffd"},
		{"exit code 1", strings.Repeat("ä", 500), "exit code 1; the output ends with: " + strings.Repeat("ä", 119) + "…"},
		{`the line "rate: 5" has no unit`, "rate: 5\n", `the line "rate: 5" has no unit`},
		{"exit code 1", "\n{}\n", "exit code 1"},
		{"", "all is well\n", ""},
	} {
		trial := result.Trial{Reason: tt.reason, Output: tt.output}
		if got := trial.Why(); got != tt.want {
			t.Errorf("%q with %q is %q, want %q", tt.reason, tt.output, got, tt.want)
		}
	}
}

func FuzzWhy(f *testing.F) {
	f.Add("sh: cat: not found\n\x1b[2J")
	f.Fuzz(func(t *testing.T, output string) {
		trial := result.Trial{Reason: "exit code 1", Output: output}
		text := trial.Why()
		if strings.ContainsFunc(text, unicode.IsControl) || utf8.RuneCountInString(text) > 200 {
			t.Errorf("%q", text)
		}
	})
}
