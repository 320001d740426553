package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	answer "github.com/touchstone-bench/touchstone/internal/answer/paper"
	"github.com/touchstone-bench/touchstone/internal/paper"
)

func (a *App) paperCommand() *cobra.Command {
	var format format
	var table string
	cmd := &cobra.Command{
		Use:   "paper [NAME]",
		Short: "Show the published results of the studies that Touchstone repeats",
		Long: `Lists the studies, or shows the published tables of one. The numbers are as printed,
errors included: a number that contradicts another place of its study has a note. The
numbers of a study's text and of its figures, as far as it prints them, are tables too.
Nothing is measured.

The formats json, yaml and csv name the target, the benchmark and the metric of each number,
or the reason why Touchstone does not measure it.`,
		Example: `  touchstone paper
  touchstone paper espe
  touchstone paper wang --table "table 3"
  touchstone paper wang -o json`,
		Args: atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if table != "" {
					return usage(errors.New("--table needs the name of a paper: touchstone paper NAME --table NAME"))
				}
				return a.listPapers(format)
			}
			p, err := loadPaper(args[0])
			if err != nil {
				return err
			}
			if table != "" {
				found, err := findTable(p, table)
				if err != nil {
					return err
				}
				p.Tables = []paper.Table{found}
			}
			return a.showPaper(p, format)
		},
		ValidArgsFunction: completePaper,
	}
	addOutput(cmd, &format, "output `FORMAT`", append(documentFormats(formatJUnit), formatYAML)...)
	cmd.Flags().StringVar(&table, "table", "", "show only the table `NAME`, such as \"table 1\" or 1")
	_ = cmd.RegisterFlagCompletionFunc("table", completeTable)
	return cmd
}

// completePaper completes the name of a paper.
func completePaper(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return paper.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeTable completes the name of a table of the paper in args.
func completeTable(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, err := paper.Load(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return tableNames(p), cobra.ShellCompDirectiveNoFileComp
}

// loadPaper loads the paper with a name from the command line.
func loadPaper(name string) (paper.Paper, error) {
	p, err := paper.Load(name)
	if err != nil && !slices.Contains(paper.Names(), name) {
		err = usage(err)
	}
	return p, err
}

func (a *App) listPapers(f format) error {
	papers, err := paper.All()
	if err != nil {
		return err
	}
	rows := answer.Rows(papers)
	if f == formatYAML {
		return a.print(f, rows, nil, nil)
	}
	return a.writeDocument(a.env.Stdout, f, "", answer.Listing(rows))
}

func tableNames(p paper.Paper) []string {
	var names []string
	for _, t := range p.Tables {
		names = append(names, t.Name)
	}
	return names
}

// findTable returns the table with a name. Its first word, table or text, may be left out.
func findTable(p paper.Paper, name string) (paper.Table, error) {
	for _, t := range p.Tables {
		_, suffix, _ := strings.Cut(t.Name, " ")
		if strings.EqualFold(t.Name, name) || strings.EqualFold(suffix, name) {
			return t, nil
		}
	}
	return paper.Table{}, usage(fmt.Errorf("%s has no table %q; it has %s", p.Name, name, strings.Join(tableNames(p), ", ")))
}

func (a *App) showPaper(p paper.Paper, f format) error {
	d := answer.Document(p)
	if f == formatYAML {
		return a.print(f, d.Data(), nil, nil)
	}
	return a.writeDocument(a.env.Stdout, f, "", d)
}
