package textfile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/touchstone-bench/touchstone/internal/textfile"
)

const (
	export = "{\n \"schema_version\": 1,\n \"generator\": {\"version\": \"1 – ä 😀\"},\n \"runs\": []\n}\n"
	plan   = "version: 1\nname: ä 😀\ntargets: [native]\n"
)

func wide(text string, order binary.AppendByteOrder) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

func packed(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Encodings and compressions that are taken give the same text.
//
// Invariant file-encodings: A file that a user names is decoded, or named with the command for it, and never only an unexpected character.
func TestEncodings(t *testing.T) {
	for _, text := range []string{export, plan, strings.ReplaceAll(plan, "\n", "\r\n"), export + strings.Repeat(" ", 10_000) + "\n"} {
		for name, file := range map[string]string{
			"UTF-8": text, "with a mark": "\xef\xbb\xbf" + text,
			"UTF-16 LE": "\xff\xfe" + wide(text, binary.LittleEndian), "UTF-16 BE": "\xfe\xff" + wide(text, binary.BigEndian),
			"UTF-16 LE without a mark": wide(text, binary.LittleEndian), "UTF-16 BE without a mark": wide(text, binary.BigEndian),
			"gzip": packed(t, text), "gzip with a mark": packed(t, "\xef\xbb\xbf"+text), "gzip of UTF-16": packed(t, "\xff\xfe"+wide(text, binary.LittleEndian)),
		} {
			for _, r := range []io.Reader{strings.NewReader(file), iotest.OneByteReader(strings.NewReader(file))} {
				reader, err := textfile.NewReader(r, textfile.Export, textfile.Plan)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				got, err := io.ReadAll(reader)
				if err != nil || string(got) != text || reader.Decoded != (name != "UTF-8") {
					t.Errorf("%s is %.40q, %v, decoded %v", name, got, err, reader.Decoded)
				}
			}
		}
	}
}

// A text that ends early, or grows without end when it is unpacked, is no text.
func TestDamage(t *testing.T) {
	data := packed(t, export+strings.Repeat("ab", 5000))
	flipped := []byte(data)
	flipped[len(flipped)-6] ^= 1
	for name, tt := range map[string]struct{ file, want string }{
		"gzip":             {data[:len(data)-9], "truncated; copy it again"},
		"checksum":         {string(flipped), "damaged (gzip: invalid checksum); copy it again"},
		"head of gzip":     {"\x1f\x8b\x08", "cannot be unpacked"},
		"UTF-16":           {"\xff\xfe" + wide(plan, binary.LittleEndian) + "x", "truncated; copy it again"},
		"half a pair":      {"\xff\xfe" + wide(plan, binary.LittleEndian) + "\x3d\xd8", "not valid UTF-16; save it as UTF-8"},
		"a lone half":      {"\xff\xfe" + wide(plan, binary.LittleEndian) + "\x3d\xd8a\x00", "not valid UTF-16"},
		"UTF-32":           {"\xff\xfe\x00\x00v\x00\x00\x00", "iconv -f UTF-32"},
		"a zero byte":      {"version: 1\x00\n", "zero byte"},
		"gzip in gzip":     {packed(t, packed(t, plan)), "it is a file of gzip; unpack it with gzip -d FILE"},
		"a database":       {packed(t, "SQLite format 3\x00"+plan), "and its content: it is a database of SQLite"},
		"an empty of gzip": {packed(t, ""), ""},
	} {
		got, err := textfile.Read(strings.NewReader(tt.file), 1<<20, textfile.Plan, textfile.Export)
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %.40q, %v; want %s", name, got, err, tt.want)
		}
	}
	bomb := packed(t, strings.Repeat("a", 10<<20))
	if got, err := textfile.Read(strings.NewReader(bomb), 1000, textfile.Plan); err != nil || len(got) != 1001 {
		t.Errorf("a long text has %d bytes, %v", len(got), err)
	}
	fault := errors.New("gone")
	if _, err := textfile.Read(iotest.ErrReader(fault), 1000, textfile.Plan); !errors.Is(err, fault) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// Each foreign file is named with its remedy, whatever the reader wants.
//
// Invariant file-encodings.
func TestRecognize(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"SQLite format 3\x00\x10\x00", "touchstone report -d FOLDER"},
		{"\x28\xb5\x2f\xfd\x04", "zstd -d FILE"},
		{"\xfd7zXZ\x00\x00", "xz -d FILE"},
		{"BZh91AY&SY", "bzip2 -d FILE"},
		{"\x04\x22\x4d\x18@", "lz4 -d FILE"},
		{"PK\x03\x04\x14\x00", "unzip FILE"},
		{"7z\xbc\xaf\x27\x1c", "7z x FILE"},
		{"%PDF-1.7", "it is a PDF"},
		{strings.Repeat("x", 257) + "ustar\x0000", "tar -xf FILE"},
		{"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"},
		{"../../.git/annex/objects/aa/bb/SHA256E-s12--4d7a.json", "git annex get"},
		{"```json\n{\"schema_version\": 1}\n```\n", "remove the lines with ```"},
		{"\n~~~yaml\nversion: 1\n~~~\n", "code block of Markdown"},
		{"version: 1\n<<<<<<< HEAD\nblocks: 5\n=======\nblocks: 6\n>>>>>>> topic\n", "conflict of Git"},
		{"diff --git a/plan.yaml b/plan.yaml\n", "it is a patch"},
		{"<!DOCTYPE html>\n<html><head><title>Sign in · GitLab</title>", "log in"},
		{"\r\n<HTML>\r\n<BODY>502 Bad Gateway", "a web page"},
		{"<!-- saved from url --><html lang=en>", "a web page"},
		{"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>quick – Touchstone report</title>", "touchstone export writes a file with the samples"},
		{"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"touchstone compare\">", "JUnit"},
		{"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "XML, perhaps of an error"},
		{"### Touchstone: compare\n\n| a |", "Markdown"},
		{"Touchstone 1.0  quick\nRun      20261128-070941-xx57\n", "a report as text"},
		{"{\\rtf1\\ansi", "RTF"},
		{"ewogInNjaGVtYV92ZXJzaW9uIjogMiwK", "base64 -d FILE"},
		{`"{\"schema_version\": 1}"`, "jq -r"},
		{"404: Not Found", "download the file itself"},
		{"{\"schema_version\": 1, \"kind\": \"touchstone-report\", \"run\": {", `it is a "touchstone-report"`},
		{"{\n \"kind\": \"touchstone-selfcheck\",\n", `it is a "touchstone-selfcheck"`},
		{"{\"a\":1}\n{\"a\":2}\n", "JSON lines"},
	} {
		for _, want := range []textfile.Kind{textfile.Plan, textfile.Gates, textfile.Export, textfile.Lock, textfile.Selfchecks, textfile.Runtimes} {
			if err := textfile.Recognize([]byte(tt.file), want); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%.30q for %s: %v, want %s", tt.file, want, err, tt.want)
			}
		}
	}
}

