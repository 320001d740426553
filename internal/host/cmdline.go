package host

import (
	"regexp"
	"strings"
)

// redacted replaces a private value.
const redacted = "…"

var (
	// privateName matches names of kernel parameters whose values identify a machine or give access to it. Boot loaders of small
	// boards pass serial numbers and hardware addresses this way. Installers and network boots pass passwords and keys.
	privateName = regexp.MustCompile(`(?i)serial|\bmac\b|machine_?id|uuid|guid|\buid|token|secret|passw|pwd|key|cred|user(name)?\b|auth|luks|crypt|iscsi|nfs|nbd|cifs|smb|url|hostn|hostid|\bip\b|addr|dns|domain|label|^root$|^resume$`)
	// privateValue matches such values: hardware and network addresses, UUIDs, URLs, which may contain a password, and long
	// hexadecimal numbers.
	privateValue = regexp.MustCompile(`(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}|[0-9a-f]{8}-[0-9a-f]{4}-|\b\d{1,3}(\.\d{1,3}){3}\b|://|[0-9a-f]{16}`)
)

// redact returns the kernel command line without values that identify the machine or its owner. It keeps the names of all
// parameters. It drops the arguments after "--", because they are meant for the init process and not for the kernel.
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

// fields splits a command line at blanks outside double quotes, like the kernel.
func fields(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && r <= ' '
	})
}
