package engine

import (
	"net/url"
	"strings"
)

// unreadable is the scheme of an address that is no URL. A plan of a run has only paths and URLs as addresses.
const unreadable = "unreadable://"

// longestUnreadable is the number of bytes of an unreadable address that are kept for a message.
const longestUnreadable = 200

// RecordUnreadable returns a URL that stands for an address that is none.
func RecordUnreadable(address string) string {
	return unreadable + url.PathEscape(address[:min(len(address), longestUnreadable)])
}

// UnreadableAddress returns the original address of such a URL.
func UnreadableAddress(address string) (original string, ok bool) {
	escaped, ok := strings.CutPrefix(address, unreadable)
	if !ok {
		return "", false
	}
	original, err := url.PathUnescape(escaped)
	return original, err == nil
}
