package debian

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// spdxLicences are SPDX's names of licences, by the names in Debian's copyright files, including equal names. Other licences get a
// reference to the copyright file.
var spdxLicences = map[string]string{
	"Apache-2": "Apache-2.0", "Apache-2.0": "Apache-2.0", "Artistic-2.0": "Artistic-2.0", "BSD-2-clause": "BSD-2-Clause", "BSD-2-Clause": "BSD-2-Clause",
	"BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause", "BSL-1.0": "BSL-1.0", "CC0": "CC0-1.0", "CC0-1.0": "CC0-1.0", "curl": "curl", "Expat": "MIT",
	"GFDL-1.2+": "GFDL-1.2-or-later", "GFDL-1.3": "GFDL-1.3-only", "GPL-1+": "GPL-1.0-or-later", "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later",
	"GPL-2.0": "GPL-2.0-only", "GPL-2.0+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only", "GPL-3+": "GPL-3.0-or-later", "GPL-3.0+": "GPL-3.0-or-later",
	"ISC": "ISC", "LGPL-2": "LGPL-2.0-only", "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later",
	"LGPL-3": "LGPL-3.0-only", "LGPL-3+": "LGPL-3.0-or-later", "MIT": "MIT", "MPL-2.0": "MPL-2.0", "OpenSSL": "OpenSSL", "PostgreSQL": "PostgreSQL",
	"Unicode": "Unicode-DFS-2016", "Unlicense": "Unlicense", "X11": "X11", "Zlib": "Zlib", "zlib": "Zlib",
}

// sbom returns the bill of materials of an image, in SPDX 2.3 as JSON.
func sbom(c Contents) (string, error) {
	const self = "touchstone-workload"
	sum := sha256.Sum256([]byte(c.Arch + c.Date))
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: self + "-" + c.Arch,
		// A document's name must be unique, and must not depend on a clock or random numbers.
		DocumentNamespace: "https://github.com/touchstone-bench/touchstone/sbom/" + self + "-" + c.Arch + "-" + hex.EncodeToString(sum[:8]),
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "touchstone"}}, Created: c.Date,
			CreatorComment: "The time is that of the packages: the image is the same whenever it is made.",
		},
	}
	var references []string
	for _, p := range c.Packages {
		declared, refs := declaredLicence(p)
		references = append(references, refs...)
		doc.Packages = append(doc.Packages, bom(p, c, declared))
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", string(elementID(p))), Relationship: common.TypeRelationshipDescribe,
		})
	}
	slices.Sort(references)
	for _, ref := range slices.Compact(references) {
		doc.OtherLicenses = append(doc.OtherLicenses, &spdx.OtherLicense{
			LicenseIdentifier: ref, LicenseName: strings.TrimPrefix(ref, licenceRef),
			ExtractedText: "The text is in the copyright files of the packages in the image, in /usr/share/doc.",
		})
	}
	var b bytes.Buffer
	err := json.Write(doc, &b, json.Indent("  "), json.EscapeHTML(false))
	return b.String(), err
}

func elementID(p Part) common.ElementID {
	return common.ElementID("Package-" + strings.NewReplacer("+", "-plus-").Replace(p.Name))
}

// bom is a package in the bill.
func bom(p Part, c Contents, declared string) *spdx.Package {
	s := &spdx.Package{
		PackageName: p.Name, PackageSPDXIdentifier: elementID(p), PackageVersion: p.Version, PackageDownloadLocation: "NOASSERTION",
		PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: declared, PackageCopyrightText: "NOASSERTION",
	}
	if p.Copyright != "" {
		s.PackageLicenseComments = "As its copyright file says, which is in the image: " + p.Copyright
	}
	if p.SHA256 == "" {
		s.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: "Touchstone"}
		return s
	}
	s.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: "Debian"}
	s.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}}
	s.PackageSourceInfo = "Source package of Debian: " + p.Source
	s.PackageExternalReferences = []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: "purl",
		Locator: "pkg:deb/debian/" + url.QueryEscape(p.Name) + "@" + url.QueryEscape(p.Version) + "?arch=" + c.Arch + "&distro=" + c.Suite,
	}}
	return s
}

const licenceRef = "LicenseRef-"

// declaredLicence returns the licences of a package as an expression of SPDX, and the references in the expression.
func declaredLicence(p Part) (expression string, references []string) {
	if len(p.Licences) == 0 {
		return "NOASSERTION", nil
	}
	var terms []string
	for _, name := range p.Licences {
		id, ok := spdxLicences[name]
		if !ok {
			id = licenceRef + strings.Trim(notInID.ReplaceAllString(name, "-"), "-")
			references = append(references, id)
		}
		terms = append(terms, id)
	}
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), " AND "), references
}

// notInID matches a character that an identifier of SPDX must not have.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.]`)
