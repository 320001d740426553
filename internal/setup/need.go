package setup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// A Need checks a requirement of a build on this machine. It returns what is missing with the remedy, or nothing.
type Need func(ctx context.Context, l *process.Launcher) (missing string)

// aptGet spells the command that installs packages.
func aptGet(packages ...string) string { return "apt-get install " + strings.Join(packages, " ") }

// goWithToolchains is the first version of Go that fetches a newer toolchain by itself, unless GOTOOLCHAIN forbids it.
const goWithToolchains = "1.21"

// needGo requires a version of Go.
func needGo(version string) Need {
	return func(ctx context.Context, l *process.Launcher) string {
		get := fmt.Sprintf("install it from https://go.dev/dl, or a package of your distribution with Go %s", version)
		if _, err := exec.LookPath("go"); err != nil {
			return fmt.Sprintf("Go %s or later, and go is not on PATH: %s", version, get)
		}
		text, err := output(ctx, l, "go", "env", "GOVERSION", "GOTOOLCHAIN")
		found, toolchain, _ := strings.Cut(strings.TrimSpace(text), "\n")
		found = strings.TrimPrefix(found, "go")
		switch {
		case err != nil:
			return fmt.Sprintf("Go, and go env fails: %v", err)
		case parts.Compare(found, version) >= 0:
			return ""
		case parts.Compare(found, goWithToolchains) >= 0 && toolchain != "local":
			return "" // go fetches a toolchain, with its checksum
		}
		return fmt.Sprintf("Go %s or later, and go is %s: %s", version, found, get)
	}
}

// needCargo requires a version of cargo.
func needCargo(version string) Need {
	return func(ctx context.Context, l *process.Launcher) string {
		get := aptGet("cargo-web") + " on Debian 12, " + aptGet("cargo") + " elsewhere, or https://rustup.rs"
		if _, err := exec.LookPath("cargo"); err != nil {
			return fmt.Sprintf("cargo %s or later, and cargo is not on PATH: %s", version, get)
		}
		text, err := output(ctx, l, "cargo", "--version")
		words := strings.Fields(text)
		switch {
		case err != nil || len(words) < 2:
			return fmt.Sprintf("cargo, and cargo --version fails: %v", err)
		case parts.Compare(words[1], version) < 0:
			return fmt.Sprintf("cargo %s or later, and cargo is %s: %s", version, words[1], get)
		}
		return ""
	}
}

// compiler is the C compiler, as Go and make call it.
func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

// needProgram requires a program of a package on PATH.
func needProgram(name string, packages ...string) Need {
	return func(context.Context, *process.Launcher) string {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Sprintf("%s, which is not on PATH: %s", name, aptGet(packages...))
		}
		return ""
	}
}

// needCompiler requires a C compiler with the headers of the C library.
func needCompiler(ctx context.Context, l *process.Launcher) string {
	cc := compiler()
	if missing := needProgram(cc, "gcc", "libc6-dev")(ctx, l); missing != "" {
		return "a C compiler: " + missing
	}
	if _, err := output(ctx, l, cc, "-E", "-include", "stdio.h", "-x", "c", os.DevNull); err != nil {
		return fmt.Sprintf("the headers of the C library, which %s does not find: %s", cc, aptGet("libc6-dev"))
	}
	return ""
}

// needLibrary requires a library with its headers.
func needLibrary(name string) Need {
	return func(ctx context.Context, l *process.Launcher) string {
		if missing := needProgram("pkg-config", "pkg-config", name+"-dev")(ctx, l); missing != "" {
			return missing
		}
		if _, err := output(ctx, l, "pkg-config", "--exists", name); err != nil {
			return fmt.Sprintf("%s with its headers, which pkg-config does not find: %s", name, aptGet(name+"-dev"))
		}
		return ""
	}
}
