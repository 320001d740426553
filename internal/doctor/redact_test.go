package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

var redactor = Redactor{Hosts: []string{"node7.corp.example", "node7", "corp.example"}, Users: []string{"alice", "bob", "al"}, Homes: []string{"/srv/people/bob"}}

// Invariant doctor-redacts: A report of touchstone doctor has no secret, no address, and no name of a host or a user.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		// Secrets.
		`{"auths": {"r.example": {"auth": "YWxpY2U6aHVudGVyMg=="}}}`:                          `{"auths": {"r.example": {"auth": (redacted)}}}`,
		`msg="{\"auth\":\"YWxpY2U6aHVudGVyMg==\"}"`:                                           `msg="{\"auth\":(redacted)}"`,
		`Get "https://alice:hunter2@r.example/v2/": 401`:                                      `Get "https://(redacted)@r.example/v2/": 401`,
		`proxy http://bob:p@ss@10.1.2.3:3128 failed`:                                          `proxy http://(redacted)@(address):3128 failed`,
		`pull https://u:pa/ss@r.example/x`:                                                    `pull https://(redacted)@r.example/x`,
		"Authorization: Basic YWxpY2U6aHVudGVyMg==\nnext":                                     "Authorization: (redacted)\nnext",
		`curl -H "authorization: Bearer abc.def"`:                                             `curl -H "authorization: (redacted)"`,
		`www-authenticate: bearer 0123abc, x`:                                                 `www-authenticate: bearer (redacted) x`,
		"podman login --password hunter2 -u x":                                                "podman login --password (redacted) -u x",
		"skopeo --creds=u:hunter2 copy":                                                       "skopeo --creds=(redacted) copy",
		`REGISTRY_TOKEN=s3cr3t runc`:                                                          `REGISTRY_TOKEN=(redacted) runc`,
		"password = 'two words'":                                                              "password = (redacted)",
		`identitytoken: "a b"`:                                                                `identitytoken: (redacted)`,
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nx":              "(redacted)\nx",
		"-----BEGIN PRIVATE KEY-----\nthe log ends in it":                                     "(redacted)",
		"jwt eyJhbGciOi.eyJzdWIiOi.SflKx and ghp_0123456789abcdefABCD":                        "jwt (redacted) and (redacted)",
		"key Zm9vYmFyQmF6MDEyMzQ1Njc4OUFCQ0RFRg== end":                                        "key (redacted) end",
		"image sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef stays": "image sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef stays",
		// Addresses.
		"dial tcp 10.0.0.7:5000: lookup on [fe80::1%eth0]:53":                 "dial tcp (address):5000: lookup on [(address)%eth0]:53",
		"from 2001:db8::7, to:2001:db8:0:0:0:0:0:9. from ::ffff:10.0.0.7":     "from (address), to:(address). from (address)(address)",
		"bead:2001:db8:0:0:0:0:0:9:443 or addr:fe80::1: gone":                 "(address) or addr:(address) gone",
		"127.0.0.1:36123, [::1]:53, 0.0.0.0 and :: stay":                      "127.0.0.1:36123, [::1]:53, 0.0.0.0 and :: stay",
		"at 10:00:00 the call std::fs::read of v1.2.3.4 fails":                "at 10:00:00 the call std::fs::read of v1.2.3.4 fails",
		"ether 52:54:00:12:34:56 on ip-10-0-0-7.ec2.internal, x@mail.example": "ether (address) on (address).ec2.internal, (address)",
		"user@1000.service stays":                                             "user@1000.service stays",
		// Names.
		"NODE7 and node7.corp.example in other.corp.example; node71": "(host) and (host) in other.(host); node71",
		"/home/carol/x, /var/home/dave:ro, /srv/people/bob/y":        "(home)/x, (home):ro, (home)/y",
		"ALICE's alice_tmp of bob, and malice of al stays with all":  "(user)'s (user)_tmp of (user), and malice of (user) stays with all",
		"\xffalice": "\uFFFD(user)",
	} {
		if got := redactor.Text(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

// Real messages keep what a reader needs.
func TestTextKeepsMessages(t *testing.T) {
	for _, text := range []string{
		"create session key: disk quota exceeded: unknown",
		`exec: "runc": executable file not found in $PATH`,
		"failed to set /proc/self/attr/keycreate on procfs: write /proc/self/attr/keycreate: invalid argument",
		`create container "touchstone-20261129-061516-l7e5-try-3" with oci/runsc@platform=systrap: unknown platform: systrap`,
		"invalid character '}' looking for the beginning of an object key string; unexpected token: }",
		"unsupported shim version (3): not implemented; docker://127.0.0.1:36123/touchstone/r/x@sha256:0123",
		"6.18.44-fc-v669 #1 SMP PREEMPT_DYNAMIC",
	} {
		if got := redactor.Text(text); got != text {
			t.Errorf("%q\n got %q", text, got)
		}
	}
}

func TestOfMachine(t *testing.T) {
	t.Setenv("USER", "root")
	t.Setenv("LOGNAME", "")
	t.Setenv("SUDO_USER", "erin")
	t.Setenv("HOME", "/root")
	root := t.TempDir()
	for file, text := range map[string]string{
		"etc/hostname":    "node7.corp.example\n",
		"etc/resolv.conf": "nameserver 10.0.0.1\nsearch corp.example lab.example\n",
		"etc/passwd":      "root:x:0:0::/root:/bin/sh\ndocker:x:120:120::/var/lib/docker:/bin/false\nalice:x:1000:1000:Alice:/srv/alice:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\nbroken\n",
	} {
		path := filepath.Join(root, file)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	got := OfMachine(root)
	want := Redactor{Hosts: []string{"node7.corp.example", "node7", "corp.example", "lab.example"}, Users: []string{"erin", "alice"}, Homes: []string{"/srv/alice"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzText(f *testing.F) {
	for _, text := range []string{"", "10.0.0.7", `auth="`, "::", "https://a:b@c", "-----BEGIN "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := redactor.Text(text + " https://u:hunter2@r.example alice 10.0.0.7 fe80::1 node7\n")
		for _, name := range []string{"hunter2", "alice", "10.0.0.7", "fe80::1", "node7"} {
			if strings.Contains(got, " "+name) || strings.Contains(got, ":"+name+"@") {
				t.Errorf("%q: %s is left: %q", text, name, got)
			}
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
	})
}

// A text is redacted wherever a report has it.
func TestRedacted(t *testing.T) {
	r := sample()
	publication, err := r.Redacted(redactor)
	must.Do(t, err)
	bundle, err := publication.Bundle()
	must.Do(t, err)
	files := unpack(t, bundle)
	for _, word := range []string{"alice", "hunter2", "10.0.0.7", "node7", "aabbcc", "/srv/people"} {
		for name, text := range files {
			if strings.Contains(text, word) {
				t.Errorf("%s has %s:\n%s", name, word, text)
			}
		}
	}
	if r.Host.Hostname == "" || !slices.ContainsFunc(r.Targets, func(x Target) bool { return strings.Contains(x.Output, "alice") }) {
		t.Error("the report itself has changed")
	}
	if publication.Host.Memory != r.Host.Memory {
		t.Errorf("memory %d, want %d", publication.Host.Memory, r.Host.Memory)
	}
}
