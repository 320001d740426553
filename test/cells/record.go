package cells

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Run is a commit whose tests ran a cell without a failure.
type Run struct {
	// Number is the number of commits up to this one, and Commit its abbreviated hash.
	Number int
	Commit string
}

// Record has the last run of each cell, by the cell's name.
type Record map[string]Run

// RecordFile is the path of the record in the repository.
const RecordFile = "test/cells/runs.tsv"

const header = "cell\tnumber\tcommit"

// ReadRecord reads a record as Record.Write writes it: a header, and a line with three fields for each cell, separated by tabs.
func ReadRecord(source io.Reader) (Record, error) {
	record := make(Record)
	lines := bufio.NewScanner(source)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if n == 1 && line == header {
			continue
		}
		fields := strings.Split(line, "\t")
		if n == 1 || len(fields) != 3 {
			return nil, fmt.Errorf("%s line %d: %q is not the header or a cell, a number and a commit, separated by tabs", RecordFile, n, line)
		}
		number, err := strconv.Atoi(fields[1])
		if err != nil || number < 1 {
			return nil, fmt.Errorf("%s line %d: %q is no number of a commit", RecordFile, n, fields[1])
		}
		if _, duplicate := record[fields[0]]; duplicate {
			return nil, fmt.Errorf("%s line %d: cell %s has a line already", RecordFile, n, fields[0])
		}
		record[fields[0]] = Run{Number: number, Commit: fields[2]}
	}
	return record, lines.Err()
}

// Write writes the record, sorted by cell.
func (r Record) Write(sink io.Writer) error {
	text := header + "\n"
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text += fmt.Sprintf("%s\t%d\t%s\n", name, r[name].Number, r[name].Commit)
	}
	_, err := io.WriteString(sink, text)
	return err
}

// Commits lists the commits of the runs, each once.
func (r Record) Commits() []string {
	var commits []string
	for _, run := range r {
		if !slices.Contains(commits, run.Commit) {
			commits = append(commits, run.Commit)
		}
	}
	slices.Sort(commits)
	return commits
}
