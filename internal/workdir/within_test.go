package workdir

import "testing"

func TestWithin(t *testing.T) {
	const id = "20260101-000000-abcd"
	const dir = "/var/lib/touchstone/" + id
	for root, want := range map[string]bool{
		"/":                                     false,
		"/var/lib/touchstone/" + id:             true,
		"/var/lib/touchstone/" + id + "/rootfs": true,
		"/lib/touchstone/" + id + "/rootfs":     true,  // /var is a file system
		"/" + id + "/rootfs":                    true,  // the root of runs is one
		"/@/var/lib/touchstone/" + id + "/a/b":  true,  // / is a part of one
		"/var/lib/containers/" + id + "/rootfs": false, // somebody else's
		"/home/me/" + id:                        false,
		"/var/lib/touchstone/" + id + "x":       false,
		"/var/lib/touchstone":                   false,
		"/stone/" + id:                          false,
	} {
		if got := within(root, dir); got != want {
			t.Errorf("within(%q) = %v", root, got)
		}
	}
}
