package host

import (
	"regexp"
	"strings"
)

// redacted stands for a value that was left out.
const redacted = "…"

var (
	// privateName matches names of kernel parameters whose values identify a machine, or
	// open it. Boot loaders of small boards pass serial numbers and hardware addresses
	// this way, installers and network boots passwords and keys.
	privateName = regexp.MustCompile(`(?i)serial|\bmac\b|machine_?id|uuid|guid|\buid|token|secret|passw|pwd|key|cred|user(name)?\b|auth|luks|crypt|iscsi|nfs|nbd|cifs|smb|url|hostn|hostid|\bip\b|addr|dns|domain|label|^root$|^resume$`)
	// privateValue matches values that do so: hardware and network addresses, UUIDs,
	// addresses with a user and password in them, long runs of hexadecimal digits.
	privateValue = regexp.MustCompile(`(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}|[0-9a-f]{8}-[0-9a-f]{4}-|\b\d{1,3}(\.\d{1,3}){3}\b|://|[0-9a-f]{16}`)
)

// redact gives the kernel's command line without values that identify the machine or
// its owner. Names stay, so that a reader sees which parameters were set. What
// follows "--" is for the first process, not the kernel, and is left out.
func redact(cmdline string) string {
	var items []string
	for _, item := range fields(cmdline) {
		if item == "--" {
			break
		}
		name, value, hasValue := strings.Cut(item, "=")
		switch {
		case !hasValue && privateValue.MatchString(name):
			item = redacted
		case hasValue && (privateName.MatchString(name) || privateValue.MatchString(value)):
			item = name + "=" + redacted
		}
		items = append(items, item)
	}
	return strings.Join(items, " ")
}

// fields splits a command line at blanks outside double quotes, as the kernel does.
func fields(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && r <= ' '
	})
}
