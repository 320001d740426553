package doctor

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Redactor replaces what identifies a machine, its owner and its users, and secrets.
type Redactor struct {
	// Hosts are names of the machine and its domains, Users the names of its users, and Homes their home directories.
	Hosts, Users, Homes []string
}

// firstUser is the first ID of the users who are people.
const firstUser = 1000

// OfMachine returns the redactor for the machine with a root directory, and for the users in the environment of this process.
func OfMachine(root string) Redactor {
	text := func(file string) string {
		content, _ := os.ReadFile(filepath.Join(root, file)) // a machine may lack the file
		return string(content)
	}
	r := Redactor{Users: []string{os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("SUDO_USER")}, Homes: []string{os.Getenv("HOME")}}
	for _, file := range []string{"proc/sys/kernel/hostname", "etc/hostname"} {
		name := strings.TrimSpace(text(file))
		label, _, _ := strings.Cut(name, ".")
		r.Hosts = append(r.Hosts, name, label)
	}
	r.Hosts = append(r.Hosts, strings.TrimSpace(text("proc/sys/kernel/domainname")))
	for line := range strings.Lines(text("etc/resolv.conf")) {
		if fields := strings.Fields(line); len(fields) > 1 && (fields[0] == "search" || fields[0] == "domain") {
			r.Hosts = append(r.Hosts, fields[1:]...)
		}
	}
	for line := range strings.Lines(text("etc/passwd")) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 6 {
			continue
		}
		if id, err := strconv.Atoi(fields[2]); err == nil && id >= firstUser {
			r.Users, r.Homes = append(r.Users, fields[0]), append(r.Homes, fields[5])
		}
	}
	harmless := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, strings.ToLower(name)) }
	}
	r.Hosts = slices.DeleteFunc(r.Hosts, harmless("", ".", "(none)", "localhost"))
	r.Users = slices.DeleteFunc(r.Users, harmless("", "root", "nobody"))
	r.Homes = slices.DeleteFunc(r.Homes, harmless("", "/", "/root", "/nonexistent", "/var", "/usr", "/tmp", "/run"))
	return r
}

// The replacements.
const (
	secret  = "(redacted)"
	home    = "(home)"
	address = "(address)"
)

// forms are the forms of texts that are redacted. They are compiled at the first report.
type forms struct {
	// secrets are secrets. The groups before and behind a secret stay.
	secrets []*regexp.Regexp
	// opaque matches texts that may be keys. They are keys if they have small letters, capital ones and digits: digests have no capital letters.
	opaque *regexp.Regexp
	// unit matches the names of systemd's units among mails.
	mail, unit *regexp.Regexp
	homes      *regexp.Regexp
	// hardware, dashed, dotted and colons are addresses.
	hardware, dashed, dotted, colons *regexp.Regexp
}

