package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Change is the kind of a difference.
type Change string

// The changes of a file from image a to image b.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
)

// Aspect is a property of a file that differs.
type Aspect string

// The aspects.
const (
	Type         Aspect = "type"
	Architecture Aspect = "architecture"
	Content      Aspect = "content"
	Target       Aspect = "target" // of a link
	Device       Aspect = "device number"
	Mode         Aspect = "mode"
	Owner        Aspect = "owner"
	Attributes   Aspect = "extended attributes"
	Time         Aspect = "time"
)

// File is a differing file.
type File struct {
	// Name is the path in the layer without a leading slash. A whiteout has its name in the layer, such as etc/.wh.passwd.
	Name   string `json:"name"`
	Change Change `json:"change"`
	// Aspects lists the differing properties of a changed file.
	Aspects []Aspect `json:"aspects,omitempty"`
	A       *Version `json:"a,omitempty"`
	B       *Version `json:"b,omitempty"`
}

// Version is a file of one image.
type Version struct {
	Type string `json:"type"`
	// Arch is the architecture of an ELF file.
	Arch   string    `json:"arch,omitempty"`
	Size   int64     `json:"size,omitempty"`
	Target string    `json:"target,omitempty"` // of a link
	Device string    `json:"device,omitempty"` // major:minor
	Mode   string    `json:"mode,omitempty"`   // octal
	Owner  string    `json:"owner,omitempty"`  // uid:gid
	Time   time.Time `json:"time,omitzero"`
}

// version describes an entry.
func (e entry) version() *Version {
	v := &Version{Type: e.kind.String(), Arch: e.arch, Size: e.size}
	switch e.kind {
	case whiteout, opaque:
		return v
	case charDev, blockDev:
		v.Device = e.target
	case symlink, hardlink:
		v.Target = e.target
	case unknown, regular, directory, fifo:
	}
	v.Mode, v.Owner = fmt.Sprintf("%04o", e.mode), fmt.Sprintf("%d:%d", e.uid, e.gid)
	if t := time.Unix(e.seconds, int64(e.nanoseconds)).UTC(); t.Year() >= 0 && t.Year() <= 9999 { // JSON has no other years
		v.Time = t
	}
	return v
}

// aspects lists the differing properties of two entries.
func (e entry) aspects(peer entry) (list []Aspect) {
	if e.kind != peer.kind {
		return []Aspect{Type}
	}
	for _, p := range []struct {
		name   Aspect
		differ bool
	}{
		{Architecture, e.arch != peer.arch},
		{Content, e.content != peer.content},
		{Target, !e.isDevice() && e.target != peer.target},
		{Device, e.isDevice() && e.target != peer.target},
		{Mode, e.mode != peer.mode},
		{Owner, e.uid != peer.uid || e.gid != peer.gid},
		{Attributes, e.attributes != peer.attributes},
		{Time, e.seconds != peer.seconds || e.nanoseconds != peer.nanoseconds},
	} {
		if p.differ {
			list = append(list, p.name)
		}
	}
	return list
}

func (e entry) isDevice() bool { return e.kind == charDev || e.kind == blockDev }

// differences lists the differing files of two layers by name.
func differences(a, b listing) []File {
	var changes []File
	for name, was := range a {
		is, ok := b[name]
		if !ok {
			changes = append(changes, File{Name: name, Change: Removed, A: was.version()})
		} else if aspects := was.aspects(is); len(aspects) > 0 {
			changes = append(changes, File{Name: name, Change: Changed, Aspects: aspects, A: was.version(), B: is.version()})
		}
	}
	for name, is := range b {
		if _, ok := a[name]; !ok {
			changes = append(changes, File{Name: name, Change: Added, B: is.version()})
		}
	}
	slices.SortFunc(changes, func(x, y File) int { return cmp.Compare(x.Name, y.Name) })
	return changes
}

// judge derives the result of two layers with different digests from their differing files, and the reason in words.
func judge(files []File) (Result, string) {
	count := map[string]int{}
	programs := map[string]map[string]int{string(Added): {}, string(Removed): {}} // ELF files by architecture
	ports := map[string]int{}                                                     // changes of architecture
	onlyTimes := true
	for _, f := range files {
		switch {
		case f.Change != Changed:
			count[string(f.Change)]++
			if arch := cmp.Or(f.A, f.B).Arch; arch != "" {
				programs[string(f.Change)][arch]++
			}
			onlyTimes = false
		case slices.Contains(f.Aspects, Architecture):
			ports[fmt.Sprintf("%s instead of %s", cmp.Or(f.B.Arch, "no program"), cmp.Or(f.A.Arch, "no program"))]++
			onlyTimes = false
		default:
			first := f.Aspects[0]
			count[string(first)]++
			onlyTimes = onlyTimes && first == Time
		}
	}
	switch {
	case len(files) == 0:
		return SameFiles, "the archives order or encode the same files differently"
	case onlyTimes:
		return SameTimes, fmt.Sprintf("%s with another time of modification", wording.Counted(len(files), "file"))
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(ports)) {
		parts = append(parts, fmt.Sprintf("%s for %s", wording.Counted(ports[what], "ELF file"), what))
	}
	for _, p := range []struct{ key, words string }{
		{string(Content), "with other content"},
		{string(Added), "added"},
		{string(Removed), "removed"},
		{string(Type), "of another type"},
		{string(Target), "with another target"},
		{string(Device), "with another device number"},
		{string(Mode), "with another mode"},
		{string(Owner), "with another owner"},
		{string(Attributes), "with other extended attributes"},
		{string(Time), "with another time only"},
	} {
		if n := count[p.key]; n > 0 {
			part := fmt.Sprintf("%d %s", n, p.words)
			var elf []string
			for _, arch := range slices.Sorted(maps.Keys(programs[p.key])) {
				elf = append(elf, wording.Counted(programs[p.key][arch], "ELF file")+" for "+arch)
			}
			if len(elf) > 0 {
				part += " with " + wording.Listed(elf)
			}
			parts = append(parts, part)
		}
	}
	return Different, strings.Join(parts, ", ")
}

// contents describes a layer without a counterpart.
func contents(l *Layer) string {
	text := wording.Counted(l.Files, "file")
	for _, arch := range slices.Sorted(maps.Keys(l.ELF)) {
		text += fmt.Sprintf(", %s for %s", wording.Counted(l.ELF[arch], "ELF file"), arch)
	}
	return text
}
