// Command manual writes the manual pages and the completions of shells, from the command line's own help:
//
//	manual -version VERSION -date UNIXTIME FOLDER
//
// FOLDER gets man/NAME.1, and completions/SHELL for bash, zsh and fish.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/docgen"
)

func main() {
	version := flag.String("version", "", "the VERSION in the pages")
	date := flag.Int64("date", 0, "the date in the pages, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(context.Background(), flag.Arg(0), *version, time.Unix(*date, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, dir, version string, date time.Time) error {
	files := map[string][]byte{}
	pages, err := docgen.Manual(ctx, version, date)
	for name, page := range pages {
		files[filepath.Join("man", name)] = page
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var text bytes.Buffer
		if code := cli.New(cli.Environment{Stdout: &text, Stderr: os.Stderr}).Run(ctx, []string{"completion", shell}); code != cli.ExitOK {
			err = errors.Join(err, fmt.Errorf("touchstone completion %s exited with code %d", shell, code))
		}
		files[filepath.Join("completions", shell)] = text.Bytes()
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
	}
	return err
}
