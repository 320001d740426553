package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/test/cells"
)

// chooseCells finds the change and its cells. The variable of package cells overrides the choice.
func (s *suite) chooseCells(ctx context.Context) error {
	if err := s.readCommit(ctx); err != nil {
		s.log.printf("no commit is known, so the cells do not rotate: %v", err)
	}
	var names []string
	for _, c := range cells.All() {
		names = append(names, c.Name)
	}
	list := os.Getenv(cells.Chosen)
	switch {
	case s.all || list == "all":
		s.cells = names
	case list == "none":
	case list != "":
		s.picked = true
		for name := range strings.SplitSeq(list, ",") {
			if !slices.Contains(names, name) {
				return fmt.Errorf("%s names the cell %q; the cells are %s", cells.Chosen, name, strings.Join(names, ", "))
			}
			s.cells = append(s.cells, name)
		}
	default:
		record, err := s.readRecord()
		if err != nil {
			return err
		}
		changes, err := s.changed(ctx, record)
		if err != nil && s.commit.Number > 0 {
			s.log.printf("the changed files are unknown, so all cells run: %v", err)
			s.cells = names
			break
		}
		s.cells = cells.Choose(cells.Rotation(), record, changes, s.commit.Number)
	}
	return nil
}

// git returns the lines of a command's output.
func (s *suite) git(ctx context.Context, args ...string) ([]string, error) {
	// Another user's clone, such as a volume of a container, is no danger: the suite runs the code of that clone anyway.
	command := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=" + s.root, "-C", s.root}, args...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.Fields(string(output)), nil
}

func (s *suite) readCommit(ctx context.Context) error {
	hash, err := s.git(ctx, "rev-parse", "--short=8", "HEAD")
	if err != nil {
		return err
	}
	count, err := s.git(ctx, "rev-list", "--count", "HEAD")
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(count[0])
	if err != nil {
		return err
	}
	files, err := s.git(ctx, "diff", "--name-only", "HEAD")
	if err != nil {
		return err
	}
	s.commit = cells.Run{Number: number, Commit: hash[0]}
	s.clean = len(slices.DeleteFunc(files, func(file string) bool { return file == cells.RecordFile })) == 0
	return nil
}

// changed lists the files that have changed since each commit of the record.
func (s *suite) changed(ctx context.Context, record cells.Record) (map[string][]string, error) {
	changes := make(map[string][]string)
	for _, commit := range record.Commits() {
		files, err := s.git(ctx, "diff", "--name-only", commit)
		if err != nil {
			return nil, err
		}
		changes[commit] = files
	}
	return changes, nil
}

func (s *suite) readRecord() (cells.Record, error) {
	f, err := os.Open(filepath.Join(s.root, cells.RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return cells.Record{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return cells.ReadRecord(f)
}

// keepRecord notes the cells of this run in the file of package cells, unless something failed or did not run, or the files differ from the
// commit. Cells that the user picked are not noted: the next run would take their commit for one that has passed all its cells.
func (s *suite) keepRecord(failed int) error {
	if !s.clean || len(s.cells) == 0 || len(s.only) > 0 || !s.lab || s.picked || failed > 0 {
		return nil
	}
	record, err := s.readRecord()
	if err != nil {
		return err
	}
	for _, name := range s.cells {
		if _, runtime, _ := strings.Cut(name, "/"); !slices.Contains(s.without, runtime) {
			record[name] = s.commit
		}
	}
	var text bytes.Buffer
	if err := record.Write(&text); err != nil {
		return err
	}
	s.log.printf("%s has this run: commit it with the next change", cells.RecordFile)
	return os.WriteFile(filepath.Join(s.root, cells.RecordFile), text.Bytes(), 0o644)
}
