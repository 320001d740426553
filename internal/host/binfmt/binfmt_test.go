package binfmt

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
)

// The registrations have the format of Linux 6.1 with Debian's qemu-user-static.
const (
	qemuARM64 = `enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: POCF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
`
	pythonFiles = `enabled
interpreter /usr/bin/python3
flags: 
extension .pyc
`
)

// headOf is the beginning of a 64-bit little-endian executable for a machine.
func headOf(machine byte) []byte {
	return append([]byte("\x7fELF\x02\x01\x01"), 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, machine, 0)
}

func TestFindHandler(t *testing.T) {
	const arm64, riscv64 = 0xb7, 0xf3
	enabled := func(name, text string) map[string]string {
		return map[string]string{"status": "enabled\n", "register": "", "python3": pythonFiles, name: text}
	}
	for name, tt := range map[string]struct {
		files   map[string]string // nil without the directory
		program []byte
		want    Handler
		err     error
	}{
		"emulator":           {enabled("qemu-aarch64", qemuARM64), headOf(arm64), Handler{"qemu-aarch64", "/usr/libexec/qemu-binfmt/aarch64-binfmt-P", "POCF"}, nil},
		"other architecture": {enabled("qemu-aarch64", qemuARM64), headOf(riscv64), Handler{}, fs.ErrNotExist},
		"handler disabled":   {enabled("qemu-aarch64", "disabled"+qemuARM64[len("enabled"):]), headOf(arm64), Handler{}, fs.ErrNotExist},
		"all disabled":       {map[string]string{"status": "disabled\n", "qemu-aarch64": qemuARM64}, headOf(arm64), Handler{}, fs.ErrNotExist},
		"short program":      {enabled("qemu-aarch64", qemuARM64), headOf(arm64)[:10], Handler{}, fs.ErrNotExist},
		"empty program":      {enabled("qemu-aarch64", qemuARM64), nil, Handler{}, fs.ErrNotExist},
		"broken entry":       {enabled("odd", "enabled\ninterpreter /x\nmagic 7f4\n"), headOf(arm64), Handler{}, fs.ErrNotExist},
		"negative offset":    {enabled("odd", "enabled\ninterpreter /x\noffset -1\nmagic 7f\n"), headOf(arm64), Handler{}, fs.ErrNotExist},
		"mask of other size": {enabled("odd", "enabled\ninterpreter /x\nmagic 7f45\nmask ff\n"), headOf(arm64), Handler{}, fs.ErrNotExist},
		"magic without mask": {enabled("any", "enabled\ninterpreter /x\nflags: F\noffset 1\nmagic 454c46\n"), headOf(arm64), Handler{"any", "/x", "F"}, nil},
		"not mounted":        {map[string]string{}, headOf(arm64), Handler{}, ErrNotMounted},
		"not in the kernel":  {nil, headOf(arm64), Handler{}, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if tt.files != nil {
				hosttest.Write(t, root, hosttest.Files{"proc/sys/fs/binfmt_misc/": ""})
			}
			for file, text := range tt.files {
				hosttest.Write(t, root, hosttest.Files{"proc/sys/fs/binfmt_misc/" + file: text})
			}
			got, err := Find(root, tt.program)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("FindHandler() = %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
