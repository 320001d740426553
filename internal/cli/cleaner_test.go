package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// hostile has every kind of character that a terminal or a reader must not get: ASCII and C1 controls, a raw C1 byte, an incomplete
// character, and controls of bidirectional text.
const hostile = "a\x1b[2J\x1b]0;title\x07\r\x7f\u009b31m\x9b31m\u202eb\u2066c\u2069\u200f\u061c\xe2\x82"

// Invariant terminal.
func TestCleaner(t *testing.T) {
	for name, c := range map[string]struct {
		writer func(io.Writer) io.Writer
		text   string
		want   string
	}{
		"plain text stays":    {plainWriter, "é €\t中\U0001F600\n", "é €\t中\U0001F600\n"},
		"controls":            {plainWriter, hostile + "\n", "a\ufffd[2J\ufffd]0;title\ufffd\ufffd\ufffd\ufffd31m\ufffd31m\ufffdb\ufffdc\ufffd\ufffd\ufffd\ufffd\ufffd\n"},
		"no colours by text":  {plainWriter, "\x1b[31mred\x1b[0m\n", "\ufffd[31mred\ufffd[0m\n"},
		"colours of a report": {styledWriter, "\x1b[31mred\x1b[0m\x1b[2J\n", "\x1b[31mred\x1b[0m\ufffd[2J\n"},
		"strings of JSON":     {jsonWriter, "\"\u009b\u202e\x7f\"\n", `"\u009b\u202e\u007f"` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var output, bytewise bytes.Buffer
			if n, err := c.writer(clean(&output)).Write([]byte(c.text)); n != len(c.text) || err != nil {
				t.Errorf("Write gives %d, %v", n, err)
			}
			if output.String() != c.want {
				t.Errorf("got %q, want %q", output.String(), c.want)
			}
			if name == "colours of a report" { // a report is written at once
				return
			}
			w := c.writer(clean(&bytewise))
			for i := range len(c.text) {
				if _, err := w.Write([]byte{c.text[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if bytewise.String() != c.want {
				t.Errorf("byte by byte it is %q, want %q", bytewise.String(), c.want)
			}
		})
	}
}

func plainWriter(w io.Writer) io.Writer { return w }

// TestMessagesAreClean: no verb prints the control characters of its arguments, files and errors.
//
// Invariant terminal: The text of a program, plan, image, daemon or imported run cannot control the terminal or the page: all output passes one writer.
func TestMessagesAreClean(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TOUCHSTONE_CACHE", filepath.Join(dir, "cache"))
	file := filepath.Join(dir, "run.json")
	document := `{"schema_version": 1, "runs": [{"id": "a", "state": "\u001b[2J\u202e"}], "generator": "` + hostile + `"}`
	must.Do(t, os.WriteFile(file, []byte(document), 0o600))
	for _, args := range [][]string{
		{"image", "load", dir + "/" + hostile},
		{"image", "show", hostile},
		{"image", hostile},
		{"import", dir + "/" + hostile},
		{"import", file},
		{"report", hostile, "-d", dir + "/" + hostile},
		{"benchmark", "-f", dir + "/" + hostile},
		{"benchmark", "--targets", "fake/a@" + hostile},
		{"--" + hostile},
	} {
		var out bytes.Buffer
		if code := New(Environment{Stdout: &out, Stderr: &out}).Run(t.Context(), args); code == ExitOK || out.Len() == 0 {
			t.Errorf("%q: exit code %d, output %q", args, code, out.String())
		}
		for _, r := range out.String() {
			if controls(r) {
				t.Errorf("%q prints %q", args, out.String())
				break
			}
		}
	}
}

// TestLogHasNoCommands: no text of the output is a command of a service that runs the job, however the text is divided.
//
// Invariant foreign-text.
func TestLogHasNoCommands(t *testing.T) {
	for text, want := range map[string]string{
		"::error::x\n":                 ":\u200b:error::x\n",
		"a\n  ::warning::x\n":          "a\n  :\u200b:warning::x\n",
		"\t::add-mask::x\n":            "\t:\u200b:add-mask::x\n",
		"a ::b\n":                      "a ::b\n",
		":a::\n":                       ":a::\n",
		"std::vector\n":                "std::vector\n",
		"x ##[error]y\n":               "x ##\u200b[error]y\n",
		"x ##vso[task.setvariable]y\n": "x ##\u200bvso[task.setvariable]y\n",
		"##teamcity[x]\n":              "##\u200bteamcity[x]\n",
		"###[x]\n":                     "###\u200b[x]\n",
		"## heading # [x]\n":           "## heading # [x]\n",
	} {
		var output, bytewise bytes.Buffer
		if _, err := cleanLog(&output).Write([]byte(text)); err != nil || output.String() != want {
			t.Errorf("%q becomes %q, %v; want %q", text, output.String(), err, want)
		}
		w := cleanLog(&bytewise)
		for i := range len(text) {
			if _, err := w.Write([]byte{text[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if bytewise.String() != want {
			t.Errorf("byte by byte %q becomes %q, want %q", text, bytewise.String(), want)
		}
		// A file is not a log, and JSON keeps its text.
		var file, document bytes.Buffer
		if _, err := clean(&file).Write([]byte(text)); err != nil || file.String() != text {
			t.Errorf("%q becomes %q in a file, %v", text, file.String(), err)
		}
		var read string
		if err := json.NewEncoder(jsonWriter(cleanLog(&document))).Encode(text); err != nil || strings.Contains(document.String(), "##[") || strings.Contains(document.String(), "##vso") {
			t.Errorf("%q becomes %s, %v", text, document.String(), err)
		}
		if err := json.Unmarshal(document.Bytes(), &read); err != nil || read != text {
			t.Errorf("%q is %q in JSON, %v", text, read, err)
		}
	}
}
