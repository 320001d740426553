package textfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Kind is a kind of Touchstone's files, or of the files that it imports.
type Kind string

// The files that a user gives to Touchstone.
const (
	Plan       Kind = "a plan"
	Runtimes   Kind = "a file of runtimes"
	Gates      Kind = "a file of gates"
	Counts     Kind = "a file of expected counts"
	Export     Kind = "an export"
	Theirs     Kind = "a file in the form of TouchStone"
	Hyperfine  Kind = "a file of hyperfine"
	Critest    Kind = "a file of critest"
	GoBench    Kind = "benchmarks of Go"
	Selfchecks Kind = "the stored selfchecks"
	Lock       Kind = "a list of packages"
	Database   Kind = "a results database"
)

// command returns the command that takes a file of the kind.
func (k Kind) command() string {
	switch k {
	case Plan:
		return "touchstone benchmark -f FILE executes it"
	case Runtimes:
		return "Touchstone reads it as runtimes.yaml in the configuration folder"
	case Gates:
		return "touchstone compare A B --gates FILE takes it"
	case Counts:
		return "touchstone counts check FILE compares a runtime with it"
	case Export, Theirs, Hyperfine, Critest, GoBench:
		return "touchstone import FILE adds its runs to the results"
	case Selfchecks:
		return "touchstone selfcheck --show prints it"
	case Lock:
		return "touchstone image build --lock FILE takes it"
	case Database:
		return "" // its first bytes name it, with a command
	}
	return ""
}

// form is a form that is recognised by its first bytes or by an expression.
type form struct {
	start      string
	expression *regexp.Regexp
	name, how  string
}

const sqlite = "SQLite format 3\x00"

// packed are the forms of binary files. None of them is text.
var packed = []form{
	{start: sqlite, name: "a database of SQLite, as touchstone.db with the results", how: "touchstone report -d FOLDER reads the touchstone.db in a folder, compare takes the file, and touchstone export -d FOLDER writes its runs as JSON"},
	{start: "\x28\xb5\x2f\xfd", name: "a file of zstd", how: "unpack it with zstd -d FILE"},
	{start: "\xfd7zXZ\x00", name: "a file of xz", how: "unpack it with xz -d FILE"},
	{start: "BZh", name: "a file of bzip2", how: "unpack it with bzip2 -d FILE"},
	{start: "\x04\x22\x4d\x18", name: "a file of lz4", how: "unpack it with lz4 -d FILE"},
	{start: "\x5d\x00\x00", name: "a file of lzma", how: "unpack it with unlzma FILE"},
	{start: "\x1f\x9d", name: "a file of compress", how: "unpack it with uncompress FILE"},
	{start: "\x1f\x8b", name: "a file of gzip", how: "unpack it with gzip -d FILE"},
	{start: "PK\x03\x04", name: "a zip archive, as CI services make them of artifacts", how: "unpack it with unzip FILE"},
	{start: "PK\x05\x06", name: "an empty zip archive", how: "make it again"},
	{start: "7z\xbc\xaf\x27\x1c", name: "a 7z archive", how: "unpack it with 7z x FILE"},
	{start: "Rar!", name: "a rar archive", how: "unpack it with unrar x FILE"},
	{start: "%PDF-", name: "a PDF", how: "give the text file itself"},
	{start: "\x7fELF", name: "a program", how: "give the text file itself"},
	{start: "\x89PNG", name: "an image", how: "give the text file itself"},
	{start: "\xff\xd8\xff", name: "an image", how: "give the text file itself"},
	{start: "\xff\xfe\x00\x00", name: "text in UTF-32", how: "save it as UTF-8: iconv -f UTF-32 -t UTF-8 FILE"},
	{start: "\x00\x00\xfe\xff", name: "text in UTF-32", how: "save it as UTF-8: iconv -f UTF-32 -t UTF-8 FILE"},
}

const forSamples = "touchstone export writes a file with the samples"

