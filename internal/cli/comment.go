package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/forge"
)

// mostComment is the largest file of a comment that is read, in bytes.
const mostComment = 1 << 20

func (a *App) commentCommand() *cobra.Command {
	var marker string
	cmd := &cobra.Command{
		Use:   "comment FILE",
		Short: "Write a Markdown file as the comment of a pull request, and update it later",
		Long: `Writes a file in Markdown as a comment on the pull request of GitHub, or the merge request
of GitLab, whose job calls it. A later call with the same marker updates the comment.

The variables of the job name the change. The token is in a variable too:

  GITHUB_TOKEN   a token with the permission pull-requests: write
  GITLAB_TOKEN   a token with the scope api and the role Reporter

Without a change, without a token, and in the job of a fork without the right to comment,
the verb prints the reason and exits with 0. A text above GitHub's limit is cut, and says so.`,
		Example: `  touchstone compare base/ head/ --fail-on slower:3% -o markdown -O comment.md
  touchstone comment comment.md
  touchstone comment comment.md --marker 'memory of runsc'`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.comment(cmd.Context(), args[0], marker) },
	}
	cmd.Flags().StringVar(&marker, "marker", "touchstone", "`NAME` of the comment; each name has a comment of its own")
	return cmd
}

func (a *App) comment(ctx context.Context, file, name string) error {
	marker, err := forge.Marker(name)
	if err != nil {
		return usage(fmt.Errorf("--marker: %w", err))
	}
	text, err := readFile(file, mostComment)
	if err != nil {
		return usage(err)
	}
	var skip *forge.SkipError
	change, err := forge.Open(os.Getenv)
	if err == nil {
		var done string
		if done, err = change.Comment(ctx, marker, string(text)); err == nil {
			fmt.Fprintln(a.env.Stdout, done)
		}
	}
	if errors.As(err, &skip) {
		fmt.Fprintln(a.env.Stdout, skip)
		return nil
	}
	return err
}
