// Command sbom writes the bill of materials of a Go program in SPDX 2.3 as JSON, from the modules that the linker has recorded in the program:
//
//	sbom -version VERSION -date UNIXTIME PROGRAM
//
// The bill depends on the program, the version and the time only.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

func main() {
	version := flag.String("version", "", "the VERSION of the program")
	date := flag.Int64("date", 0, "the time of the bill, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(os.Stdout, flag.Arg(0), *version, time.Unix(*date, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the bill of the program in a file.
func write(w io.Writer, file, version string, date time.Time) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("read the modules of %s: %w", file, err)
	}
	sum := sha256.Sum256(content)
	return json.Write(bill(filepath.Base(file), version, hex.EncodeToString(sum[:]), info, date), w, json.Indent("  "), json.EscapeHTML(false))
}

// bill returns the bill of a program with a digest, which contains Go's standard library and modules.
func bill(name, version, digest string, info *debug.BuildInfo, date time.Time) *spdx.Document {
	program := module(&debug.Module{Path: info.Main.Path, Version: version})
	program.PackageLicenseDeclared, program.PackageFileName, program.PrimaryPackagePurpose = "Apache-2.0", name, "APPLICATION"
	program.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest}}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name + "-" + version,
		// A document's name must be unique, and must not depend on a clock or random numbers.
		DocumentNamespace: "https://" + info.Main.Path + "/sbom/" + name + "-" + digest[:16],
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "touchstone-sbom"}}, Created: date.UTC().Format(time.RFC3339),
			CreatorComment: "The time is the commit's: the bill is the same whenever it is made.",
		},
		Packages: []*spdx.Package{program},
	}
	relate := func(a, b common.ElementID, relation string) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", string(a)), RefB: common.MakeDocElementID("", string(b)), Relationship: relation,
		})
	}
	relate(doc.SPDXIdentifier, program.PackageSPDXIdentifier, common.TypeRelationshipDescribe)
	for _, dep := range append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...) {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		part := module(dep)
		doc.Packages = append(doc.Packages, part)
		relate(program.PackageSPDXIdentifier, part.PackageSPDXIdentifier, common.TypeRelationshipContains)
	}
	return doc
}

// module returns the package of a module. Its licence is in its source: a program does not record it.
func module(m *debug.Module) *spdx.Package {
	p := &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: common.ElementID("Module-" + noID.ReplaceAllString(m.Path, "-")), PackageVersion: m.Version,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: "purl", Locator: "pkg:golang/" + m.Path + "@" + url.QueryEscape(m.Version),
		}},
	}
	if m.Sum != "" {
		p.PackageSourceInfo = "Checksum of the module in go.sum: " + m.Sum
	}
	return p
}

// noID matches characters that an identifier of SPDX must not have.
var noID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