// wrapped are the forms of text that contain a file, or replace it.
var wrapped = []form{
	{start: "version https://git-lfs.github.com/spec/", name: "a pointer of Git LFS, not the file", how: "fetch the file with git lfs pull"},
	{expression: regexp.MustCompile(`^/annex/objects/|^\.\./.*\.git/annex/`), name: "a pointer of git-annex, not the file", how: "fetch the file with git annex get"},
	{expression: regexp.MustCompile("^(?:```|~~~)"), name: "a code block of Markdown", how: "remove the lines with ``` before and after the text"},
	{expression: regexp.MustCompile(`(?m)^<<<<<<< `), name: "a file with an unsolved conflict of Git", how: "solve it, and remove the lines <<<<<<<, ======= and >>>>>>>"},
	{expression: regexp.MustCompile(`^(?:diff --git |--- \S+.*\n\+\+\+ )`), name: "a patch", how: "apply it, and give the file itself"},
	{expression: regexp.MustCompile(`(?is)^(?:<!--.*?-->\s*)?<(?:!doctype html|html|head)\b.*<title>[^<]*Touchstone`), name: "a page of Touchstone, which has no samples", how: forSamples},
	{expression: regexp.MustCompile(`(?i)^(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body)\b`), name: "a web page, perhaps of a login or an error", how: "download the file itself: log in, or use the link of the raw file"},
	{expression: regexp.MustCompile(`^(?:<\?xml[^>]*>\s*)?<testsuites?\b`), name: "a result for CI in the form of JUnit, which has no samples", how: forSamples},
	{expression: regexp.MustCompile(`^<\?xml|^<[A-Za-z]+>`), name: "XML, perhaps of an error", how: "download the file itself"},
	{expression: regexp.MustCompile(`^(?:#{2,}|\*\*|<!--) ?Touchstone`), name: "a summary for CI in Markdown, which has no samples", how: forSamples},
	{expression: regexp.MustCompile(`(?s)^Touchstone [^\n]*\n(?:Run|Host|A) .*`), name: "a report as text, which has no samples", how: forSamples},
	{expression: regexp.MustCompile(`^\{\\rtf`), name: "a document of a word processor (RTF)", how: "save it as plain text in UTF-8"},
	{expression: regexp.MustCompile(`^(?:ewo|eyJ|ewJ|ewk|W3s|Wwo)[A-Za-z0-9+/=\s]+$`), name: "JSON in base64", how: "decode it with base64 -d FILE"},
	{expression: regexp.MustCompile(`^"\s*[{\[]|^"\{\\`), name: "JSON in a JSON string", how: "unpack it with jq -r . FILE"},
	{expression: regexp.MustCompile(`^(?:40[0-9]|50[0-9])[: ]|^(?i:not found|unauthorized|forbidden|access denied)\b`), name: "the error of a web server", how: "download the file itself"},
}

// kinds are the forms of Touchstone's own files.
var kinds = []struct {
	kind       Kind
	expression *regexp.Regexp
}{
	{Lock, regexp.MustCompile(`^touchstone-lock\b`)},
	{Counts, regexp.MustCompile(`^touchstone-counts\b`)},
	{Gates, regexp.MustCompile(`(?m)^"?gates"?[ \t]*:`)},
	{Runtimes, regexp.MustCompile(`(?m)\A(?:(?:#.*|version:.*)?\n)*runtimes[ \t]*:`)},
	{Plan, regexp.MustCompile(`(?m)^(?:targets|benchmarks|workloads|blocks|cri|oci)[ \t]*:`)},
	// JSON is YAML too.
	{Plan, regexp.MustCompile(`(?s)^\{\s*"version"\s*:.*"(?:targets|benchmarks|workloads|blocks|cri|oci)"\s*:`)},
	{Gates, regexp.MustCompile(`^\{[^{}\[\]]*"gates"\s*:`)},
	{Runtimes, regexp.MustCompile(`^\{[^{}\[\]]*"runtimes"\s*:`)},
	{Export, regexp.MustCompile(`^\{\s*"schema_version"\s*:[^{}]*(?:"generator"\s*:|"runs"\s*:|\})`)},
	{Hyperfine, regexp.MustCompile(`^\{\s*"results"\s*:\s*\[\s*\{\s*"command"\s*:`)},
	{Critest, regexp.MustCompile(`^\{\s*"operationsNames"\s*:`)},
	{GoBench, regexp.MustCompile(`(?m)^Benchmark\S+[ \t]+[0-9]+[ \t]+[-+0-9.eE]+[ \t]+\S`)},
	{Theirs, regexp.MustCompile(`^\[\s*\{\s*"cri"\s*:`)},
	{Selfchecks, regexp.MustCompile(`^\[\s*\{\s*"kind"\s*:\s*"touchstone-selfcheck"`)},
}

