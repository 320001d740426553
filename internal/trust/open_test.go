package trust

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestOpenNeverBlocks: what is no regular file is refused, also by a link, and no process waits for its other end.
//
// Invariant foreign-files: A file that another user can put in place of ours blocks nothing and is not believed; access lists count.
func TestOpenNeverBlocks(t *testing.T) {
	dir := home(t)
	pathOf := func(name string) string { return filepath.Join(dir, "out", name) }
	must.Do(t, unix.Mkfifo(pathOf("pipe"), 0o600), os.Symlink("pipe", pathOf("link-to-pipe")), os.Symlink("file", pathOf("link")), os.Symlink("none", pathOf("dangling")),
		os.WriteFile(pathOf("file"), []byte("text"), 0o600), os.Symlink("/dev/zero", pathOf("device")), os.Symlink("/proc/self/fd", pathOf("directory")))
	for _, name := range []string{"pipe", "link-to-pipe", "device", "directory"} {
		f, err := Open(pathOf(name))
		var unsafe *Error
		if !errors.As(err, &unsafe) {
			t.Errorf("Open(%s) gives %v, %v", name, f, err)
		}
	}
	for _, name := range []string{"file", "link"} {
		f, err := Open(pathOf(name))
		must.Do(t, err)
		if text, err := io.ReadAll(f); err != nil || string(text) != "text" {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
		must.Do(t, f.Close())
	}
	for _, name := range []string{"none", "dangling", "none/file"} {
		if _, err := Open(pathOf(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%s) gives %v", name, err)
		}
	}
	if text, err := ReadFile(pathOf("file"), 4); err != nil || string(text) != "text" {
		t.Errorf("ReadFile gives %q, %v", text, err)
	}
	if _, err := ReadFile(pathOf("file"), 3); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("a file above the limit: %v", err)
	}
}

// TestOpenFilesOfOthers: a file that another user can change is refused, and a missing one is missing wherever it is.
//
// Invariant foreign-files.
func TestOpenFilesOfOthers(t *testing.T) {
	needRoot(t)
	dir := home(t)
	userDir := filepath.Join(dir, "theirs")
	must.Do(t, os.Mkdir(userDir, 0o755), os.WriteFile(filepath.Join(userDir, "file"), nil, 0o600), os.Symlink("/etc/hostname", filepath.Join(userDir, "link")),
		os.Lchown(filepath.Join(userDir, "link"), other, other), os.Chown(userDir, other, other))
	var unsafe *Error
	for _, name := range []string{"file", "link"} {
		if _, err := Open(filepath.Join(userDir, name)); !errors.As(err, &unsafe) || !strings.Contains(err.Error(), "12345") {
			t.Errorf("Open(%s) gives %v", name, err)
		}
	}
	for _, name := range []string{"none", "none/none"} {
		if _, err := Open(filepath.Join(userDir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%s) gives %v", name, err)
		}
	}
}

// list is an access list with the permissions rw for the owner, the entry, and a mask.
func list(tag uint16, id uint32, permissions, mask uint16) []byte {
	text := binary.LittleEndian.AppendUint32(nil, listVersion)
	for _, e := range []listEntry{{0x01, 6, 0xffffffff}, {tag, permissions, id}, {0x04, 4, 0xffffffff}, {tagMask, mask, 0xffffffff}, {0x20, 0, 0xffffffff}} {
		text = binary.LittleEndian.AppendUint16(text, e.tag)
		text = binary.LittleEndian.AppendUint16(text, e.permissions)
		text = binary.LittleEndian.AppendUint32(text, e.id)
	}
	if tag == tagGroup { // the owner's group comes before other groups
		first, second := text[headerSize+entrySize:headerSize+2*entrySize], text[headerSize+2*entrySize:headerSize+3*entrySize]
		swap := append([]byte{}, first...)
		copy(first, second)
		copy(second, swap)
	}
	return text
}

// TestAccessLists: a list that lets another user or group write is refused although the mode of the file shows no such right.
//
// Invariant foreign-files.
func TestAccessLists(t *testing.T) {
	me := uint32(os.Geteuid())
	for _, c := range []struct {
		path, attribute string
		list            []byte
		want            string
	}{
		{"out/file", accessList, list(tagUser, other, 6, 6), "out/file can be changed by user 12345"},
		{"out/file", accessList, list(tagUser, other, 4, 6), ""},
		{"out/file", accessList, list(tagUser, other, 6, 4), ""}, // the mask takes the right away
		{"out/file", accessList, list(tagUser, me, 6, 6), ""},
		{"out/file", accessList, list(tagUser, 0, 6, 6), ""},
		{"out/file", accessList, list(tagGroup, other, 6, 6), "out/file can be changed by group 12345"},
		{"out/file", accessList, list(tagGroup, uint32(os.Getegid()), 6, 6), ""},
		{"out", accessList, list(tagUser, other, 7, 7), "out can be changed by user 12345"},
		{"out", defaultList, list(tagUser, other, 6, 6), "out can be changed by user 12345"},
		{"out", defaultList, list(tagGroup, other, 6, 6), "out can be changed by group 12345"},
		{"out", defaultList, list(tagUser, other, 5, 7), ""},
	} {
		dir := home(t)
		path := filepath.Join(dir, c.path)
		if err := unix.Setxattr(path, c.attribute, c.list, 0); errors.Is(err, unix.ENOTSUP) {
			t.Skip("the file system has no access lists")
		} else if err != nil {
			t.Fatalf("%s of %s: %v", c.attribute, c.path, err)
		}
		file := filepath.Join(dir, "out", "file")
		_, err := File(file)
		_, openErr := Open(file)
		for _, err := range []error{err, openErr} {
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s of %s: %v", c.attribute, c.path, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "setfacl -b")):
				t.Errorf("%s of %s: the error is %v, want %q", c.attribute, c.path, err, c.want)
			}
		}
	}
}

// TestAccessListOfAncestor: for root the directories above count, unless only the owner of an entry can remove it.
func TestAccessListOfAncestor(t *testing.T) {
	needRoot(t)
	dir := home(t)
	must.Do(t, os.Mkdir(filepath.Join(dir, "out", "in"), 0o700))
	if err := unix.Setxattr(filepath.Join(dir, "out"), accessList, list(tagUser, other, 7, 7), 0); err != nil {
		t.Skipf("the file system has no access lists: %v", err)
	}
	if _, err := Directory(filepath.Join(dir, "out", "in")); err == nil || !strings.Contains(err.Error(), "user 12345") {
		t.Errorf("the error is %v", err)
	}
	must.Do(t, os.Chmod(filepath.Join(dir, "out"), 0o777|fs.ModeSticky))
	if _, err := Directory(filepath.Join(dir, "out", "in")); err != nil {
		t.Errorf("below a directory like /tmp: %v", err)
	}
}

func TestMalformedAccessLists(t *testing.T) {
	for _, text := range []string{"", "\x02\x00", "\x03\x00\x00\x00", "\x02\x00\x00\x00xyz"} {
		if account, err := writer([]byte(text)); err == nil {
			t.Errorf("%q gives %q", text, account)
		}
	}
}
