package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/answer/compare"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// The parameters of a comparison have the names of the flags of touchstone compare.
const (
	acrossParameter   = "across-machines"
	allowParameter    = "allow-differences"
	emulatedParameter = "emulated-verdicts"
	// allowAll is the value for all differences.
	allowAll = "all"
)

// mostSideRuns is the largest number of references of a side. The runs of both are in memory at once.
const mostSideRuns = 100

// compare is the comparison of two sides.
func (s *server) compare(ctx context.Context, db *store.Store, r *http.Request) (view, error) {
	query := r.URL.Query()
	options := sides.Options{AcrossMachines: query.Has(acrossParameter), EmulatedVerdicts: query.Has(emulatedParameter)}
	for _, name := range query[allowParameter] {
		if name == allowAll {
			options.Allow = sides.Classes()
		}
	}
	address := url.Values{}
	for _, name := range []string{acrossParameter, allowParameter, emulatedParameter} {
		if query.Has(name) {
			address.Set(name, query.Get(name))
		}
	}
	var refs [2][]string
	keys := []string{fmt.Sprint(options)}
	for i, name := range []string{"a", "b"} {
		for _, value := range query[name] {
			refs[i] = append(refs[i], strings.Split(value, ",")...)
		}
		refs[i] = slices.DeleteFunc(refs[i], func(ref string) bool { return ref == "" })
		switch n := len(refs[i]); {
		case n == 0:
			return view{}, &requestError{http.StatusBadRequest, errors.New("a comparison has two sides; tick runs of side A and of side B in the list of runs, or name them as in /compare?a=RUN,RUN&b=RUN")}
		case n > mostSideRuns:
			return view{}, &requestError{http.StatusBadRequest, fmt.Errorf("a side has at most %d runs here; use touchstone compare for more", mostSideRuns)}
		}
		address.Set(name, strings.Join(refs[i], ","))
		for _, ref := range refs[i] {
			key, err := referenceKey(ctx, db, ref)
			if err != nil {
				return view{}, err
			}
			keys = append(keys, key)
		}
	}
	v := view{address: "/compare?" + address.Encode(), whole: true}
	// The page has the references as they are in its address: "latest" means another run later.
	v.key = v.address + "\n" + strings.Join(keys, "\n")
	if slices.Contains(keys, "") {
		v.key = ""
	}
	load := func(refs []string) (side sides.Side, err error) {
		side.Name = strings.Join(refs, ", ")
		for _, ref := range refs {
			list, err := archive.Runs(ctx, db, ref)
			if err != nil {
				return side, err
			}
			for _, run := range list {
				side.Runs = append(side.Runs, archive.WithoutVariables(run))
			}
		}
		return side, nil
	}
	v.load = func() ([]result.Run, error) {
		a, err := load(refs[0])
		if err != nil {
			return nil, err
		}
		b, err := load(refs[1])
		return slices.Concat(a.Runs, b.Runs), err
	}
	v.document = func() (*document.Document, error) {
		a, err := load(refs[0])
		if err != nil {
			return nil, err
		}
		b, err := load(refs[1])
		if err != nil {
			return nil, err
		}
		c, err := sides.New(a, b, options)
		if err != nil {
			return nil, &requestError{http.StatusConflict, err}
		}
		return compare.Document(c), nil
	}
	return v, nil
}

// referenceKey identifies the content of a reference. It is empty for a run under way.
func referenceKey(ctx context.Context, db *store.Store, ref string) (string, error) {
	baselines, err := db.Baselines(ctx)
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(ref, archive.BaselinePrefix)
	for _, b := range baselines {
		if b.Name == name {
			return fmt.Sprintf("baseline %s %d", b.Name, b.Saved.UnixNano()), nil
		}
	}
	outline, err := db.Outline(ctx, ref)
	return runKey(&outline), err
}