// Each of our own files is taken as itself, and named with its command for all other readers.
//
// Invariant file-encodings.
func TestOwnFiles(t *testing.T) {
	files := map[textfile.Kind][]string{
		textfile.Plan:       {plan, "# Touchstone plan for nightly runs\nversion: 1\nblocks: 6\n", "# a plan\n\nname: a\nblocks: 6\n", "{\"version\": 1, \"blocks\": 6}", "cri: [containerd]\noci: [runc]\n", "version: 7\r\nblocks: 6\r\n"},
		textfile.Gates:      {"version: 1\ngates:\n  - {fail-on: 'slower:3%'}\n", "# gates\ngates: []\n", "gates :\n- x\n", "{\"version\": 1, \"gates\": []}"},
		textfile.Runtimes:   {"runtimes:\n  mine: /opt/mine\n", "# mine\nversion: 1\n\nruntimes: {a: /b}\n", "version: 1\nruntimes:\n", "{\"version\":1,\"runtimes\":{}}"},
		textfile.Counts:     {"touchstone-counts 1\n# Expected\ntarget: oci/runc\n", "touchstone-counts 2\n", "touchstone-counts 1\r\n"},
		textfile.Export:     {export, "{\"schema_version\":99,\"generator\":{}}", "{\"schema_version\": 1}"},
		textfile.Theirs:     {"[{\"cri\":\"containerd\",\"oci\":\"runc\",\"results\":{}}]", "[\n  {\n    \"cri\": \"crio\"", "[{ \"cri\" :1}]"},
		textfile.Hyperfine:  {"{\n  \"results\": [\n    {\n      \"command\": \"true\",", "{\"results\":[{\"command\":\"a\"}]}"},
		textfile.Critest:    {"{\n \"operationsNames\": [\n  \"CreateContainer\"", "{\"operationsNames\":[]}"},
		textfile.GoBench:    {"goos: linux\npkg: a/b\nBenchmarkA-2   \t 100\t 5.2 ns/op\n", "BenchmarkA 1 1e3 B/op"},
		textfile.Selfchecks: {"[\n  {\n    \"kind\": \"touchstone-selfcheck\",", "[{\"kind\":\"touchstone-selfcheck\"}]", "[ {\"kind\" : \"touchstone-selfcheck\"}"},
		textfile.Lock:       {"touchstone-lock 1\nsuite trixie\n", "touchstone-lock 2\n", "touchstone-lock 1\r\n"},
	}
	command := map[textfile.Kind]string{
		textfile.Plan: "benchmark -f", textfile.Gates: "--gates", textfile.Runtimes: "runtimes.yaml", textfile.Export: "touchstone import", textfile.Theirs: "touchstone import",
		textfile.Hyperfine: "touchstone import", textfile.Critest: "touchstone import", textfile.GoBench: "touchstone import",
		textfile.Selfchecks: "selfcheck --show", textfile.Lock: "image build --lock", textfile.Counts: "counts check",
	}
	for kind, texts := range files {
		for _, text := range texts {
			for want := range files {
				err := textfile.Recognize([]byte(text), want)
				switch {
				case want == kind || want == textfile.Plan && kind == textfile.Runtimes:
					if err != nil {
						t.Errorf("%.30q is not taken as %s: %v", text, want, err)
					}
				case err == nil || !strings.Contains(err.Error(), command[kind]):
					t.Errorf("%.30q for %s: %v, want %s", text, want, err, command[kind])
				}
			}
		}
	}
	for _, text := range []string{"version: 1\nname: a\n", "# a plan\n\nversion: 2\r\n", "version : 1"} {
		if err := textfile.Recognize([]byte(text), textfile.Export); err == nil || !strings.Contains(err.Error(), "touchstone benchmark -f") {
			t.Errorf("%q: %v", text, err)
		}
		if err := textfile.Recognize([]byte(text), textfile.Gates); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "\n", "hello", "a: b", "[1]", "{\"a\": 1}", "{\"a\": 1}\n", "-"} {
		if err := textfile.Recognize([]byte(text), textfile.Export); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{export, plan, "\xff\xfe" + wide(plan, binary.LittleEndian), packed(f, plan), "\xfe\xff\xd8", "“a”: –\u00a0b\n\t c"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		text, err := textfile.Read(bytes.NewReader(file), 1000, textfile.Plan)
		if len(text) > 1001 {
			t.Fatalf("%d bytes", len(text))
		}
		if err != nil {
			return
		}
		lines := strings.Split(string(text), "\n")
		for _, b := range textfile.Blemishes(string(text)) {
			if b.Line < 1 || b.Line > len(lines) || b.Column < 1 || b.Column > len([]rune(lines[b.Line-1])) || b.Problem == "" || b.Advice == "" {
				t.Fatalf("%+v in %q", b, text)
			}
		}
	})
}
