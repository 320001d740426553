package facts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// identity returns digests that tell machines with one name apart. The key of each is the machine ID, which is random and never
// published, so the digests do not reveal the values. Without a machine ID only the boot has one: its ID is random too.
func (t reader) identity() *result.Identity {
	var i result.Identity
	key := t.Text("etc/machine-id")
	if key == "uninitialized" { // of an image before its first boot
		key = ""
	}
	digest := func(what, value string) string {
		if value == "" {
			return ""
		}
		mac := hmac.New(sha256.New, []byte(key))
		_, _ = mac.Write([]byte("touchstone " + what + " " + value)) // it never fails
		return hex.EncodeToString(mac.Sum(nil)[:8])
	}
	if key != "" {
		i.System = digest("system", key)
		i.Board = digest("board", t.serial())
	}
	i.Boot = digest("boot", t.Text("proc/sys/kernel/random/boot_id"))
	if i == (result.Identity{}) {
		return nil
	}
	return &i
}

// serial returns a value that the hardware, or the hypervisor, gives to one machine only and that every user can read: the serial number
// of a board, or the lowest permanent address of a network device.
func (t reader) serial() string {
	if serial := t.Board("serial-number"); serial != "" {
		return serial
	}
	var addresses []string
	for _, file := range t.Glob("sys/class/net/*/address") {
		dir := path.Dir(file)
		if removable(t, dir) {
			continue
		}
		if t.Exists(path.Join(dir, "device")) && t.Text(path.Join(dir, "addr_assign_type")) == "0" {
			addresses = append(addresses, t.Text(file))
		}
	}
	if len(addresses) == 0 {
		return ""
	}
	return slices.Min(addresses)
}

// removable reports whether a network device is on a bus of removable devices, such as USB: a dock or a telephone.
func removable(t reader, dir string) bool {
	return t.Exists(path.Join(dir, "device", "bInterfaceNumber")) // of an interface of USB
}
