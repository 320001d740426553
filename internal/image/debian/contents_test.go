package debian

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spdx/tools-golang/json"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestLicences(t *testing.T) {
	tr := treeOf(t,
		file{"usr/share/doc/fio/copyright", "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nLicense: GPL-2\n\nFiles: x\nLicense: Expat\n text\n\nLicense: GPL-2\n See /usr/share/common-licenses/GPL-2.\n"},
		file{"usr/share/doc/old/copyright", "This is GPL, see `/usr/share/common-licenses/GPL' and /usr/share/common-licenses/None and /usr/share/common-licenses/.\n"},
		file{"usr/share/doc/linked", "-> old"},
		file{"usr/share/common-licenses/GPL-2", "the text of 2"}, file{"usr/share/common-licenses/GPL-3", "the text of 3"},
		file{"usr/share/common-licenses/GPL", "-> GPL-3"},
	)
	l := layout{}
	got, err := l.addLicences(tr, []string{"fio", "linked", "old"})
	must.Do(t, err)
	if diff := cmp.Diff(map[string][]string{"fio": {"Expat", "GPL-2"}, "linked": nil, "old": nil}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"usr/share/doc/fio/copyright", "usr/share/doc/linked", "usr/share/doc/old/copyright",
		"usr/share/common-licenses/GPL", "usr/share/common-licenses/GPL-2", "usr/share/common-licenses/GPL-3",
	} {
		if _, ok := l[want]; !ok {
			t.Errorf("%s is missing", want)
		}
		delete(l, want)
	}
	if len(l) > 0 {
		t.Errorf("%v should not be there", l)
	}
	if _, err := l.addLicences(tr, []string{"none"}); err == nil || !strings.Contains(err.Error(), "licence of none") {
		t.Errorf("a package without one: %v", err)
	}
}

func TestSBOM(t *testing.T) {
	c := Contents{Suite: "trixie", Arch: "arm64", Date: "2026-09-12T07:55:41Z", Packages: []Part{
		{Name: "g++lib", Version: "1:2.0+b1", Source: "gcc", SHA256: sum, Licences: []string{"GPL-2+", "Odd licence (v1)"}, Copyright: "/usr/share/doc/g++lib/copyright"},
		{Name: "plain", Version: "1", Source: "plain", SHA256: sum},
		{Name: "touchstone", Version: "1", Licences: []string{ownLicence}},
	}}
	one, err := sbom(c)
	must.Do(t, err)
	if two, err := sbom(c); err != nil || two != one {
		t.Errorf("written twice it is not the same (%v)", err)
	}
	doc, err := json.Read(strings.NewReader(one))
	must.Do(t, err)
	if doc.CreationInfo.Created != c.Date || len(doc.Packages) != 3 || len(doc.Relationships) != 3 {
		t.Errorf("it is of %s, with %d packages and %d relationships", doc.CreationInfo.Created, len(doc.Packages), len(doc.Relationships))
	}
	p := doc.Packages[0]
	if p.PackageLicenseDeclared != "GPL-2.0-or-later AND LicenseRef-Odd-licence--v1" || p.PackageChecksums[0].Value != sum {
		t.Errorf("%+v", p)
	}
	if got := p.PackageExternalReferences[0].Locator; got != "pkg:deb/debian/g%2B%2Blib@1%3A2.0%2Bb1?arch=arm64&distro=trixie" {
		t.Errorf("its URL is %s", got)
	}
	if len(doc.OtherLicenses) != 1 || doc.OtherLicenses[0].LicenseIdentifier != "LicenseRef-Odd-licence--v1" {
		t.Errorf("%+v", doc.OtherLicenses)
	}
	if doc.Packages[1].PackageLicenseDeclared != "NOASSERTION" || doc.Packages[2].PackageLicenseDeclared != ownLicence {
		t.Errorf("%+v and %+v", doc.Packages[1], doc.Packages[2])
	}
}

// The list in the image has the files of the first layer. The files of the other layers belong to touchstone.
func TestContentsCountOwnLayers(t *testing.T) {
	c := Contents{Suite: "trixie", Arch: "amd64", Packages: []Part{
		{Name: "fio", Version: "1", Files: 1, Size: 2, SHA256: sum}, {Name: "touchstone", Version: builder, Files: 4, Size: 100},
	}}
	text, err := c.encode()
	must.Do(t, err)
	list, programs := layout{}, layout{}
	list.text(contentsPath, 0o644, text)
	programs.text("probe", 0o755, "program")
	programs.dir("usr", 0o755)
	var layers []v1.Layer
	for _, l := range []layout{skeleton(), list, programs} {
		layer, err := inMemory(l)
		must.Do(t, err)
		layers = append(layers, layer)
	}
	for n, want := range map[int]Part{
		2: {Files: 4, Size: 100}, // of builder 1
		3: {Files: 6, Size: 100 + int64(len(text)) + int64(len("program"))},
	} {
		img, err := assemble("amd64", layers[:n]...)
		must.Do(t, err)
		got, err := ContentsOf(img)
		if err != nil || got.Packages[0].Files != 1 || got.Packages[1].Files != want.Files || got.Packages[1].Size != want.Size {
			t.Errorf("with %d layers: %+v, %v; want %d files with %d bytes", n, got.Packages, err, want.Files, want.Size)
		}
	}
}

func TestContentsAreRead(t *testing.T) {
	c := Contents{Suite: "trixie", Arch: "amd64", Packages: []Part{{Name: "fio", Version: "1", Files: 1, Size: 2}}}
	text, err := c.encode()
	must.Do(t, err)
	got, err := decodeContents([]byte(text))
	if diff := cmp.Diff(c, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "{}", "[]", `{"packages":[{"size":"1"}]}`} {
		if _, err := decodeContents([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
