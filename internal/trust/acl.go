package trust

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// The lists of POSIX for the access to a file, and for the entries that are made in a directory.
const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

// The parts of a list (Linux, include/uapi/linux/posix_acl_xattr.h): a version, and entries of tag, permissions and ID.
const (
	listVersion = 2
	headerSize  = 4
	entrySize   = 8

	tagUser  = 0x02
	tagGroup = 0x08
	tagMask  = 0x10

	permissionWrite = 0x02
)

// maxList is the largest extended attribute of Linux, in bytes.
const maxList = 64 << 10

// checkLists refuses a file whose lists let another user or group write. The mode of a file with a list shows only the union of all groups.
func checkLists(path string, lists ...string) error {
	for _, list := range lists {
		text := make([]byte, maxList)
		n, err := unix.Lgetxattr(path, list, text)
		switch {
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
			continue
		case err != nil:
			return &fs.PathError{Op: "read the access list of", Path: path, Err: err}
		}
		account, err := writer(text[:n])
		if err != nil {
			return &fs.PathError{Op: "read the access list of", Path: path, Err: err}
		}
		if account != "" {
			return &Error{path, "can be changed by " + account + " (by an access list)", "if you trust the content, run setfacl -b " + path}
		}
	}
	return nil
}

// writer returns the first user or group of a list that is not trusted and may write. The mask bounds the permissions.
func writer(list []byte) (account string, err error) {
	if len(list) < headerSize || (len(list)-headerSize)%entrySize != 0 || binary.LittleEndian.Uint32(list) != listVersion {
		return "", fmt.Errorf("it has an unknown form of %d bytes", len(list))
	}
	mask := uint16(permissionWrite)
	for entry := range entries(list[headerSize:]) {
		if entry.tag == tagMask {
			mask = entry.permissions
		}
	}
	for entry := range entries(list[headerSize:]) {
		if entry.permissions&mask&permissionWrite == 0 {
			continue
		}
		switch {
		case entry.tag == tagUser && !trusted(entry.id):
			return user(entry.id), nil
		case entry.tag == tagGroup && !ours(entry.id):
			return fmt.Sprintf("group %d", entry.id), nil
		}
	}
	return "", nil
}

type listEntry struct {
	tag, permissions uint16
	id               uint32
}

func entries(list []byte) func(yield func(listEntry) bool) {
	return func(yield func(listEntry) bool) {
		for ; len(list) >= entrySize; list = list[entrySize:] {
			e := listEntry{binary.LittleEndian.Uint16(list), binary.LittleEndian.Uint16(list[2:]), binary.LittleEndian.Uint32(list[4:])}
			if !yield(e) {
				return
			}
		}
	}
}
