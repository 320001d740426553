package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// The bill of a program, here of this test, is valid, lists Go and the modules, and is the same a second time.
func TestBill(t *testing.T) {
	program, err := os.Executable()
	must.Do(t, err)
	date := time.Unix(1_800_000_000, 0)
	var one, two bytes.Buffer
	must.Do(t, write(&one, program, "v0.1.0", date))
	must.Do(t, write(&two, program, "v0.1.0", date))
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("two bills of one program differ")
	}
	doc, err := json.Read(&one)
	must.Do(t, err)
	must.Do(t, spdxlib.ValidateDocument(doc))
	if doc.CreationInfo.Created != "2027-01-15T08:00:00Z" {
		t.Errorf("created at %s", doc.CreationInfo.Created)
	}
	ids, err := spdxlib.GetDescribedPackageIDs(doc)
	must.Do(t, err)
	if len(ids) != 1 || string(ids[0]) != "Module-github.com-touchstone-bench-touchstone" {
		t.Errorf("the bill describes %v", ids)
	}
	parts := map[string]string{}
	for _, p := range doc.Packages {
		parts[p.PackageName] = p.PackageVersion + " " + p.PackageSourceInfo
	}
	for name, want := range map[string]string{"stdlib": "1.", "github.com/spdx/tools-golang": "h1:", "github.com/touchstone-bench/touchstone": "v0.1.0"} {
		if !strings.Contains(parts[name], want) {
			t.Errorf("the bill has %q of %s, want %q", parts[name], name, want)
		}
	}
}

// A file that is no Go program has no bill.
func TestBillOfAnotherFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	must.Do(t, os.WriteFile(file, []byte("text"), 0o644))
	if err := write(&bytes.Buffer{}, file, "", time.Time{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a bill of a text: %v", err)
	}
}
