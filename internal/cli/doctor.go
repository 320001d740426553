package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/doctor"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
)

func (a *App) doctorCommand() *cobra.Command {
	var format format
	var overrides plan.Overrides
	var file string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Collect what a bug report about this machine needs",
		Long: `Shows versions, the facts of this machine, the settings of engines that decide whether
containers start, and each target that does not work: the cause, the remedy, the failing
call with its output, and the end of the log of its engine. Each target is tried with one
container, as touchstone targets does it.

Names of hosts and users, home directories, IP and hardware addresses, mails, passwords,
tokens and keys are replaced. Of configuration files, only the keys that matter are read.
Nothing is sent anywhere. With -O, the shown report is also written to a tar.gz, as text
and as JSON. Read it before you publish it.`,
		Example: `  sudo touchstone doctor
  sudo touchstone doctor -O report.tar.gz
  touchstone doctor --runtime mycrun=/opt/crun/bin/crun -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keepGiven(cmd.Flags(), "managed", &overrides.Managed)
			p, err := quickPlan(overrides)
			if err != nil {
				return err
			}
			return a.diagnose(cmd.Context(), p, format, file)
		},
	}
	addFormat(cmd, &format)
	addEngineFlags(cmd, &overrides)
	cmd.Flags().StringVarP(&file, "output-file", "O", "", "also write the report to a new tar.gz `FILE`")
	return cmd
}

// diagnose shows the report, and then writes it to a file if one is named.
func (a *App) diagnose(ctx context.Context, p plan.Plan, format format, file string) error {
	if file != "" {
		if _, err := os.Lstat(file); err == nil {
			return usage(fmt.Errorf("%s exists; name a new file", file))
		}
	}
	report, err := a.examine(ctx, p)
	if err != nil {
		return err
	}
	if format == formatTable {
		fmt.Fprint(a.env.Stdout, report.Text())
	} else if err := a.print(format, report, nil, nil); err != nil {
		return err
	}
	if file == "" {
		return nil
	}
	bundle, err := report.Bundle()
	if err != nil {
		return err
	}
	if err := writeNew(file, bundle); err != nil {
		return err
	}
	a.line("wrote " + file + "; read it before you publish it")
	return nil
}

// examine makes the redacted report. If no target of the machine can be tried, the report has the reason in place of the targets.
func (a *App) examine(ctx context.Context, p plan.Plan) (doctor.Report, error) {
	report := doctor.Report{
		Touchstone: tool(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Host: host.Facts(a.env.Root), Configuration: doctor.Configuration(a.env.Root),
	}
	err := a.withTargets(ctx, p, func(s *engine.Session, rows []targetRow) error {
		report.Targets = symptoms(rows)
		defer a.slow("reading the logs of engines")()
		report.Logs = logs(ctx, s, rows)
		return nil
	})
	if ctx.Err() != nil {
		return doctor.Report{}, context.Cause(ctx)
	}
	if err != nil {
		report.Problem = err.Error()
	}
	return report.Redacted(doctor.OfMachine(a.env.Root))
}

func symptoms(rows []targetRow) []doctor.Target {
	var list []doctor.Target
	for _, r := range rows {
		list = append(list, doctor.Target{
			Target: r.Target, Works: r.Works, Version: r.Version, Binary: r.Binary, Reason: r.Reason, Advice: r.Advice, Output: r.output,
		})
	}
	return list
}

// units are the units of systemd with the daemons of engines.
var units = map[string]string{"containerd": "containerd", "crio": "crio", "docker": "docker"}

// logs returns the ends of the logs of the engines with a failed call: the last one that a private engine has left, or the journal.
func logs(ctx context.Context, s *engine.Session, rows []targetRow) []doctor.Log {
	var list []doctor.Log
	var names []string
	for _, r := range rows {
		if r.output != "" {
			names = add(names, r.Engine)
		}
	}
	for _, name := range names {
		text := ""
		for _, r := range rows {
			if r.Engine == name && r.log != "" {
				text = r.log
			}
		}
		if unit := units[name]; text == "" && unit != "" {
			text = s.Journal(ctx, unit)
		}
		if text != "" {
			list = append(list, doctor.Log{Engine: name, Text: text})
		}
	}
	return list
}

// writeNew writes a file that only this user may read, and overwrites none.
func writeNew(file string, content []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("%s exists; name a new file", file))
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