// anyYAML is the start of a file that is a plan, or a file of gates or runtimes with a mistake.
var anyYAML = regexp.MustCompile(`\A(?:#.*\n|\s)*version[ \t]*:[ \t]*[0-9]`)

// documents are Touchstone's documents of other kinds, by their key kind.
var documents = regexp.MustCompile(`^\{[^{}]*?"kind"\s*:\s*"(touchstone-[a-z-]+)"`)

// spelled names the file that a reader needs.
func (k Kind) spelled() string {
	if k == Export {
		return "a file that touchstone export wrote"
	}
	return string(k)
}

func (f form) error() error { return &Error{"it is " + f.name, f.how} }

func (f form) matches(text []byte) bool {
	if f.expression != nil {
		return f.expression.Match(text)
	}
	return bytes.HasPrefix(text, []byte(f.start))
}

// KindOf returns the kind of Touchstone's or of another program's files that a text begins as, empty if it is unknown.
func KindOf(head []byte) Kind {
	text := bytes.TrimSpace(head)
	for _, k := range kinds {
		if k.expression.Match(text) {
			return k.kind
		}
	}
	return ""
}

// Recognize returns an error if the start of a file shows that it is none of the wanted kinds. The error has the command for the file. It returns
// nil for an unknown text, which the parser of the reader judges.
func Recognize(head []byte, want ...Kind) error {
	text := bytes.TrimSpace(head)
	if bytes.HasPrefix(head, []byte(sqlite)) && slices.Contains(want, Database) {
		return nil
	}
	for _, f := range packed {
		if f.matches(head) {
			return f.error()
		}
	}
	for _, f := range wrapped {
		if f.matches(text) {
			return f.error()
		}
	}
	switch match := documents.FindSubmatch(text); {
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return &Error{"it is a tar archive", "unpack it with tar -xf FILE"}
	case bytes.IndexByte(head, 0) >= 0 && want[0] == Database:
		return &Error{"it is damaged, or a file of another program", "give " + want[0].spelled()}
	case bytes.IndexByte(head, 0) >= 0:
		return &Error{"it is not text: it has a zero byte", "give " + want[0].spelled()}
	case match != nil && want[0] == Export:
		return &Error{fmt.Sprintf("it is a %q, which has no samples", match[1]), "give " + want[0].spelled()}
	case match != nil:
		return &Error{fmt.Sprintf("it is a %q", match[1]), "give " + want[0].spelled()}
	}
	if kind := KindOf(head); kind != "" {
		if slices.Contains(want, kind) || kind == Runtimes && slices.Contains(want, Plan) {
			return nil
		}
		return &Error{"it is " + string(kind), kind.command()}
	}
	if anyYAML.Match(text) && !slices.Contains([]Kind{Plan, Gates, Runtimes}, want[0]) {
		return &Error{"it is " + string(Plan), Plan.command()}
	}
	if areLines(text) {
		return &Error{"it has a JSON document on each line (JSON lines)", "give " + want[0].spelled()}
	}
	return nil
}

// areLines reports whether a text is JSON lines: the first two lines are objects.
func areLines(text []byte) bool {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	return bytes.HasPrefix(first, []byte("{")) && json.Valid(first) && bytes.HasPrefix(bytes.TrimSpace(rest), []byte("{"))
}