var compiled = sync.OnceValue(func() forms {
	f := forms{
		opaque:   regexp.MustCompile(`[A-Za-z0-9+_-]{32,}={0,2}`),
		mail:     regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`),
		unit:     regexp.MustCompile(`@[\w-]*\.(?:service|slice|scope|mount|socket)$`),
		homes:    regexp.MustCompile(`(?:/var)?/(?:home|Users)/[^/\s"':,;)\]]+`),
		hardware: regexp.MustCompile(`\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b`),
		dashed:   regexp.MustCompile(`\bip-[0-9]{1,3}(?:-[0-9]{1,3}){3}\b`),
		dotted:   regexp.MustCompile(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}`),
		colons:   regexp.MustCompile(`(?:[0-9A-Fa-f]+:|::)[0-9A-Fa-f:.]*[0-9A-Fa-f:]`),
	}
	for _, form := range []string{
		`(?s)()-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\z)`,
		`(?i)(authorization\\*["']?\s*[:=]\s*\\*["']?)[^\n"'\\]+`,
		`(?i)(\bbearer\s+)[^\s"'\\]+`,
		`(\bBasic\s+)[A-Za-z0-9+/]{6,}=*`,
		`(\w://)[^\s"'/]*(@)`,
		`(\w://)[^\s"'/@:]+:[^\s"'@/]*[^\s"'@/0-9][^\s"'@]*(@)`, // a password with a slash
		`(?i)((?:[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key|access[_-]?key|credential)[\w.-]*|\b_?auth)` +
			`\\*["']?\s*[:=]\s*)(?:\\*"[^"]*"|'[^']*'|[^\s,;}\]"']+)`,
		`(?i)(--?(?:password|passwd|pass|token|secret|creds|credentials|key)[= ]+)\S+`,
		`()\b(?:eyJ[\w-]+\.[\w-]+\.[\w-]*|AKIA[0-9A-Z]{12,}|gh[pousr]_\w{16,}|glpat-[\w-]{16,})`,
	} {
		f.secrets = append(f.secrets, regexp.MustCompile(form))
	}
	return f
})

// Text redacts a text.
func (r Redactor) Text(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	f := compiled()
	for _, form := range f.secrets {
		text = form.ReplaceAllString(text, "${1}"+secret+"${2}")
	}
	text = f.opaque.ReplaceAllStringFunc(text, func(word string) string {
		if strings.ContainsFunc(word, unicode.IsUpper) && strings.ContainsFunc(word, unicode.IsLower) && strings.ContainsFunc(word, unicode.IsDigit) {
			return secret
		}
		return word
	})
	text = f.mail.ReplaceAllStringFunc(text, func(word string) string {
		if f.unit.MatchString(word) {
			return word
		}
		return address
	})
	text = f.homes.ReplaceAllString(replaceWords(text, r.Homes, home), home)
	text = f.dashed.ReplaceAllString(f.hardware.ReplaceAllString(text, address), address)
	text = replaceAlone(text, f.dotted, func(word string) string {
		if strings.HasPrefix(word, "127.") || word == "0.0.0.0" {
			return word
		}
		return address
	})
	text = replaceAlone(text, f.colons, replaceIPv6)
	return replaceWords(replaceWords(text, r.Hosts, "(host)"), r.Users, "(user)")
}

// replaceIPv6 replaces a word of digits and colons that contains an address, with the label or the port that may stand beside the address.
func replaceIPv6(word string) string {
	parts := strings.SplitAfter(word, ":")
	for size := len(parts); size > 1; size-- {
		for first := range len(parts) - size + 1 {
			core := strings.Join(parts[first:first+size], "")
			if !strings.HasSuffix(core, "::") {
				core = strings.TrimSuffix(core, ":")
			}
			if ip, err := netip.ParseAddr(core); err == nil {
				if ip.IsLoopback() || ip.IsUnspecified() {
					return word
				}
				return address
			}
		}
	}
	return word
}

// replaceWords replaces names that stand alone, in small and capital letters, long names first.
func replaceWords(text string, names []string, replacement string) string {
	names = slices.SortedFunc(slices.Values(names), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		text = replaceAlone(text, regexp.MustCompile(`(?i)`+regexp.QuoteMeta(name)), func(string) string { return replacement })
	}
	return text
}

// replaceAlone replaces the matches that have no letter and no digit before and behind them.
func replaceAlone(text string, pattern *regexp.Regexp, replace func(string) string) string {
	var w strings.Builder
	end := 0
	for _, match := range pattern.FindAllStringIndex(text, -1) {
		left, _ := utf8.DecodeLastRuneInString(text[:match[0]])
		right, _ := utf8.DecodeRuneInString(text[match[1]:])
		if isWord(left) || isWord(right) {
			continue
		}
		w.WriteString(text[end:match[0]])
		w.WriteString(replace(text[match[0]:match[1]]))
		end = match[1]
	}
	return w.String() + text[end:]
}

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// tree redacts all texts of a JSON document.
func (r Redactor) tree(value any) any {
	switch v := value.(type) {
	case string:
		return r.Text(v)
	case []any:
		for i := range v {
			v[i] = r.tree(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = r.tree(v[key])
		}
	}
	return value
}
