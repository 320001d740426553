package diagnosis

import (
	"os"
	"path/filepath"
)

// ServiceLog returns the command that prints the log of a service of this host: journalctl where systemd runs, else the file that OpenRC writes on Alpine.
func ServiceLog(unit string) string { return serviceLog("/", unit) }

func serviceLog(root, unit string) string {
	if _, err := os.Stat(filepath.Join(root, "run/systemd/system")); err == nil { // as sd_booted(3) tests it
		return "journalctl -u " + unit
	}
	return "cat /var/log/" + unit + ".log"
}
