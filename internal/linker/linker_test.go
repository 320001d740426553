package linker_test

import (
	"debug/elf"
	"reflect"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/linker"
	"github.com/touchstone-bench/touchstone/internal/linker/linkertest"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          linker.File
		err           string
	}{
		{"a program", linkertest.File(elf.EM_X86_64, "/lib64/ld.so", "$ORIGIN/../own::/opt/", "liba.so", "/opt/libb.so"), linker.File{
			Class: elf.ELFCLASS64, Machine: elf.EM_X86_64, Interpreter: "/lib64/ld.so",
			Libraries: []string{"liba.so", "/opt/libb.so"}, Dirs: []string{"/usr/own", "/opt"},
		}, ""},
		{"a static program", linkertest.File(elf.EM_AARCH64, "", ""), linker.File{Class: elf.ELFCLASS64, Machine: elf.EM_AARCH64}, ""},
		{"a script", "#! /bin/sh -e\nexec program\n", linker.File{Interpreter: "/bin/sh"}, ""},
		{"a script without a second line", "#!/bin/sh", linker.File{Interpreter: "/bin/sh"}, ""},
		{"data", "data", linker.File{}, ""},
		{"an empty file", "", linker.File{}, ""},
		{"a script without an interpreter", "#!  \nexec\n", linker.File{}, "the name of the interpreter is missing"},
		{"a broken program", "\x7fELF and no more", linker.File{}, "ELF class"},
	} {
		got, err := linker.Read(strings.NewReader(tt.content), "/usr/bin")
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: the error is %v, want one with %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}
