package plan

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// secretPlan has variables of both kinds in several spellings.
const secretPlan = `version: 1
workloads:
  - name: a.b.c
    image: probe
    argv: [/a]
    env: {TOKEN: "s3cret: 'x' #1", LC_ALL: C, N: 12345, ON: true, EMPTY: ""}
    from-env: [PASSWORD, LD_LIBRARY_PATH]
    ` + parseRate + `
  - {name: a.b.d, image: probe, argv: [/b], env: {OTHER: other-secret}, ` + parseRate + `}
`

// Invariant variable-values.
func TestRedact(t *testing.T) {
	plan := mustParse(t, "p", secretPlan)
	for name, text := range map[string]string{"as stored": string(plan.YAML()), "as written": secretPlan} {
		redacted, values := Redact(text)
		if want := []string{"12345", "C", "other-secret", "s3cret: 'x' #1", "true"}; !slices.Equal(slices.Sorted(slices.Values(values)), want) {
			t.Errorf("%s: the values are %q, want %q", name, values, want)
		}
		for _, secret := range []string{"s3cret", "other-secret", "12345"} {
			if strings.Contains(redacted, secret) {
				t.Errorf("%s: %s is in\n%s", name, secret, redacted)
			}
		}
		want := mustParse(t, "p", secretPlan)
		for i := range want.Workloads {
			for key := range want.Workloads[i].Env {
				want.Workloads[i].Env[key] = Redacted
			}
		}
		expect.Equal(t, name+": the rest of the plan has changed", string(want.YAML()), string(mustParse(t, "p", redacted).YAML()))
		if echo, values := Redact(redacted); echo != redacted || values != nil {
			t.Errorf("%s: redacted again: %q\n%s", name, values, echo)
		}
	}
}

// TestRedactKeepsPlans: a plan without variables stays as it is, to the byte.
func TestRedactKeepsPlans(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || paths == nil {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		p, err := Load(path)
		must.Do(t, err)
		text := string(p.YAML())
		if slices.ContainsFunc(p.Workloads, func(w Workload) bool { return w.Env != nil }) {
			continue
		}
		if got, values := Redact(text); got != text || values != nil {
			t.Errorf("%s: changed to\n%s", path, got)
		}
	}
	for _, text := range []string{"", "name: quick\n", "workloads: 5\n", "workloads: [5, {env: [A]}]\n"} {
		if got, _ := Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestRedactHidesUnreadablePlans: imported runs may have any plan.
func TestRedactHidesUnreadablePlans(t *testing.T) {
	for _, text := range []string{
		"workloads: [{env: {A: secret}",
		"workloads: [{env: {A: &x secret}}]\n",
		"workloads: [{env: {A: [secret]}}]\n",
		"workloads: [{env: {A: |\n  secret\n  }}]\n",
		"workloads:\n- env:\n    A: |\n      secret\n      lines\n",
	} {
		if got, _ := Redact(text); strings.Contains(got, "secret") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestWithSecrets(t *testing.T) {
	environment := map[string]string{"TOKEN": "t0ken", "OTHER": "äöü x", "UNUSED": "unused"}
	lookup := func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	plan := mustParse(t, "p", whole)
	text := string(plan.YAML())
	got, err := plan.WithSecrets(lookup)
	must.Do(t, err)
	if want := map[string]string{"TOKEN": "t0ken", "OTHER": "äöü x"}; !maps.Equal(got.Workloads[0].Secrets, want) || plan.Workloads[0].Secrets != nil {
		t.Errorf("the secrets are %q, want %q; the original plan has %q", got.Workloads[0].Secrets, want, plan.Workloads[0].Secrets)
	}
	if values := slices.Sorted(slices.Values(got.Secrets())); !slices.Equal(values, []string{"t0ken", "äöü x"}) {
		t.Errorf("Secrets gives %q", values)
	}
	if string(got.YAML()) != text || strings.Contains(text, "t0ken") {
		t.Errorf("the secrets are in the stored plan:\n%s", got.YAML())
	}

	delete(environment, "TOKEN")
	environment["OTHER"] = "two\nlines"
	_, err = plan.WithSecrets(lookup)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"workloads.from-env: TOKEN is not set in the environment of touchstone; set and export it", "the value of OTHER is longer than 4096 bytes or not printable"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "lines") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
